import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { type IssueResult, issueToken, type TestToken } from '../../support/tokens.ts';

let app: TestApp;
let owner: Person;

beforeAll(async () => {
  app = await startTestApp();
  await register(app);
});
afterAll(() => app.close());
beforeEach(async () => {
  owner = await register(app);
});

const tokens = () => `/v1/orgs/${owner.orgId}/api-tokens`;
const refresh = (refresh_token: string, more: object = {}) =>
  callsOf(app).post(`${tokens()}/refresh`, { refresh_token, ...more });
const refreshed = async (refresh_token: string, more: object = {}): Promise<IssueResult> => {
  const answer = await refresh(refresh_token, more);
  expect(answer.statusCode).toBe(200);
  return answer.json();
};
const works = async (plaintext: string) =>
  (await callsOf(app).get(`/v1/orgs/${owner.orgId}`, { authorization: plaintext })).statusCode === 200;
const sql = async <Row extends object>(text: string, values: unknown[] = []) =>
  (await app.database.pool.query<Row>(text, values)).rows;

describe('revoking any token of a family revokes what it was refreshed from and to', () => {
  let appId: string;
  beforeEach(async () => {
    const apps = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/apps`;
    appId = (await callsOf(app).post(apps, { name: 'an app' }, owner.headers)).json().app_id;
  });

  const paths: [string, boolean, (id: string) => string][] = [
    ['by its owner', false, (id) => `${tokens()}/${id}`],
    ['by an administrator', false, (id) => `${tokens()}/admin/${id}`],
    ['by its app', true, (id) => `/v1/orgs/${owner.orgId}/apps/${appId}/tokens/${id}`],
  ];
  const which = ['the first, whose grace is over', 'the second, in its grace', 'the newest'];
  const ways = paths.flatMap(([how, isApp, path]) =>
    which.map((what, index) => [how, what, isApp, path, index] as const),
  );

  it.each(ways)('%s: %s', async (_how, _what, isApp, path, index) => {
    const first = await issueToken(app, owner, isApp ? { app_id: appId } : {});
    const second = await refreshed(first.refresh_token_plaintext, { grace_period_seconds: 0 });
    const third = await refreshed(second.refresh_token_plaintext, { grace_period_seconds: 86_400 });
    const family = [first, second, third];
    const living = async () => Promise.all(family.map(({ plaintext_token }) => works(plaintext_token)));
    expect(await living()).toEqual([false, true, true]);
    const revoke = () =>
      callsOf(app)
        .delete(path(family[index]!.token.token_id), owner.headers)
        .then((answer) => answer.statusCode);
    expect(await revoke()).toBe(204);
    expect(await living()).toEqual([false, false, false]);
    const rows = () =>
      sql('select id, revoked_at, revoked_reason from api_tokens where family_id = $1 order by id', [first.id]);
    const records = await rows();
    expect(records).toMatchObject([{ revoked_reason: 'rotated' }, {}, {}]);
    // once more changes nothing, and no refresh token of the family is worth anything
    expect(await revoke()).toBe(204);
    for (const { refresh_token_plaintext } of family)
      expect((await refresh(refresh_token_plaintext)).statusCode).toBe(401);
    expect(await revoke()).toBe(204);
    expect(await rows()).toEqual(records);
    expect(await living()).toEqual([false, false, false]);
  });
});

describe('what a token made', () => {
  const permissions = ['api_token:create', 'workspace:read'];
  const childOf = (maker: TestToken, body: object = {}) =>
    issueToken(app, { orgId: owner.orgId, headers: maker.headers }, { permissions, ...body });
  /** As if `days` had gone by since all tokens were issued. */
  const pass = (days: number) =>
    sql(
      `update api_tokens set issued_at = issued_at - make_interval(days => $1),
         expires_at = expires_at - make_interval(days => $1),
         refresh_expires_at = refresh_expires_at - make_interval(days => $1),
         ends_by = ends_by - make_interval(days => $1)`,
      [days],
    );

  it('never lives past the end that its maker had then, however often it is refreshed', async () => {
    const maker = await issueToken(app, owner, { permissions, expires_in_days: 10 });
    const child = await childOf(maker, { expires_in_days: 4 });
    expect(Date.parse(child.token.expires_at!)).toBeLessThan(Date.parse(maker.token.expires_at!));
    await pass(7);
    const end = Date.parse(maker.token.expires_at!) - 7 * 86_400_000;
    const next = await refreshed(child.refresh_token_plaintext);
    expect(Date.parse(next.token.expires_at!)).toBe(end);
    expect(Date.parse(String((await refreshed(next.refresh_token_plaintext)).token.expires_at))).toBe(end);
  });

  it('cannot be refreshed after that, also where its maker was refreshed', async () => {
    const maker = await issueToken(app, owner, { permissions, expires_in_days: 2 });
    const child = await childOf(maker);
    const grandchild = await childOf(child);
    await pass(1);
    const heir = await refreshed(maker.refresh_token_plaintext);
    const latest = await refreshed(child.refresh_token_plaintext);
    await pass(1);
    for (const { refresh_token_plaintext } of [latest, grandchild])
      expect((await refresh(refresh_token_plaintext)).statusCode).toBe(401);
    expect(await works(heir.plaintext_token)).toBe(true);
  });

  it('of one that never expires may be refreshed as long as it likes', async () => {
    const maker = await issueToken(app, owner, { permissions });
    await sql('update api_tokens set expires_at = null, refresh_expires_at = null where id = $1', [maker.id]);
    const child = await childOf(maker, { expires_in_days: 2 });
    await pass(5);
    expect(await works((await refreshed(child.refresh_token_plaintext)).plaintext_token)).toBe(true);
  });
});
