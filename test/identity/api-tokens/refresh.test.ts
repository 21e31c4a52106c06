import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf, sameness } from '../../support/calls.ts';
import { dated } from '../../support/dated.ts';
import { stopAges } from '../../support/passing-time.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { type IssueResult, issueToken, type TestToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let other: TestApp;
let owner: Person;
let token: TestToken;
let number = 0;

beforeAll(async () => {
  app = await startTestApp();
  other = await app.another();
  await register(app);
});
afterAll(() => app.close());
beforeEach(async () => {
  owner = await register(app);
  token = await issueToken(app, owner, {
    scopes: ['read'],
    workspace_ids: [owner.workspaceId],
    rate_limit_rps: 50,
    expires_in_days: 10,
  });
  number += 1;
});

const refresh = (refresh_token: string, more: object = {}, node = app) =>
  callsOf(node).post(`/v1/orgs/${owner.orgId}/api-tokens/refresh`, { refresh_token, ...more });
const refreshed = async (refresh_token: string, more: object = {}): Promise<IssueResult> => {
  const answer = await refresh(refresh_token, more);
  expect(answer.statusCode).toBe(200);
  return answer.json();
};
const works = async (plaintext: string, node = app) => {
  const url = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
  return (await callsOf(node).get(url, { authorization: plaintext })).statusCode === 200;
};
const sql = async <Row extends object>(text: string, values: unknown[] = []) =>
  (await app.database.pool.query<Row>(text, values)).rows;
const rowOf = async (id: string) =>
  (await sql<Record<string, unknown>>('select * from api_tokens where id = $1', [id]))[0]!;

describe('refreshing', () => {
  it('gives a new pair that inherits everything, the length of its life included', async () => {
    const next = await refreshed(token.refresh_token_plaintext);
    const { token_id, prefix, issued_at, expires_at, ...inherited } = next.token;
    expect(token.token).toMatchObject(inherited);
    expect(token_id).not.toBe(token.id);
    expect(next.plaintext_token.startsWith(`${prefix}_`)).toBe(true);
    const life = ({ issued_at: from, expires_at: to }: typeof token.token) => Date.parse(to!) - Date.parse(from);
    expect(life(next.token)).toBe(life(token.token));
    expect(Date.parse(issued_at)).toBeGreaterThan(Date.parse(token.token.issued_at));
    expect(expires_at).not.toBe(token.token.expires_at);
    expect(await works(next.plaintext_token)).toBe(true);
  });

  it('lets the old one work on for 300 seconds, shown as revoked then because it was rotated', async () => {
    const { expectAfter } = await dated(() => refreshed(token.refresh_token_plaintext));
    expect(await works(token.plaintext_token)).toBe(true);
    const { tokens } = (await callsOf(app).get(`/v1/orgs/${owner.orgId}/api-tokens`, owner.headers)).json();
    const old = tokens.find(({ token_id }: { token_id: string }) => token_id === token.id);
    expect(old.revoked_reason).toBe('rotated');
    expectAfter(300_000, old.revoked_at);
  });

  it('ends the old one at once with a grace of 0, on this node and within a second on the other', async () => {
    const ages = stopAges();
    expect([await works(token.plaintext_token), await works(token.plaintext_token, other)]).toEqual([true, true]);
    await refreshed(token.refresh_token_plaintext, { grace_period_seconds: 0 });
    expect(await works(token.plaintext_token)).toBe(false);
    ages.pass(1_000);
    await waitFor(async () => expect(await works(token.plaintext_token, other)).toBe(false));
  });

  it('never lets the old one outlive its own end', async () => {
    await sql(`update api_tokens set expires_at = now() + interval '10 s' where id = $1`, [token.id]);
    await refreshed(token.refresh_token_plaintext, { grace_period_seconds: 86_400 });
    const row = await rowOf(token.id);
    expect(row.revoked_at).toEqual(row.expires_at);
  });

  it.each([-1, 86_401, 'x'])('refuses a grace of %s', async (grace_period_seconds) => {
    const answer = await refresh(token.refresh_token_plaintext, { grace_period_seconds });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail[0].loc).toEqual(['body', 'grace_period_seconds']);
    expect(answer.body).not.toContain(token.refresh_token_plaintext);
  });

  it('works for 30 days after the token has expired, no longer', async () => {
    const expire = (days: number) =>
      sql(
        `update api_tokens set issued_at = now() - interval '40 days', expires_at = now() - make_interval(days => $2),
           refresh_expires_at = now() - make_interval(days => $2) + interval '30 days' where id = $1`,
        [token.id, days],
      );
    await expire(31);
    expect((await refresh(token.refresh_token_plaintext)).statusCode).toBe(401);
    await expire(29);
    expect(await works(token.plaintext_token)).toBe(false);
    const next = await refreshed(token.refresh_token_plaintext);
    expect(await works(next.plaintext_token)).toBe(true);
    expect(await works(token.plaintext_token)).toBe(false);
  });

  it('works in GraphQL too, and for many one after the other', async () => {
    let { refresh_token_plaintext } = token;
    for (let i = 0; i < 3; i++) ({ refresh_token_plaintext } = await refreshed(refresh_token_plaintext));
    const answer = await callsOf(app).graphql(
      `mutation ($org: ID!, $input: RefreshApiTokenInput!) {
        refreshApiToken(orgId: $org, input: $input) { plaintextToken token { id } } }`,
      { org: owner.orgId, input: { refreshToken: refresh_token_plaintext } },
    );
    expect(await works(answer.json().data.refreshApiToken.plaintextToken)).toBe(true);
  });

  it('is done by the token: its record and event say so', async () => {
    const next = await refreshed(token.refresh_token_plaintext);
    const [record] = await sql(
      `select principal_type, principal_id, token_id, user_id, resource_type, metadata from activity
       where action = 'refresh' and resource_id = $1`,
      [next.token.token_id],
    );
    expect(record).toEqual({
      principal_type: 'api_token',
      principal_id: token.id,
      token_id: token.id,
      user_id: owner.userId,
      resource_type: 'api_token',
      metadata: { previous: token.id, prefix: next.token.prefix },
    });
    expect(await sql('select type from events where resource_id = $1', [next.token.token_id])).toEqual([
      { type: 'api_token.refreshed' },
    ]);
  });

  const unusable: [string, () => Promise<string> | string][] = [
    ['unknown', () => 'rft_AAAAAAAA_0000000000000000000000000000000000000000000_000000'],
    ['no token at all', () => 'x'],
    ['the token itself', () => token.plaintext_token],
    [
      'that of a revoked token',
      async () => {
        await callsOf(app).delete(`/v1/orgs/${owner.orgId}/api-tokens/${token.id}`, owner.headers);
        return token.refresh_token_plaintext;
      },
    ],
    [
      'that of a suspended account',
      async () => {
        await sql('update users set is_active = false where id = $1', [owner.userId]);
        return token.refresh_token_plaintext;
      },
    ],
    [
      'of somebody who left',
      async () => {
        await sql('delete from organization_members where user_id = $1', [owner.userId]);
        return token.refresh_token_plaintext;
      },
    ],
    ['of another organization', async () => (await issueToken(app, await register(app))).refresh_token_plaintext],
  ];
  it.each(unusable)('with one that is %s is 401 with one and the same body', async (_what, make) => {
    const [answer, missing] = [await refresh(await make()), await callsOf(app).get('/v1/auth/me')];
    expect(answer.statusCode).toBe(401);
    expect(sameness(answer).body).toBe(sameness(missing).body);
  });
});

describe('of 50 refreshes of one token at once', () => {
  it('all get the very same successor, which is the only one', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => refresh(token.refresh_token_plaintext, {}, index % 2 ? app : other)),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(50).fill(200));
    const pairs = answers.map((answer) => answer.json<IssueResult>());
    for (const pair of pairs) expect(pair).toEqual(pairs[0]);
    const [{ n }] = (await sql<{ n: number }>('select count(*)::int as n from api_tokens where family_id = $1', [
      token.id,
    ])) as [{ n: number }];
    expect(n).toBe(2);
    expect(
      await sql(`select 1 from events where type = 'api_token.refreshed' and resource_id = $1`, [
        pairs[0]!.token.token_id,
      ]),
    ).toHaveLength(1);
  });
});

describe('a refresh token that was used', () => {
  const ago = (seconds: number, id = token.id) =>
    sql(`update api_tokens set rotated_at = now() - make_interval(secs => $2) where id = $1`, [id, seconds]);

  it('gives the very same pair again for a minute: the first answer may have been lost', async () => {
    const first = await refreshed(token.refresh_token_plaintext);
    await ago(55);
    expect(await refreshed(token.refresh_token_plaintext)).toEqual(first);
  });

  const expectFamilyDead = async (plaintexts: string[]) => {
    for (const plaintext of plaintexts) expect(await works(plaintext)).toBe(false);
    const rows = await sql<{ reason: string }>(
      'select revoked_reason as reason from api_tokens where family_id = $1 and revoked_at <= now() order by id',
      [token.id],
    );
    expect(rows.length).toBe(plaintexts.length);
    expect(rows.at(-1)!.reason).toBe('refresh_token_reuse');
  };

  it('ends the whole family after that, with record and event', async () => {
    const next = await refreshed(token.refresh_token_plaintext);
    expect([await works(token.plaintext_token), await works(next.plaintext_token)]).toEqual([true, true]);
    await ago(61);
    const reused = await refresh(token.refresh_token_plaintext);
    expect(sameness(reused).body).toBe(sameness(await callsOf(app).get('/v1/auth/me')).body);
    await expectFamilyDead([token.plaintext_token, next.plaintext_token]);
    expect((await refresh(next.refresh_token_plaintext)).statusCode).toBe(401);
    const ids = [token.id, next.token.token_id];
    const events = await sql(`select type, actor from events where resource_id = any($1) and type like '%revoked'`, [
      ids,
    ]);
    const actor = { principal_type: 'system', principal_id: null, username: null };
    expect(events).toEqual([
      { type: 'api_token.revoked', actor },
      { type: 'api_token.revoked', actor },
    ]);
    await app.services.activity.flush();
    const records = await sql(
      `select action, principal_type, success, metadata from activity
       where resource_id = any($1) and metadata::text like '%reuse%' order by success`,
      [ids],
    );
    expect(records).toEqual([
      {
        action: 'refresh',
        principal_type: 'api_token',
        success: false,
        metadata: { family_revoked: 'refresh_token_reuse' },
      },
      expect.objectContaining({ action: 'revoke', principal_type: 'system', success: true }),
    ]);
  });

  it('gives the same pair for a minute although that was refreshed itself, and ends nothing', async () => {
    const second = await refreshed(token.refresh_token_plaintext);
    const third = await refreshed(second.refresh_token_plaintext);
    await ago(55);
    const again = await refreshed(token.refresh_token_plaintext);
    expect(again.plaintext_token).toBe(second.plaintext_token);
    expect(again.refresh_token_plaintext).toBe(second.refresh_token_plaintext);
    for (const { plaintext_token } of [token, second, third]) expect(await works(plaintext_token)).toBe(true);
    expect(await works((await refreshed(third.refresh_token_plaintext)).plaintext_token)).toBe(true);
  });

  it('lets the late holder of an already refreshed pair refresh it once more, and gives the newest', async () => {
    const second = await refreshed(token.refresh_token_plaintext);
    const third = await refreshed(second.refresh_token_plaintext);
    const fourth = await refreshed(third.refresh_token_plaintext);
    await refreshed(token.refresh_token_plaintext);
    for (const id of [token.id, second.token.token_id, third.token.token_id]) await ago(600, id);
    const late = await refreshed(second.refresh_token_plaintext);
    expect(late.plaintext_token).toBe(fourth.plaintext_token);
    expect(late.refresh_token_plaintext).toBe(fourth.refresh_token_plaintext);
    expect((await refreshed(second.refresh_token_plaintext)).plaintext_token).toBe(fourth.plaintext_token);
    expect(await works(fourth.plaintext_token)).toBe(true);
    await sql(`update api_tokens set reissued_at = reissued_at - interval '61 seconds' where id = $1`, [
      second.token.token_id,
    ]);
    expect((await refresh(second.refresh_token_plaintext)).statusCode).toBe(401);
    expect(await works(fourth.plaintext_token)).toBe(false);
  });

  it('ends the family after a minute when it is of an older generation', async () => {
    const second = await refreshed(token.refresh_token_plaintext);
    const third = await refreshed(second.refresh_token_plaintext);
    await ago(61);
    expect((await refresh(token.refresh_token_plaintext)).statusCode).toBe(401);
    await expectFamilyDead([token.plaintext_token, second.plaintext_token, third.plaintext_token]);
  });

  it('gives nothing again once the successor was revoked', async () => {
    const second = await refreshed(token.refresh_token_plaintext, { grace_period_seconds: 0 });
    await callsOf(app).delete(`/v1/orgs/${owner.orgId}/api-tokens/${second.token.token_id}`, owner.headers);
    expect((await refresh(token.refresh_token_plaintext)).statusCode).toBe(401);
  });

  it('does nothing more to a family that is dead: one record, no more events', async () => {
    const next = await refreshed(token.refresh_token_plaintext);
    await ago(61);
    for (let i = 0; i < 3; i++) expect((await refresh(token.refresh_token_plaintext)).statusCode).toBe(401);
    const events = await sql(`select 1 from events where resource_id = $1 and type = 'api_token.revoked'`, [
      next.token.token_id,
    ]);
    expect(events).toHaveLength(1);
  });

  it('leaves other families alone', async () => {
    const second = await issueToken(app, owner);
    await refreshed(token.refresh_token_plaintext);
    await ago(61);
    await refresh(token.refresh_token_plaintext);
    expect(await works(second.plaintext_token)).toBe(true);
  });
});

describe('rights after a refresh', () => {
  it('stay bound to the user who made the token', async () => {
    const member = await createUser(app, owner, { username: `refresher-${number}`, role: 'editor' });
    const theirs = await issueToken(app, member);
    const next = await refreshed(theirs.refresh_token_plaintext);
    expect(next.token).toMatchObject({ owner_id: member.userId, created_by_user_id: member.userId });
  });
});
