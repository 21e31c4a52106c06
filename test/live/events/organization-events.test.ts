import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventTypes } from '../../../src/kernel/event-types.ts';
import { type Role, roles } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { openAcknowledged, openEvents, type RawSocket } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let url: string;
/** One of each role in the first one's organization. */
const people = {} as Record<Role, Person>;
beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  people.owner = await register(app);
  for (const role of roles) if (role !== 'owner') people[role] = await colleague(app, people.owner, role);
});
afterAll(() => app.close());

/** What a test has opened; it ends with the test, however that ends. */
const opened: { close(): void }[] = [];
afterEach(async () => {
  for (const reader of opened.splice(0)) reader.close();
  await open(0);
});

interface Shown {
  cursor: string;
  type: string;
  resourceId: string;
  data: Record<string, unknown>;
}
interface Reader {
  shown: () => Shown[];
  close: () => void;
}

const SELECTION = '{ cursor type orgId resourceId data actor { principalType } }';
const query = (more = '') =>
  'subscription Events($orgId: ID!, $after: String, $types: [String!]) { organizationEvents(orgId: $orgId, ' +
  `after: $after, types: $types) ${SELECTION}${more} }`;
type Wish = { after?: string; types?: string[] };
const operation = (orgId: string, wish: Wish) => ({ query: query(), variables: { orgId, ...wish } });
const shownOf = (payloads: unknown[]): Shown[] =>
  payloads.map((payload) => (payload as { data: { organizationEvents: Shown } }).data.organizationEvents);

const open = (streams: number) => waitFor(() => expect(app.services.tail.size).toBe(streams));
const nexts = ({ messages }: RawSocket) => messages.filter(({ type }) => type === 'next').map(({ payload }) => payload);

const overWs = async (orgId: string, authorization: string, wish: Wish = {}): Promise<Reader> => {
  const socket = await openAcknowledged(url, authorization);
  socket.send({ id: '1', type: 'subscribe', payload: operation(orgId, wish) });
  opened.push(socket);
  return { shown: () => shownOf(nexts(socket)), close: () => socket.close() };
};
const overSse = async (
  orgId: string,
  authorization: string,
  wish: Wish = {},
  lastEventId?: string,
): Promise<Reader> => {
  const stream = await openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      authorization,
      ...(lastEventId ? { 'last-event-id': lastEventId } : {}),
    },
    body: JSON.stringify(operation(orgId, wish)),
  });
  opened.push(stream);
  const shown = () =>
    shownOf(stream.events.filter(({ event }) => event === 'next').map(({ data }) => JSON.parse(data) as unknown));
  return { shown, close: () => stream.close() };
};
const transports = { WebSocket: overWs, SSE: overSse };

/** What a stream said, as types; its end as the reason. */
const endsOf = ({ shown }: Reader) => shown().map(({ type, data }) => data.reason ?? type);

let count = 0;
/** An event as a service writes it. @returns the id of what it is about */
async function emit(orgId: string, type: string, resourceId = `made_${++count}`): Promise<string> {
  await app.database.pool.query(
    `insert into events (id, org_id, type, actor, resource_type, resource_id, data)
     values ('evt_' || gen_random_uuid(), $1, $2, '{"principal_type":"user","principal_id":null,"username":null}', $3,
       $4, '{}')`,
    [orgId, type, type.split('.')[0], resourceId],
  );
  return resourceId;
}
/** Everybody has been told of what everybody may know. */
async function settled(readers: readonly Reader[], orgId: string): Promise<void> {
  const last = await emit(orgId, 'organization.updated');
  for (const { shown } of readers)
    await waitFor(() => expect(shown().map(({ resourceId }) => resourceId)).toContain(last));
}

/** Who receives the events of what, by hand: viewer, member, editor, admin, owner. */
const heard: Record<string, string> = {
  organization: 'x x x x x',
  organization_member: 'x x x x x',
  invitation: '- - - x x',
  identity_provider: '- - - x x',
  model: 'x x x x x',
  provider_account: '- - x x x',
  tool: 'x x x x x',
  organization_recipe: 'x x x x x',
  application: '- - - x x',
  scim_token: '- - - x x',
  webhook: '- - - x x',
  audit_stream: '- - - x x',
  api_token: '- - - x x', // of others; of one's own: below
  secret: '- x x x x',
};

describe.each(Object.entries(transports))('over %s', (_name, subscribe) => {
  it('each role is told of what it may read, and of nothing else', async () => {
    const { orgId } = people.owner;
    const readers = await Promise.all(roles.map((role) => subscribe(orgId, people[role].headers.authorization)));
    await open(roles.length);
    const made: [type: string, id: string][] = [];
    // the end of an organization is the last of its events, and has a test of its own
    for (const type of [...eventTypes, 'unknown.created'])
      if (type !== 'organization.deleted') made.push([type, await emit(orgId, type)]);
    await settled(readers, orgId);
    for (const [index, role] of roles.entries()) {
      const ids = new Set(readers[index]!.shown().map(({ resourceId }) => resourceId));
      const told = made.filter(([, id]) => ids.has(id)).map(([type]) => type);
      const expected = made
        .map(([type]) => type)
        .filter((type) => heard[type.split('.')[0]!]?.split(' ')[index] === 'x');
      expect([role, told]).toEqual([role, expected]);
    }
    for (const reader of readers) reader.close();
    await open(0);
  });

  it('a reader hears of its own API tokens, and not of those of others', async () => {
    const { orgId } = people.owner;
    const reader = await subscribe(orgId, people.viewer.headers.authorization, {
      types: ['api_token.*', 'organization.updated'],
    });
    await open(1);
    const own = await issueToken(app, { ...people.viewer, orgId });
    await issueToken(app, people.owner);
    await settled([reader], orgId);
    expect(reader.shown().map(({ type, resourceId }) => [type, resourceId])).toEqual([
      ['api_token.created', own.id],
      ['organization.updated', expect.any(String)],
    ]);
    reader.close();
    await open(0);
  });

  it('gives a reader that comes back what it missed, without what it did not ask for', async () => {
    const { orgId } = people.owner;
    const { authorization } = people.owner.headers;
    const first = await subscribe(orgId, authorization);
    await open(1);
    await settled([first], orgId);
    const { cursor } = first.shown().at(-1)!;
    first.close();
    await open(0);
    const [, model, secret] = [
      await emit(orgId, 'model.updated'),
      await emit(orgId, 'model.created'),
      await emit(orgId, 'secret.rotated'),
    ];
    const types = ['model.created', 'secret.*', 'organization.updated'];
    const again = await subscribe(orgId, authorization, { after: cursor, types });
    await open(1);
    await settled([again], orgId);
    expect(
      again
        .shown()
        .slice(0, 2)
        .map(({ resourceId }) => resourceId),
    ).toEqual([model, secret]);
    again.close();
    await open(0);
  });

  it('says which types no event has, and holds no stream', async () => {
    const { orgId, headers } = people.owner;
    const types = ['model.created', 'model', 'nothing.*', 'model.*', '*', 'constructor.*', 'resync'];
    const socket = await openAcknowledged(url, headers.authorization);
    socket.send({ id: '1', type: 'subscribe', payload: operation(orgId, { types }) });
    const answer = await socket.next(({ id }) => id === '1');
    const { errors } = answer.payload as {
      errors: { extensions: { code: string; details: { issues: { path: unknown }[] } } }[];
    };
    expect(errors[0]!.extensions.code).toBe('VALIDATION_ERROR');
    expect(errors[0]!.extensions.details.issues.map(({ path }) => path)).toEqual(
      [1, 2, 4, 5, 6].map((index) => ['types', index]),
    );
    expect(app.services.tail.size).toBe(0);
    socket.close();
  });
});

it('resumes over SSE by the id of the last frame', async () => {
  const { orgId, headers } = people.owner;
  const first = await overSse(orgId, headers.authorization);
  await open(1);
  await settled([first], orgId);
  first.close();
  await open(0);
  const missed = await emit(orgId, 'model.created');
  const again = await overSse(orgId, headers.authorization, { after: '1-1' }, first.shown().at(-1)!.cursor);
  await waitFor(() => expect(again.shown().map(({ resourceId }) => resourceId)).toEqual([missed]));
  again.close();
  await open(0);
});

it('is not for tokens that may not read what an event is about, nor for strangers', async () => {
  const { orgId } = people.owner;
  const plain = await issueToken(app, people.owner, { permissions: ['sync:subscribe', 'secret:read'] });
  const restricted = await issueToken(app, people.owner, {
    permissions: ['sync:subscribe', 'model:read'],
    workspace_ids: [people.owner.workspaceId],
  });
  const readers = await Promise.all([plain, restricted].map(({ headers }) => overWs(orgId, headers.authorization)));
  await open(2);
  for (const type of ['invitation.created', 'model.created', 'secret.created', 'api_token.created'])
    await emit(orgId, type);
  await settled(readers, orgId);
  expect(readers.map(({ shown }) => shown().map(({ type }) => type))).toEqual([
    ['secret.created', 'organization.updated'],
    ['model.created', 'organization.updated'],
  ]);
  for (const reader of readers) reader.close();
  await open(0);
  const deaf = await issueToken(app, people.owner, { permissions: ['secret:read'] });
  const stranger = await register(app);
  for (const { authorization } of [deaf.headers, stranger.headers]) {
    const socket = await openAcknowledged(url, authorization);
    socket.send({ id: '1', type: 'subscribe', payload: operation(orgId, {}) });
    expect(JSON.stringify((await socket.next(({ id }) => id === '1')).payload)).toContain('FORBIDDEN');
    socket.close();
  }
  expect(app.services.tail.size).toBe(0);
});

it('tells of a new workspace whoever may read it, and nobody else', async () => {
  const { owner } = people;
  const { orgId } = owner;
  const permissions = ['sync:subscribe', 'workspace:read'];
  const tokens = [
    await issueToken(app, owner, { permissions }),
    await issueToken(app, owner, { permissions, workspace_ids: [owner.workspaceId] }),
    await issueToken(app, owner, { permissions: ['sync:subscribe'] }),
  ];
  const all = [...roles.map((role) => people[role].headers), ...tokens.map(({ headers }) => headers)];
  const readers = await Promise.all(all.map(({ authorization }) => overWs(orgId, authorization)));
  await open(all.length);
  const made: string[] = [];
  for (const maker of [owner, people.admin]) {
    const { status, body } = await maker.call<{ workspace_id: string }>('POST', `/v1/orgs/${orgId}/workspaces`, {
      organization_id: orgId,
      name: 'New',
    });
    expect(status).toBe(201);
    made.push(body.workspace_id);
  }
  await settled(readers, orgId);
  const told = readers.map(({ shown }) => shown().filter(({ type }) => type === 'workspace.created'));
  const reads = await Promise.all(
    all.map(async (headers) => {
      const statuses = await Promise.all(
        made.map(
          async (id) => (await app.server.inject({ url: `/v1/orgs/${orgId}/workspaces/${id}`, headers })).statusCode,
        ),
      );
      return made.filter((_, index) => statuses[index] === 200);
    }),
  );
  expect(told.map((events) => events.map(({ resourceId }) => resourceId))).toEqual(reads);
  // viewers, members and editors of the organization are in neither; the restricted token is for another one
  expect(reads.map(({ length }) => length)).toEqual([0, 0, 0, 2, 2, 2, 0, 0]);
});

it('tells nothing else of workspaces, nor a workspace’s stream of the organization', async () => {
  const { orgId, workspaceId, headers, home } = people.owner;
  const reader = await overWs(orgId, headers.authorization);
  const socket = await openAcknowledged(url, headers.authorization);
  const inWorkspace =
    `subscription { workspaceEvents(orgId: "${orgId}", workspaceId: "${workspaceId}", ` +
    'types: ["namespace.*"]) { type } }';
  socket.send({ id: '1', type: 'subscribe', payload: { query: inWorkspace } });
  await open(2);
  await people.owner.call('PUT', home, { description: 'not asked for' });
  await emit(orgId, 'model.created');
  await people.owner.call('POST', `${home}/namespaces`, { name: 'asked for' });
  await socket.next(({ type }) => type === 'next');
  await settled([reader], orgId);
  expect(nexts(socket)).toEqual([{ data: { workspaceEvents: { type: 'namespace.created' } } }]);
  expect(reader.shown().map(({ type }) => type)).toEqual(['model.created', 'organization.updated']);
  reader.close();
  socket.close();
  await open(0);
});

describe('whoever loses a right', () => {
  it('is not told any more, from the next event on', async () => {
    const { orgId } = people.owner;
    const admin = await colleague(app, people.owner, 'admin');
    const reader = await overWs(orgId, admin.headers.authorization, {
      types: ['invitation.*', 'organization.updated'],
    });
    await open(1);
    const before = await emit(orgId, 'invitation.created');
    await settled([reader], orgId);
    const member = `/v1/orgs/${orgId}/members/${admin.userId}`;
    expect((await people.owner.call('PATCH', member, { role: 'member' })).status).toBe(200);
    await emit(orgId, 'invitation.created');
    await settled([reader], orgId);
    expect(
      reader
        .shown()
        .filter(({ type }) => type === 'invitation.created')
        .map(({ resourceId }) => resourceId),
    ).toEqual([before]);
    reader.close();
    await open(0);
  });

  it('has its stream ended with the membership', async () => {
    const { orgId } = people.owner;
    const member = await colleague(app, people.owner, 'member');
    const reader = await overSse(orgId, member.headers.authorization);
    await open(1);
    await people.owner.call('DELETE', `/v1/orgs/${orgId}/members/${member.userId}`);
    await emit(orgId, 'model.created');
    await open(0);
    await waitFor(() => expect(endsOf(reader)).toEqual(['membership_revoked']));
  });
});

it.each(Object.entries(transports))(
  'ends with the organization, and says so last, over %s',
  async (_name, subscribe) => {
    const owner = await register(app);
    const viewer = await colleague(app, owner, 'viewer');
    const readers = await Promise.all(
      [owner, viewer].map(({ headers }) => subscribe(owner.orgId, headers.authorization)),
    );
    await open(2);
    const { errors } = await owner.ask(`mutation { deleteOrganization(id: "${owner.orgId}") { id } }`);
    expect(errors).toBeUndefined();
    await open(0);
    for (const reader of readers)
      await waitFor(() => expect(endsOf(reader)).toEqual(['organization.deleted', 'organization_deleted']));
  },
);
