import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { type Person, register } from '../../support/person.ts';
import { openAcknowledged, openEvents, type RawSocket } from '../../support/sockets.ts';
import { type IssueResult, issueToken, type TestToken } from '../../support/tokens.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

let app: TestApp;
let owner: Person;
let url: string;
/**
 * Ids of two of each: `w1`, `w2`, `n1`, `n2`, … all in `w1` but the second workspace; `o2` is another organization of
 * the owner's.
 */
let ids: Record<string, string>;

/** Texts of an operation hold `{w1}` for the id of the first workspace. */
const filled = (text: string) => text.replaceAll(/\{(\w\d)\}/g, (_, key: string) => ids[key]!);

/** An operation in both languages, and the permission that its refusal names. */
interface Operation {
  rest: [method: 'GET' | 'POST' | 'PUT', path: string, body?: object];
  graphql: string;
  permission: string;
}

const W = (w: string) => `orgId: "{o1}", workspaceId: "{${w}}"`;
const readOrganization = (o: string): Operation => ({
  rest: ['GET', `/v1/orgs/{${o}}`],
  graphql: `{ organization(id: "{${o}}") { id } }`,
  permission: 'organization:access',
});
const updateOrganization: Operation = {
  rest: ['PUT', '/v1/orgs/{o1}', {}],
  graphql: 'mutation { updateOrganization(id: "{o1}", input: {}) { id } }',
  permission: 'organization:update',
};
const inviteSomebody: Operation = {
  rest: ['POST', '/v1/orgs/{o1}/invitations', { email: 'somebody@example.test' }],
  graphql: 'mutation { createInvitation(orgId: "{o1}", input: { email: "else@example.test" }) { id } }',
  permission: 'invitation:create',
};
const addOrganizationMember: Operation = {
  rest: ['POST', '/v1/orgs/{o1}/members', { user_id: 'usr_none' }],
  graphql: 'mutation { addOrganizationMember(orgId: "{o1}", input: { userId: "usr_none" }) { userId } }',
  permission: 'organization_member:create',
};
const updateSelf: Operation = {
  rest: ['PUT', '/v1/users/{u1}', {}],
  graphql: 'mutation { updateUser(id: "{u1}", input: {}) { id } }',
  permission: 'user:update',
};
const listWorkspaces: Operation = {
  rest: ['GET', '/v1/orgs/{o1}/workspaces'],
  graphql: '{ workspaces(orgId: "{o1}") { nodes { id } } }',
  permission: 'workspace:read',
};
const readWorkspace = (w: string): Operation => ({
  rest: ['GET', `/v1/orgs/{o1}/workspaces/{${w}}`],
  graphql: `{ workspace(orgId: "{o1}", id: "{${w}}") { id } }`,
  permission: 'workspace:read',
});
const updateWorkspace = (w: string): Operation => ({
  rest: ['PUT', `/v1/orgs/{o1}/workspaces/{${w}}`, {}],
  graphql: `mutation { updateWorkspace(orgId: "{o1}", id: "{${w}}", input: {}) { id } }`,
  permission: 'workspace:update',
});
const listMembers: Operation = {
  rest: ['GET', '/v1/orgs/{o1}/workspaces/{w1}/members'],
  graphql: `{ workspaceMembers(${W('w1')}) { nodes { id } } }`,
  permission: 'workspace_member:read',
};
const readNamespace = (n: string): Operation => ({
  rest: ['GET', `/v1/orgs/{o1}/workspaces/{w1}/namespaces/${n}`],
  graphql: `{ namespace(${W('w1')}, id: "${n}") { id } }`,
  permission: 'namespace:read',
});
const updateNamespace = (n: string): Operation => ({
  rest: ['PUT', `/v1/orgs/{o1}/workspaces/{w1}/namespaces/${n}`, {}],
  graphql: `mutation { updateNamespace(${W('w1')}, id: "${n}", input: {}) { id } }`,
  permission: 'namespace:update',
});
const createThread = (n: string): Operation => ({
  rest: ['POST', `/v1/orgs/{o1}/workspaces/{w1}/namespaces/${n}/threads`, {}],
  graphql: `mutation { createThread(${W('w1')}, namespaceId: "${n}", input: {}) { id } }`,
  permission: 'thread:create',
});
const updateThread = (t: string, n: string): Operation => ({
  rest: ['PUT', `/v1/orgs/{o1}/workspaces/{w1}/namespaces/{${n}}/threads/{${t}}`, {}],
  graphql: `mutation { updateThread(${W('w1')}, namespaceId: "{${n}}", id: "{${t}}", input: {}) { id } }`,
  permission: 'thread:update',
});
const readEnvironment = (e: string): Operation => ({
  rest: ['GET', `/v1/orgs/{o1}/workspaces/{w1}/environments/{${e}}`],
  graphql: `{ environment(${W('w1')}, id: "{${e}}") { id } }`,
  permission: 'environment:read',
});
const updateEnvironment = (e: string): Operation => ({
  rest: ['PUT', `/v1/orgs/{o1}/workspaces/{w1}/environments/{${e}}`, {}],
  graphql: `mutation { updateEnvironment(${W('w1')}, id: "{${e}}", input: {}) { message } }`,
  permission: 'environment:update',
});
const readApp = (a: string): Operation => ({
  rest: ['GET', `/v1/orgs/{o1}/workspaces/{w1}/apps/{${a}}`],
  graphql: `{ app(${W('w1')}, id: "{${a}}") { id } }`,
  permission: 'app:read',
});
const updateApp = (a: string): Operation => ({
  rest: ['PUT', `/v1/orgs/{o1}/workspaces/{w1}/apps/{${a}}`, {}],
  graphql: `mutation { updateApp(${W('w1')}, id: "{${a}}", input: {}) { id } }`,
  permission: 'app:update',
});
const createApp: Operation = {
  rest: ['POST', '/v1/orgs/{o1}/workspaces/{w1}/apps', { name: 'another' }],
  graphql: `mutation { createApp(${W('w1')}, input: { name: "another" }) { id } }`,
  permission: 'app:create',
};
const releases = (a: string): Operation => ({
  rest: ['GET', `/v1/orgs/{o1}/workspaces/{w1}/apps/{${a}}/releases`],
  graphql: `{ releases(${W('w1')}, appId: "{${a}}") { nodes { id } } }`,
  permission: 'release:read',
});

interface Row {
  /** The body of the token, ids as in operations; `app_id` for one of an app. */
  token: Record<string, unknown>;
  inside: Operation[];
  outside: Operation[];
  /** Workspaces whose events may be followed, and others. */
  follows?: string[];
  followsNot?: string[];
}

const rows: Record<string, Row> = {
  'its organization': {
    token: {},
    inside: [readOrganization('o1'), readWorkspace('w1')],
    outside: [readOrganization('o2')],
    follows: ['w1'],
  },
  permissions: {
    token: { permissions: ['workspace:read', 'workspace:update'] },
    inside: [readWorkspace('w1'), updateWorkspace('w2'), listWorkspaces, readOrganization('o1')],
    outside: [readNamespace('{n1}'), updateOrganization, updateSelf, listMembers],
    followsNot: ['w1'],
  },
  'the scope `read`': {
    token: { scopes: ['read'] },
    inside: [readWorkspace('w1'), readNamespace('{n1}'), listMembers, listWorkspaces],
    outside: [updateWorkspace('w1'), createThread('{n1}')],
    followsNot: ['w1'],
  },
  'the scope `write`': {
    token: { scopes: ['write'] },
    inside: [updateWorkspace('w1'), createThread('{n1}'), readWorkspace('w2'), updateOrganization],
    outside: [updateSelf, inviteSomebody, addOrganizationMember],
  },
  'wide names': {
    token: { permissions: ['*:create', '*:update', '*:delete', '*:read'] },
    inside: [updateWorkspace('w1'), createThread('{n1}'), listMembers, updateOrganization],
    outside: [updateSelf, inviteSomebody, addOrganizationMember],
  },
  'what is sensitive, named': {
    token: { permissions: ['organization:update', 'workspace_member:*'] },
    inside: [updateOrganization, listMembers],
    outside: [readWorkspace('w1'), updateSelf],
  },
  'a resource as scope': {
    token: { scopes: ['thread', 'sync:*'] },
    inside: [createThread('{n1}'), updateThread('t1', 'n1')],
    outside: [readNamespace('{n1}'), readWorkspace('w1'), listWorkspaces],
    follows: ['w1'],
  },
  'nothing named: all but what is sensitive': {
    token: {},
    inside: [updateWorkspace('w1'), updateNamespace('{n1}'), updateApp('a1')],
    outside: [listMembers, updateSelf, inviteSomebody, addOrganizationMember],
    follows: ['w2'],
  },
  workspace_ids: {
    token: { workspace_ids: ['{w1}'] },
    inside: [
      readWorkspace('w1'),
      updateWorkspace('w1'),
      updateNamespace('{n1}'),
      listWorkspaces,
      readOrganization('o1'),
    ],
    outside: [readWorkspace('w2'), updateWorkspace('w2'), updateOrganization],
    follows: ['w1'],
    followsNot: ['w2'],
  },
  'workspace_ids, for what is the own': {
    token: { workspace_ids: ['{w1}'], permissions: ['user:read', 'user:update'] },
    inside: [],
    outside: [updateSelf],
  },
  namespace_ids: {
    token: { namespace_ids: ['{n1}'] },
    inside: [
      readNamespace('{n1}'),
      updateNamespace('{n1}'),
      createThread('{n1}'),
      updateThread('t1', 'n1'),
      readWorkspace('w1'),
      readApp('a1'),
    ],
    outside: [
      readNamespace('{n2}'),
      readNamespace('default'),
      updateNamespace('{n2}'),
      createThread('{n2}'),
      createThread('default'),
      updateThread('t2', 'n2'),
      updateWorkspace('w1'),
      updateApp('a1'),
      updateEnvironment('e1'),
      updateOrganization,
    ],
    follows: ['w1'],
  },
  'namespace_ids with the default namespace': {
    token: { namespace_ids: ['{n0}'] },
    inside: [readNamespace('{n0}'), readNamespace('default'), createThread('default'), createThread('{n0}')],
    outside: [readNamespace('{n1}'), createThread('{n1}')],
  },
  environment_ids: {
    token: { environment_ids: ['{e1}'] },
    inside: [readEnvironment('e1'), updateEnvironment('e1'), readWorkspace('w1'), readNamespace('{n1}')],
    outside: [readEnvironment('e2'), updateEnvironment('e2'), updateNamespace('{n1}'), updateWorkspace('w1')],
  },
  'namespace_ids and environment_ids: changes in either': {
    token: { environment_ids: ['{e1}'], namespace_ids: ['{n1}'] },
    inside: [updateEnvironment('e1'), createThread('{n1}')],
    outside: [updateEnvironment('e2'), createThread('{n2}'), updateApp('a1')],
  },
  'restrictions together': {
    token: { workspace_ids: ['{w1}'], namespace_ids: ['{n1}'], permissions: ['thread:create', 'workspace:read'] },
    inside: [createThread('{n1}'), readWorkspace('w1')],
    outside: [createThread('{n2}'), readWorkspace('w2'), updateThread('t1', 'n1'), readNamespace('{n1}')],
  },
  'an app: its own, in its workspace': {
    token: { app_id: '{a1}' },
    inside: [readApp('a1'), updateApp('a1'), releases('a1'), createThread('{n1}'), readWorkspace('w1'), listWorkspaces],
    outside: [
      readApp('a2'),
      updateApp('a2'),
      releases('a2'),
      createApp,
      updateWorkspace('w1'),
      readWorkspace('w2'),
      updateOrganization,
      readOrganization('o2'),
    ],
    follows: ['w1'],
    followsNot: ['w2'],
  },
};

beforeAll(async () => {
  app = await startTestApp();
  await register(app);
  owner = await register(app);
  url = await app.listen();
  const { post, get } = callsOf(app);
  ids = { u1: owner.userId, o1: owner.orgId, w1: owner.workspaceId };
  const make = async (key: string, path: string, body: object, name: string) => {
    const answer = await post(filled(path), body, owner.headers);
    if (answer.statusCode !== 201) throw new Error(`${path}: ${answer.body}`);
    const json = answer.json();
    ids[key] = (json.environment ?? json)[`${name}_id`];
  };
  await make('o2', '/v1/orgs', { name: 'second' }, 'org');
  await make('w2', '/v1/orgs/{o1}/workspaces', { organization_id: owner.orgId, name: 'second' }, 'workspace');
  const w1 = '/v1/orgs/{o1}/workspaces/{w1}';
  for (const n of [1, 2]) {
    await make(`n${n}`, `${w1}/namespaces`, { name: `namespace ${n}` }, 'namespace');
    await make(`t${n}`, `${w1}/namespaces/{n${n}}/threads`, {}, 'thread');
    await make(`a${n}`, `${w1}/apps`, { name: `app ${n}` }, 'app');
    await make(`e${n}`, `${w1}/environments`, { name: `environment ${n}`, slug: `e${n}` }, 'environment');
  }
  ids.n0 = (await get(filled(`${w1}/namespaces/default`), owner.headers)).json().namespace_id;
});
afterAll(() => app.close());

const issue = (body: Record<string, unknown>): Promise<TestToken> =>
  issueToken(app, owner, JSON.parse(filled(JSON.stringify(body))) as Record<string, unknown>);

type Outcome = 'allowed' | { refused: unknown };

async function overRest({ rest: [method, path, payload] }: Operation, { headers }: TestToken): Promise<Outcome> {
  const answer = await app.server.inject({ method, url: filled(path), headers, ...(payload ? { payload } : {}) });
  if (answer.statusCode < 300) return 'allowed';
  return { refused: answer.statusCode === 403 ? answer.json().details.required_permission : answer.body };
}

interface GraphQLAnswer {
  errors?: { extensions: { code: string; details: { required_permission?: string } } }[];
}

const outcomeOf = ({ errors }: GraphQLAnswer): Outcome =>
  errors ? { refused: errors[0]!.extensions.details?.required_permission ?? JSON.stringify(errors) } : 'allowed';

const overGraphQL = async ({ graphql }: Operation, { headers }: TestToken): Promise<Outcome> =>
  outcomeOf((await callsOf(app).graphql(filled(graphql), {}, headers)).json());

let operation = 0;
async function overSocket({ graphql }: Operation, socket: RawSocket): Promise<Outcome> {
  const id = `${++operation}`;
  socket.send({ id, type: 'subscribe', payload: { query: filled(graphql) } });
  const message = await socket.next((candidate) => candidate.id === id && candidate.type !== 'complete');
  return outcomeOf(
    message.type === 'error' ? { errors: message.payload as never } : (message.payload as GraphQLAnswer),
  );
}

const subscription = (w: string) => `subscription { workspaceEvents(${filled(W(w))}) { id } }`;
const streams = (count: number) => waitFor(() => expect(app.services.tail.size).toBe(count));

async function followOverSocket(w: string, socket: RawSocket): Promise<Outcome> {
  const id = `${++operation}`;
  const before = app.services.tail.size;
  socket.send({ id, type: 'subscribe', payload: { query: subscription(w) } });
  const refusal = () => {
    const message = socket.messages.find((candidate) => candidate.id === id && candidate.type !== 'complete');
    return message?.type === 'error' ? { errors: message.payload as never } : (message?.payload as GraphQLAnswer);
  };
  const outcome = await outcomeOfStream(before, refusal);
  socket.send({ id, type: 'complete' });
  await streams(before);
  return outcome;
}

async function followOverSse(w: string, { headers }: TestToken): Promise<Outcome> {
  const before = app.services.tail.size;
  const stream = await openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query: subscription(w) }),
  });
  const refusal = () => {
    const told = stream.events.find(({ event }) => event === 'next');
    return told && (JSON.parse(told.data) as GraphQLAnswer);
  };
  const outcome = await outcomeOfStream(before, refusal);
  stream.close();
  await streams(before);
  return outcome;
}

/** A stream is refused with an answer, or is there. */
const outcomeOfStream = (before: number, refusal: () => GraphQLAnswer | undefined): Promise<Outcome> =>
  waitUntil(() => {
    const answer = refusal();
    return answer ? outcomeOf(answer) : app.services.tail.size === before + 1 && 'allowed';
  });

describe.each(Object.entries(rows))('restricted to %s', (_what, row) => {
  let token: TestToken;
  let socket: RawSocket;
  beforeAll(async () => {
    token = await issue(row.token);
    socket = await openAcknowledged(url, token.headers.authorization);
  });
  afterAll(() => socket.close());

  const cases = [
    ...row.inside.map((op) => ({ op, side: 'lets through', wanted: 'allowed' as Outcome })),
    ...row.outside.map((op) => ({ op, side: 'refuses', wanted: { refused: op.permission } as Outcome })),
  ].map(({ op, side, wanted }) => [side, op.rest[0], op.rest[1], op, wanted] as const);
  it.each(cases)('%s %s %s, over REST, GraphQL and WebSocket alike', async (_side, _method, _path, op, wanted) => {
    expect({
      rest: await overRest(op, token),
      graphql: await overGraphQL(op, token),
      socket: await overSocket(op, socket),
    }).toEqual({ rest: wanted, graphql: wanted, socket: wanted });
  });

  const followed = [
    ...(row.follows ?? []).map((w) => ['lets through', w, 'allowed' as Outcome] as const),
    ...(row.followsNot ?? []).map((w) => ['refuses', w, { refused: 'sync:subscribe' } as Outcome] as const),
  ];
  it.each(followed)('%s the events of %s, over WebSocket and SSE alike', async (_side, w, wanted) => {
    expect({ socket: await followOverSocket(w, socket), sse: await followOverSse(w, token) }).toEqual({
      socket: wanted,
      sse: wanted,
    });
  });
});

/** Sends the path as it is: every other client would tidy it up first. */
async function rawStatus(path: string, headers: Record<string, string>): Promise<number | undefined> {
  const sent = request(url, { path, headers });
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

describe('endpoint_paths', () => {
  const paths: [string, string[], string[], string[]][] = [
    [
      'a prefix',
      ['/v1/orgs/{o1}/workspaces'],
      ['/v1/orgs/{o1}/workspaces', '/v1/orgs/{o1}/workspaces/{w1}'],
      ['/v1/orgs/{o1}', '/v1/users/{u1}'],
    ],
    ['a prefix that ends within a segment', ['/v1/orgs/{o1}/work'], [], ['/v1/orgs/{o1}/workspaces']],
    ['a prefix with a slash at its end', ['/v1/orgs/{o1}/workspaces/'], ['/v1/orgs/{o1}/workspaces'], []],
    [
      'a glob for one segment',
      ['/v1/orgs/*/workspaces/*'],
      ['/v1/orgs/{o1}/workspaces/{w1}'],
      ['/v1/orgs/{o1}/workspaces', '/v1/orgs/{o1}/workspaces/{w1}/apps'],
    ],
    [
      'a glob for any rest',
      ['/v1/orgs/*/workspaces/**'],
      ['/v1/orgs/{o1}/workspaces', '/v1/orgs/{o1}/workspaces/{w1}/apps/{a1}'],
      ['/v1/orgs/{o1}', '/v1/orgs'],
    ],
    ['two', ['/v1/users', '/v1/orgs/*'], ['/v1/users/{u1}', '/v1/orgs/{o1}'], ['/v1/orgs', '/v1/orgs/{o1}/workspaces']],
    ['everything', ['/**'], ['/v1/orgs', '/v1/orgs/{o1}'], []],
  ];
  it.each(paths)('%s', async (_what, endpoint_paths, open, closed) => {
    const { headers } = await issue({ endpoint_paths });
    const statuses = async (list: string[]) =>
      Promise.all(list.map(async (path) => (await callsOf(app).get(filled(path), headers)).statusCode));
    expect(await statuses(open)).toEqual(open.map(() => 200));
    expect(await statuses(closed)).toEqual(closed.map(() => 403));
  });

  it('name the permission of the operation, which comes after 401 and 422', async () => {
    const { headers } = await issue({ endpoint_paths: ['/v1/users'] });
    const { get, put } = callsOf(app);
    const refused = await get(filled('/v1/orgs/{o1}/workspaces/{w1}/apps/{a1}'), headers);
    expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'app:read' }]);
    const secret = await get(filled('/v1/orgs/{o1}/apps/{a1}/tokens'), headers);
    expect(secret.json().details).toEqual({ required_permission: 'app_token:read' });
    const invalid = await put(filled('/v1/orgs/{o1}/workspaces/{w1}'), { name: 5 }, headers);
    expect(invalid.statusCode).toBe(422);
    expect((await get(filled('/v1/orgs/{o1}/workspaces?limit=0'), headers)).statusCode).toBe(422);
  });

  it('close /graphql for every transport unless they name it', async () => {
    const [closed, open] = [
      await issue({ endpoint_paths: ['/v1'] }),
      await issue({ endpoint_paths: ['/v1/users', '/graphql'] }),
    ];
    const op = readOrganization('o1');
    for (const [token, wanted, stream] of [
      [closed, { refused: 'organization:access' }, { refused: 'sync:subscribe' }],
      [open, 'allowed', 'allowed'],
    ] as const) {
      const socket = await openAcknowledged(url, token.headers.authorization);
      expect(await overGraphQL(op, token)).toEqual(wanted);
      expect(await overSocket(op, socket)).toEqual(wanted);
      expect(await followOverSocket('w1', socket)).toEqual(stream);
      expect(await followOverSse('w1', token)).toEqual(stream);
      const node = await overGraphQL({ ...op, graphql: '{ node(id: "{o1}") { id } }' }, token);
      expect(node).toEqual(wanted);
      socket.close();
    }
    expect(await overRest(op, closed)).toBe('allowed');
    expect(await overRest(op, open)).toEqual({ refused: 'organization:access' });
  });

  it('leave public operations alone', async () => {
    const { headers } = await issue({ endpoint_paths: ['/v1/users'] });
    expect((await callsOf(app).get('/v1/auth/config', headers)).statusCode).toBe(200);
    expect((await callsOf(app).graphql('{ authConfig { allowRegistration } }', {}, headers)).json()).toEqual({
      data: { authConfig: { allowRegistration: true } },
    });
  });

  const tricks: [string, string, number][] = [
    ['a doubled slash', '/v1//orgs/{o1}/workspaces', 404],
    ['an empty id', '/v1/orgs//workspaces', 403],
    ['dots, encoded', '/v1/orgs/{o1}/workspaces/%2e%2e/secrets', 404],
    ['dots', '/v1/orgs/{o1}/workspaces/../../../users/{u1}', 404],
    ['an encoded slash in an id', '/v1/orgs/{o1}%2Fworkspaces', 403],
    ['an encoded path in an id', '/v1/orgs/{o1}/workspaces%2F..%2F..%2F..%2Fusers', 404],
    ['upper case', '/V1/ORGS/{o1}/WORKSPACES', 404],
    ['a query that looks like a path', '/v1/orgs/{o1}?/workspaces', 403],
    ['a fragment', '/v1/orgs/{o1}#/workspaces', 403],
    ['another route behind a slash at the end', '/v1/orgs/{o1}/', 403],
    ['a slash at the end', '/v1/orgs/{o1}/workspaces/', 200],
    ['an encoded letter', '/v1/orgs/{o1}/%77orkspaces', 200],
    ['an encoded underscore in the id', '/v1/orgs/{x1}/workspaces', 200],
  ];
  it.each(tricks)('are held against the canonical path, not the raw one: %s', async (_what, path, status) => {
    ids.x1 = ids.o1!.replace('_', '%5F');
    const { headers } = await issue({ endpoint_paths: ['/v1/orgs/{o1}/workspaces'] });
    expect(await rawStatus(filled(path), headers)).toBe(status);
  });
});

describe('lists show only what a token is restricted to', () => {
  const graphqlIds = async (query: string, { headers }: TestToken) =>
    (await callsOf(app).graphql(filled(query), {}, headers)).json().data;

  it('workspaces', async () => {
    const token = await issue({ workspace_ids: ['{w2}'] });
    const { workspaces, total } = (await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces'), token.headers)).json();
    expect([workspaces.map((w: { workspace_id: string }) => w.workspace_id), total]).toEqual([[ids.w2], 1]);
    expect(await graphqlIds('{ organization(id: "{o1}") { workspaces { totalCount nodes { id } } } }', token)).toEqual({
      organization: { workspaces: { totalCount: 1, nodes: [{ id: ids.w2 }] } },
    });
  });

  it('namespaces', async () => {
    const token = await issue({ namespace_ids: ['{n2}'] });
    const answer = await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces/{w1}/namespaces'), token.headers);
    expect(answer.json()).toMatchObject({ total: 1, namespaces: [{ namespace_id: ids.n2 }] });
    expect(await graphqlIds('{ workspace(orgId: "{o1}", id: "{w1}") { namespaces { nodes { id } } } }', token)).toEqual(
      {
        workspace: { namespaces: { nodes: [{ id: ids.n2 }] } },
      },
    );
  });

  it('environments', async () => {
    const token = await issue({ environment_ids: ['{e2}'] });
    const answer = await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces/{w1}/environments'), token.headers);
    expect(answer.json().environments.map((e: { environment_id: string }) => e.environment_id)).toEqual([ids.e2]);
  });

  it('apps', async () => {
    const token = await issue({ app_id: '{a2}' });
    const answer = await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces/{w1}/apps'), token.headers);
    expect(answer.json()).toMatchObject({ total: 1, apps: [{ app_id: ids.a2 }] });
    expect(await graphqlIds('{ workspace(orgId: "{o1}", id: "{w1}") { apps { nodes { id } } } }', token)).toEqual({
      workspace: { apps: { nodes: [{ id: ids.a2 }] } },
    });
  });

  it('a namespace or an environment stands for its workspace too, also when it is gone', async () => {
    const workspacesOf = async (headers: Record<string, string>) =>
      (await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces'), headers))
        .json<{ workspaces: { workspace_id: string }[] }>()
        .workspaces.map(({ workspace_id }) => workspace_id);
    for (const body of [{ namespace_ids: ['{n1}'] }, { environment_ids: ['{e1}'] }]) {
      const { headers } = await issue(body);
      expect(await workspacesOf(headers)).toEqual([ids.w1]);
      expect((await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces/{w2}/apps'), headers)).statusCode).toBe(403);
      expect((await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces/{w1}/apps'), headers)).statusCode).toBe(200);
    }
    const url = filled('/v1/orgs/{o1}/workspaces/{w1}/namespaces');
    const made = await callsOf(app).post(url, { name: 'Short lived' }, owner.headers);
    const { namespace_id: id } = made.json<{ namespace_id: string }>();
    const { headers } = await issue({ namespace_ids: [id] });
    expect((await callsOf(app).delete(`${url}/${id}`, owner.headers)).statusCode).toBeLessThan(300);
    await waitUntil(async () => (await workspacesOf(headers)).length === 0);
    expect((await callsOf(app).get(filled('/v1/orgs/{o1}/workspaces/{w1}/apps'), headers)).statusCode).toBe(403);
  });

  it('and of the tokens of its user its own line alone', async () => {
    const tokens = filled('/v1/orgs/{o1}/api-tokens');
    const listed = async (headers: Record<string, string>) =>
      (await callsOf(app).get(tokens, headers))
        .json<{ tokens: { token_id: string }[] }>()
        .tokens.map(({ token_id }) => token_id);
    const other = await issue({ name: 'other', permissions: ['api_token:read'] });
    const confined = await issue({ workspace_ids: ['{w1}'], permissions: ['api_token:read', 'api_token:create'] });
    const child = await callsOf(app).post(
      tokens,
      { name: 'child', workspace_ids: [ids.w1], permissions: ['api_token:read'] },
      confined.headers,
    );
    expect(child.statusCode).toBe(201);
    const { token_id: childId } = child.json<IssueResult>().token;
    expect((await listed(confined.headers)).sort()).toEqual([confined.id, childId].sort());
    expect(await listed(other.headers)).toEqual(expect.arrayContaining([other.id, confined.id, childId]));
    const node = async (id: string) =>
      (await callsOf(app).graphql('query ($id: ID!) { node(id: $id) { id } }', { id }, confined.headers)).json().data
        .node;
    expect([await node(other.id), await node(childId)]).toEqual([null, { id: childId }]);
  });

  it('and node(id) finds nothing else', async () => {
    const found = async (body: Record<string, unknown>, wanted: string[]) => {
      const { headers } = await issue(body);
      const nodes = await Promise.all(
        wanted.map((key) =>
          callsOf(app).graphql('query ($id: ID!) { node(id: $id) { id } }', { id: ids[key] }, headers),
        ),
      );
      return wanted.filter((_, index) => nodes[index]!.json().data.node !== null);
    };
    const all = ['o1', 'o2', 'w1', 'w2', 'n1', 'n2', 't1', 't2', 'a1', 'a2', 'e1', 'e2'];
    expect(await found({}, all)).toEqual(all.filter((key) => key !== 'o2'));
    expect(await found({ workspace_ids: ['{w2}'] }, all)).toEqual(['o1', 'w2']);
    expect(await found({ namespace_ids: ['{n1}'] }, all)).toEqual(['o1', 'w1', 'n1', 't1', 'a1', 'a2', 'e1', 'e2']);
    const others = ['o2', 'w2', 'e2'];
    expect(await found({ environment_ids: ['{e1}'] }, all)).toEqual(all.filter((key) => !others.includes(key)));
    expect(await found({ app_id: '{a1}' }, all)).toEqual(['o1', 'w1', 'n1', 'n2', 't1', 't2', 'a1', 'e1', 'e2']);
  });
});

describe('what users may do without a permission, because it is their own, a token must be granted', () => {
  const leave = async (body: Record<string, unknown>, path: string) => {
    const member = await register(app);
    const members = filled('/v1/orgs/{o1}/workspaces/{w1}/members');
    await callsOf(app).post(members, { user_id: member.userId, role: 'admin' }, owner.headers);
    const filledBody = JSON.parse(filled(JSON.stringify(body))) as Record<string, unknown>;
    const { headers } = await issueToken(app, { ...member, orgId: owner.orgId }, filledBody);
    const answer = await callsOf(app).delete(`${filled(path)}/${member.userId}`, headers);
    return answer.statusCode === 403 ? answer.json().details.required_permission : answer.statusCode;
  };
  const workspace = '/v1/orgs/{o1}/workspaces/{w1}/members';
  const organization = '/v1/orgs/{o1}/members';
  const named = ['workspace:read', 'workspace_member:delete'];

  it.each([
    ['leaving a workspace', {}, workspace, 'workspace_member:delete'],
    ['leaving a workspace', { permissions: named }, workspace, 204],
    ['leaving a workspace', { permissions: named, namespace_ids: ['{n1}'] }, workspace, 'workspace_member:delete'],
    ['leaving an organization', { scopes: ['read'] }, organization, 'organization_member:delete'],
    ['leaving an organization', {}, organization, 'organization_member:delete'],
    [
      'leaving an organization',
      { scopes: ['admin'], workspace_ids: ['{w1}'] },
      organization,
      'organization_member:delete',
    ],
    ['leaving an organization', { permissions: ['organization_member:delete'] }, organization, 204],
  ])('%s with %j', async (_what, body, path, outcome) => {
    expect(await leave(body, path)).toBe(outcome);
  });

  it('reading users: by their query, by node, as owner of a workspace, and the user itself', async () => {
    const paths = [
      '{ user(id: "{u1}") { id } }',
      '{ node(id: "{u1}") { id } }',
      '{ me { id } }',
      '{ workspace(orgId: "{o1}", id: "{w1}") { owner { id } } }',
    ];
    const seen = async (permissions: string[]) => {
      const { headers } = await issue({ permissions });
      const answers = paths.map(async (query) => (await callsOf(app).graphql(filled(query), {}, headers)).body);
      return (await Promise.all(answers)).map((body) => body.includes(`"id":"${owner.userId}"`));
    };
    expect(await seen(['workspace:read'])).toEqual([false, false, false, false]);
    expect(await seen(['workspace:read', 'user:read'])).toEqual([true, true, true, true]);
  });

  it('the preferences', async () => {
    const change = async (body: Record<string, unknown>) => {
      const { headers } = await issue(body);
      return (await callsOf(app).patch('/v1/users/me/preferences', { preferences: { a: 1 } }, headers)).statusCode;
    };
    expect(await change({})).toBe(403);
    expect(await change({ permissions: ['user:update'] })).toBe(200);
    expect(await change({ permissions: ['user:update'], workspace_ids: ['{w1}'] })).toBe(403);
  });
});

describe('an id that a caller has chosen', () => {
  it('does not pass for the place that it looks like', async () => {
    const url = filled('/v1/orgs/{o1}/model-catalog');
    const model = { logical_model_id: ids.e1, name: 'called like an environment' };
    expect((await callsOf(app).post(url, model, owner.headers)).statusCode).toBe(201);
    const { headers } = await issue({ environment_ids: ['{e1}'] });
    const refused = await callsOf(app).patch(`${url}/${ids.e1}`, { name: 'changed' }, headers);
    expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'model:update' }]);
  });
});

describe('live rights', () => {
  it('are those of the user at the moment of use', async () => {
    const { post, put, patch } = callsOf(app);
    const member = await register(app);
    const members = filled('/v1/orgs/{o1}/workspaces/{w1}/members');
    await post(members, { user_id: member.userId, role: 'admin' }, owner.headers);
    const { headers } = await issueToken(app, { ...member, orgId: owner.orgId });
    const rename = () => put(filled('/v1/orgs/{o1}/workspaces/{w1}'), {}, headers);
    expect((await rename()).statusCode).toBe(200);
    await patch(`${members}/${member.userId}`, { role: 'viewer' }, owner.headers);
    const refused = await rename();
    expect([refused.statusCode, refused.json().details]).toEqual([403, { required_permission: 'workspace:update' }]);
    await patch(`${members}/${member.userId}`, { role: 'admin' }, owner.headers);
    expect((await rename()).statusCode).toBe(200);
  });
});
