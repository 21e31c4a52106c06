import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { issueToken, type TestToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let here: TestApp;
let there: TestApp;
let owner: Person;
let number = 0;

beforeAll(async () => {
  here = await startTestApp();
  there = await here.another();
  await register(here);
});
afterAll(() => here.close());
beforeEach(async () => {
  owner = await register(here);
  number += 1;
});

const ROUNDS = 6;
const permissions = ['api_token:create', 'workspace:read'];
type Maker = Pick<Person | TestToken, 'headers'>;
const mint = (node: TestApp, { headers }: Maker) =>
  callsOf(node).post(`/v1/orgs/${owner.orgId}/api-tokens`, { name: 'x', permissions }, headers);
/** Tokens that are alive or could be refreshed to one that is. */
const livingOf = async (userId: string) =>
  here.database.prisma.apiToken.count({
    where: {
      createdByUserId: userId,
      orgId: owner.orgId,
      OR: [{ revokedAt: null }, { revokedAt: { gt: new Date() } }],
    },
  });
const expectNoFaults = (answers: { statusCode: number }[]) =>
  expect(answers.map(({ statusCode }) => statusCode).filter((status) => status >= 500)).toEqual([]);

describe('nothing that is minted at the same moment outlives', () => {
  const ends: [string, (maker: Person, token: TestToken) => Promise<{ statusCode: number }>][] = [
    ['its maker', (maker, { id }) => callsOf(here).delete(`/v1/orgs/${owner.orgId}/api-tokens/${id}`, maker.headers)],
    [
      'the membership',
      ({ userId }) => callsOf(here).delete(`/v1/orgs/${owner.orgId}/members/${userId}`, owner.headers),
    ],
    ['the account', ({ userId }) => callsOf(here).put(`/v1/users/${userId}`, { is_active: false }, owner.headers)],
    ['the deleted account', ({ userId }) => callsOf(here).delete(`/v1/users/${userId}`, owner.headers)],
  ];
  it.each(ends)('%s, on one node and on two', async (what, end) => {
    for (let round = 0; round < ROUNDS; round++) {
      const user = await createUser(here, owner, { username: `racer-${number}-${round}` });
      const token = await issueToken(here, user, { permissions });
      // the other node knows the token, and may take it for alive for a moment yet
      for (const node of [here, there]) await callsOf(node).get(`/v1/orgs/${owner.orgId}`, token.headers);
      const makers: Maker[] = what === 'its maker' ? [token] : [token, user];
      const mints = () => makers.flatMap((maker) => [mint(here, maker), mint(there, maker)]);
      const answers = await Promise.all([...mints(), end(user, token), ...mints()]);
      expectNoFaults(answers);
      expect(answers.some(({ statusCode }) => statusCode === 200 || statusCode === 204)).toBe(true);
      expect(await livingOf(user.userId)).toBe(0);
    }
  });

  it('a token that another node has revoked a moment ago', async () => {
    const token = await issueToken(here, owner, { permissions });
    expect((await callsOf(there).get(`/v1/orgs/${owner.orgId}`, token.headers)).statusCode).toBe(200);
    await callsOf(here).delete(`/v1/orgs/${owner.orgId}/api-tokens/${token.id}`, owner.headers);
    expect((await mint(there, token)).statusCode).toBe(401);
    expect(await livingOf(owner.userId)).toBe(0);
  });

  it('a refresh of its maker: the successor is revoked with what both made', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const token = await issueToken(here, owner, { permissions });
      const url = `/v1/orgs/${owner.orgId}/api-tokens`;
      const answers = await Promise.all([
        callsOf(there).post(`${url}/refresh`, { refresh_token: token.refresh_token_plaintext }),
        mint(there, token),
        callsOf(here).delete(`${url}/${token.id}`, owner.headers),
        mint(here, token),
      ]);
      expectNoFaults(answers);
      expect(await livingOf(owner.userId)).toBe(0);
    }
  });
});

it('revoking waits for whoever makes something of the token, and finds what came of it', async () => {
  const token = await issueToken(here, owner, { permissions });
  const revoking = `/v1/orgs/${owner.orgId}/api-tokens/${token.id}`;
  const { pool } = here.database;
  /** As a refresh does: holds a token and writes its successor. @returns what commits it */
  const beginSuccessor = async (of: string, id: string) => {
    const client = await pool.connect();
    await client.query('begin');
    await client.query('select 1 from api_tokens where id = $1 for update', [of]);
    await client.query(
      `insert into api_tokens select (jsonb_populate_record(t, jsonb_build_object(
         'id', $2::text, 'token_hash', $2::text, 'refresh_hash', $2::text))).*
       from api_tokens t where id = $1`,
      [of, id],
    );
    return async () => {
      await client.query('commit');
      client.release();
    };
  };
  const endFirst = await beginSuccessor(token.id, 'tok_second');
  const revoked = callsOf(there).delete(revoking, owner.headers);
  await waitFor(async () => expect(await lockWaits(pool)).toBe(1));
  await endFirst();
  expect((await revoked).statusCode).toBe(204);
  expect(await livingOf(owner.userId)).toBe(0);
});

describe('an app that is deleted', () => {
  let appId: string;
  const apps = () => `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/apps`;
  const newApp = async () => {
    appId = (await callsOf(here).post(apps(), { name: 'an app' }, owner.headers)).json().app_id;
  };

  it('while tokens of it are issued leaves none, and the late ones find no app', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await newApp();
      const url = `/v1/orgs/${owner.orgId}/apps/${appId}/tokens`;
      const issue = (node: TestApp) => callsOf(node).post(url, { name: 'x' }, owner.headers);
      const remove = callsOf(here).delete(`${apps()}/${appId}`, owner.headers);
      const answers = await Promise.all([issue(here), issue(there), remove, issue(here), issue(there)]);
      const [deleted] = answers.splice(2, 1);
      expect(deleted!.statusCode).toBeLessThan(300);
      for (const answer of answers) expect([201, 404]).toContain(answer.statusCode);
      for (const answer of answers.filter(({ statusCode }) => statusCode === 404))
        expect(answer.json().details).toEqual({ resource_type: 'app', resource_id: appId });
      expect(await here.database.prisma.apiToken.count({ where: { appId } })).toBe(0);
    }
  });

  it('while its tokens are refreshed and revoked: no two wait for one another', async () => {
    const deadlocks = async () => {
      const { rows } = await here.database.pool.query<{ n: string }>(
        'select pg_stat_force_next_flush(), deadlocks as n from pg_stat_database where datname = current_database()',
      );
      return Number(rows[0]!.n);
    };
    const before = await deadlocks();
    for (let round = 0; round < ROUNDS; round++) {
      await newApp();
      const tokens = await Promise.all(Array.from({ length: 6 }, () => issueToken(here, owner, { app_id: appId })));
      const url = `/v1/orgs/${owner.orgId}`;
      const answers = await Promise.all([
        ...tokens
          .slice(0, 4)
          .map(({ refresh_token_plaintext: refresh_token }, index) =>
            callsOf(index % 2 ? here : there).post(`${url}/api-tokens/refresh`, { refresh_token }),
          ),
        callsOf(here).delete(`${apps()}/${appId}`, owner.headers),
        ...tokens.slice(4).map(({ id }) => callsOf(there).delete(`${url}/apps/${appId}/tokens/${id}`, owner.headers)),
      ]);
      expectNoFaults(answers);
    }
    expect(await deadlocks()).toBe(before);
  });
});
