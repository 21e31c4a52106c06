import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { expectOk } from '../../support/requests.ts';
import { type EventSource, openAcknowledged, openEvents, type RawSocket } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

const REFUSAL = (whose: string) => ({
  message: `Too many event streams of this ${whose} are open. Close one first.`,
  extensions: { code: 'RATE_LIMIT_EXCEEDED', details: { retry_after: 5 } },
});

const placeOf = ({ orgId, workspaceId }: Person) => `orgId: "${orgId}", workspaceId: "${workspaceId}"`;
const eventsOf = (person: Person) => `subscription { workspaceEvents(${placeOf(person)}) { type } }`;
const presenceOf = (person: Person) => `subscription { presence(${placeOf(person)}) { username } }`;
const UNREAD = 'subscription { unreadNotifications { unreadCount } }';

/** Starts a subscription on a socket. Nothing tells when it runs, so wait for what it sends. */
const subscribe = (socket: RawSocket, id: string, query: string) =>
  socket.send({ id, type: 'subscribe', payload: { query } });
const dataOf = ({ messages }: RawSocket, of: string) =>
  messages
    .filter(({ id, type }) => id === of && type === 'next')
    .map(({ payload }) => (payload as { data: object }).data);
const answerTo = async (socket: RawSocket, of: string) => (await socket.next(({ id }) => id === of)).payload;

describe('the tabs of a front end', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it('are all live: six sockets, each with events, presence and unread notifications', async () => {
    const ann = await register(app, { name: 'ann' });
    const bob = await colleague(app, ann, 'member');
    const seen = { ...bob, orgId: ann.orgId, workspaceId: ann.workspaceId };
    const url = await app.listen();
    const tabs: RawSocket[] = [];
    for (let n = 0; n < 6; n++) {
      const tab = await openAcknowledged(url, bob.headers.authorization);
      tabs.push(tab);
      subscribe(tab, 'events', eventsOf(seen));
      subscribe(tab, 'presence', presenceOf(seen));
      subscribe(tab, 'unread', UNREAD);
      await waitFor(() => expect(dataOf(tab, 'unread')).toHaveLength(1));
    }
    await waitFor(() => expect(app.services.tail.size).toBe(18));
    const [before] = dataOf(tabs[0]!, 'unread') as { unreadNotifications: { unreadCount: number } }[];
    await expectOk(app, { method: 'POST', url: `${ann.home}/sync/presence/join`, headers: ann.headers, payload: {} });
    const member = `${ann.home}/members/${bob.userId}`;
    await expectOk(app, { method: 'PATCH', url: member, headers: ann.headers, payload: { role: 'editor' } });
    for (const tab of tabs)
      await waitFor(() => {
        expect(dataOf(tab, 'events')).toContainEqual({ workspaceEvents: { type: 'workspace_member.updated' } });
        expect(dataOf(tab, 'presence').at(-1)).toEqual({ presence: [{ username: ann.username }] });
        expect(dataOf(tab, 'unread').at(-1)).toEqual({
          unreadNotifications: { unreadCount: before!.unreadNotifications.unreadCount + 1 },
        });
      });
    expect(tabs.flatMap(({ messages }) => messages).filter(({ type }) => type === 'error')).toEqual([]);
    for (const tab of tabs) tab.close();
  });

  it('have at most 20 subscriptions on one socket', async () => {
    const ann = await register(app, { name: 'ann' });
    const socket = await openAcknowledged(await app.listen(), ann.headers.authorization);
    for (let n = 1; n <= 21; n++) subscribe(socket, String(n), UNREAD);
    expect(await answerTo(socket, '21')).toEqual([{ message: 'A socket may hold 20 operations at a time.' }]);
    socket.close();
  });
});

describe('event streams beyond the limit', () => {
  let app: TestApp;
  let url: string;
  beforeAll(async () => {
    app = await startTestApp({ env: { MAX_STREAMS_PER_USER: '2', MAX_STREAMS_PER_WORKSPACE: '3' } });
    url = await app.listen();
  });
  afterAll(() => app.close());

  const overRest = (person: Person, headers = person.headers): Promise<EventSource> =>
    openEvents(`${url}${person.home}/sync/stream`, { headers });
  const refusedOverRest = async (person: Person, headers = person.headers) => {
    const answer = await fetch(`${url}${person.home}/sync/stream`, { headers });
    const { error, message, details } = (await answer.json()) as Record<string, unknown>;
    return [answer.status, answer.headers.get('retry-after'), error, message, details];
  };
  const overGraphQL = async (person: Person, accept: string) => {
    const headers = { ...person.headers, accept, 'content-type': 'application/json' };
    const body = JSON.stringify({ query: eventsOf(person) });
    return (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).text();
  };
  const restRefusal = (whose: string) => {
    const { message, extensions } = REFUSAL(whose);
    return [429, '5', extensions.code, message, extensions.details];
  };

  it('of a user are refused over every transport, until one closes', async () => {
    const ann = await register(app, { name: 'ann' });
    const socket = await openAcknowledged(url, ann.headers.authorization);
    subscribe(socket, 'a', UNREAD);
    await waitFor(() => expect(dataOf(socket, 'a')).toHaveLength(1));
    const stream = await overRest(ann);
    // the socket is one connection, however many subscriptions it has
    subscribe(socket, 'b', UNREAD);
    subscribe(socket, 'c', presenceOf(ann));
    await waitFor(() => expect([dataOf(socket, 'b').length, dataOf(socket, 'c').length > 0]).toEqual([1, true]));

    expect(await refusedOverRest(ann)).toEqual(restRefusal('user'));
    const third = await openAcknowledged(url, ann.headers.authorization);
    subscribe(third, 'd', eventsOf(ann));
    expect(await answerTo(third, 'd')).toMatchObject({ errors: [REFUSAL('user')] });
    // one way of answering has no web request, the other one has
    for (const accept of ['text/event-stream', 'text/event-stream, */*;q=0.1'])
      expect(await overGraphQL(ann, accept)).toContain(JSON.stringify(REFUSAL('user').message));

    // the connection holds its slot until its last stream ends
    for (const id of ['a', 'b']) socket.send({ id, type: 'complete' });
    await waitFor(() => expect(app.services.tail.size).toBe(2));
    expect(await refusedOverRest(ann)).toEqual(restRefusal('user'));
    socket.send({ id: 'c', type: 'complete' });
    await waitFor(() => expect(app.services.tail.size).toBe(1));
    subscribe(third, 'e', UNREAD);
    await waitFor(() => expect(dataOf(third, 'e')).toHaveLength(1));
    for (const open of [socket, third, stream]) open.close();
    await waitFor(() => expect(app.services.tail.size).toBe(0));
  });

  it('of a workspace are refused, each connection counted once', async () => {
    const ann = await register(app, { name: 'ann' });
    const bob = await colleague(app, ann, 'viewer');
    const there = { ...bob, home: ann.home, orgId: ann.orgId, workspaceId: ann.workspaceId };
    const streams = [await overRest(ann), await overRest(ann)];
    const socket = await openAcknowledged(url, bob.headers.authorization);
    for (const id of ['a', 'b', 'c']) subscribe(socket, id, presenceOf(there));
    for (const id of ['a', 'b', 'c']) await waitFor(() => expect(dataOf(socket, id).length).toBeGreaterThan(0));
    expect(await refusedOverRest(there)).toEqual(restRefusal('workspace or organization'));
    const organization = await openAcknowledged(url, bob.headers.authorization);
    subscribe(organization, 'own', UNREAD);
    await waitFor(() => expect(dataOf(organization, 'own')).toHaveLength(1));
    for (const open of [...streams, socket, organization]) open.close();
    await waitFor(() => expect(app.services.tail.size).toBe(0));
  });

  it('of tokens, restricted ones too, count with their user', async () => {
    const ann = await register(app, { name: 'ann' });
    const scopes = { permissions: ['sync:subscribe', 'workspace:read'] };
    const token = await issueToken(app, ann, scopes);
    const restricted = await issueToken(app, ann, { ...scopes, workspace_ids: [ann.workspaceId] });
    const streams = [await overRest(ann, token.headers), await overRest(ann, restricted.headers)];
    for (const headers of [token.headers, restricted.headers, ann.headers])
      expect(await refusedOverRest(ann, headers)).toEqual(restRefusal('user'));
    for (const stream of streams) stream.close();
    await waitFor(() => expect(app.services.tail.size).toBe(0));
  });
});
