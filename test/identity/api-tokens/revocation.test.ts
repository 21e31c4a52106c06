import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { stopAges } from '../../support/passing-time.ts';
import { createUser, type Person, register } from '../../support/person.ts';
import { openAcknowledged, openEvents } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let here: TestApp;
let there: TestApp;
let owner: Person;
let number = 0;

beforeAll(async () => {
  here = await startTestApp();
  there = await here.another();
  await Promise.all([here.listen(), there.listen()]);
  await register(here);
});
afterAll(() => here.close());
beforeEach(async () => {
  owner = await register(here);
  number += 1;
});

const me = async (node: TestApp, headers: { authorization: string }) =>
  (await callsOf(node).get('/v1/auth/me', headers)).statusCode;
const both = (headers: { authorization: string }) => Promise.all([me(here, headers), me(there, headers)]);

describe('a token revoked on one of two nodes is refused there at once, on the other within a second', () => {
  const ways: [string, (user: Person, id: string) => Promise<{ statusCode: number }>][] = [
    ['by its owner', (user, id) => callsOf(here).delete(`/v1/orgs/${owner.orgId}/api-tokens/${id}`, user.headers)],
    [
      'by an administrator',
      (_, id) => callsOf(here).delete(`/v1/orgs/${owner.orgId}/api-tokens/admin/${id}`, owner.headers),
    ],
    ['with its account', (user) => callsOf(here).put(`/v1/users/${user.userId}`, { is_active: false }, owner.headers)],
    [
      'with the membership',
      (user) => callsOf(here).delete(`/v1/orgs/${owner.orgId}/members/${user.userId}`, owner.headers),
    ],
  ];
  it.each(ways)('%s', async (_how, revoke) => {
    const user = await createUser(here, owner, { username: `user-${number}` });
    const { id, headers } = await issueToken(here, user);
    const ages = stopAges();
    expect(await both(headers)).toEqual([200, 200]);
    expect((await revoke(user, id)).statusCode).toBeLessThan(300);
    expect(await me(here, headers)).toBe(401);
    ages.pass(1_000);
    await waitFor(async () => expect(await me(there, headers)).toBe(401));
  });
});

describe('what is open ends with the token', () => {
  const query = () =>
    `subscription { workspaceEvents(orgId: "${owner.orgId}", workspaceId: "${owner.workspaceId}") { id } }`;
  const open = (streams: number) => waitFor(() => expect(there.services.tail.size).toBe(streams));

  const ends: [string, (id: string) => Promise<unknown>][] = [
    [
      'revoked on another node',
      (id) => callsOf(here).delete(`/v1/orgs/${owner.orgId}/api-tokens/${id}`, owner.headers),
    ],
    [
      'expired',
      (id) =>
        here.database.pool.query(`update api_tokens set expires_at = now() + interval '200 ms' where id = $1`, [id]),
    ],
  ];
  it.each(ends)(
    'streams over WebSocket and SSE, and the socket itself at its next operation: %s',
    async (_how, end) => {
      const { id, headers } = await issueToken(here, owner);
      const socket = await openAcknowledged(there.url, headers.authorization);
      socket.send({ id: 'follow', type: 'subscribe', payload: { query: query() } });
      const stream = await openEvents(`${there.url}/graphql`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({ query: query() }),
      });
      await open(2);
      await end(id);
      await open(0);
      await stream.ended;
      socket.send({ id: 'late', type: 'subscribe', payload: { query: '{ organizations { totalCount } }' } });
      expect(await socket.closed()).toBe(4403);
      expect(socket.messages.filter(({ id: of }) => of === 'late')).toEqual([]);
    },
  );

  it('an idle socket is closed too', async () => {
    const { id, headers } = await issueToken(here, owner);
    const socket = await openAcknowledged(there.url, headers.authorization);
    await ends[0]![1](id);
    expect(await socket.closed()).toBe(4403);
  });
});

describe('reading a token', () => {
  it('is one statement at its first use, and none for the next ones within a second', async () => {
    const { headers } = await issueToken(here, owner);
    const { pool } = here.database;
    const asked: string[] = [];
    const original = pool.query.bind(pool) as (query: { text: string }) => unknown;
    const spy = vi.spyOn(pool, 'query').mockImplementation(((query: { text: string }) => {
      if (query.text.includes('t.token_hash = any')) asked.push(query.text);
      return original(query);
    }) as never);
    stopAges();
    await Promise.all([me(here, headers), me(here, headers)]);
    for (let i = 0; i < 5; i++) await me(here, headers);
    spy.mockRestore();
    expect(asked).toHaveLength(1);
  });
});
