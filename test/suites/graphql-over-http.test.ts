import { type GraphQLObjectType, getNamedType, isLeafType } from 'graphql';
import { serverAudits } from 'graphql-http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { PASSWORD } from '../support/person.ts';
import { graphqlRequest } from '../support/requests.ts';
import { openAcknowledged, openSocket } from '../support/sockets.ts';
import { waitUntil } from '../support/wait.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let url: string;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app, { withResources: false });
  url = await app.listen();
});
afterAll(() => app.close());

describe('GraphQL over HTTP', () => {
  const audits = serverAudits({
    url: () => `${url}/graphql`,
    fetchFn: (input: string, init?: RequestInit) => fetch(input, init),
  });
  test.each(audits.filter(({ name }) => !name.startsWith('MAY')).map((audit) => [audit.name, audit] as const))(
    '%s',
    async (_title, audit) => {
      const result = await audit.fn();
      expect(result.status, 'reason' in result ? result.reason : '').toBe('ok');
      if ('response' in result) await result.response.body?.cancel();
    },
  );

  test('what MAY be, as it is today: nothing was lost', async () => {
    const missing: string[] = [];
    const optional = audits.filter(({ name }) => name.startsWith('MAY'));
    expect(optional).not.toEqual([]);
    for (const audit of optional) {
      const result = await audit.fn();
      if (result.status !== 'ok') missing.push(audit.name);
    }
    expect(missing).toEqual([]);
  });
});

const RESPONSE_TYPE = 'application/graphql-response+json';

const times = (count: number, text: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => text(i)).join(' ');
const nested = (depth: number): string => (depth === 0 ? '{ __typename }' : `{ __typename ... ${nested(depth - 1)} }`);

interface Request {
  query?: string;
  variables?: Record<string, unknown>;
  operationName?: string;
  extensions?: Record<string, unknown>;
}

/** What the audits leave out: each document of theirs is refused for its syntax or its fields. */
describe.each(['POST', 'POST by yoga', 'GET'])('the status over %s', (how) => {
  const ask = (
    accept: string,
    { query, variables, operationName, extensions }: Request,
    headers = world.as('owner'),
  ) => {
    const params = { query, variables, operationName, extensions };
    const search = Object.entries(params).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, typeof value === 'string' ? value : JSON.stringify(value)]],
    );
    const type = how === 'POST' ? 'application/json' : 'application/graphql+json';
    return app.server.inject(
      how === 'GET'
        ? { url: `/graphql?${new URLSearchParams(search).toString()}`, headers: { accept, ...headers } }
        : { method: 'POST', url: '/graphql', headers: { accept, ...headers, 'content-type': type }, payload: params },
    );
  };
  const events = (variable: string) =>
    `subscription ($w: ID!) { workspaceEvents(orgId: "${world.ids.org_id}", workspaceId: ${variable}) { id } }`;
  const pages = times(12, (i) => `a${i}: organizations(first: 1000) { nodes { id } }`);

  test.each<[why: string, request: () => Request, status?: number, ofJson?: number]>([
    ['its syntax', () => ({ query: '{ me { id ' })],
    ['an unknown field', () => ({ query: '{ mee { id } }' })],
    ['no text', () => ({})],
    ['a variable that is missing', () => ({ query: 'query ($id: ID!) { node(id: $id) { id } }' })],
    [
      'a variable that is null',
      () => ({ query: 'query ($id: ID!) { node(id: $id) { id } }', variables: { id: null } }),
    ],
    [
      'a variable of another type',
      () => ({ query: 'query ($n: Int!) { organizations(first: $n) { totalCount } }', variables: { n: 'much' } }),
    ],
    ['its cost', () => ({ query: `{ ${pages} }` })],
    ['its depth', () => ({ query: `{ me ${nested(40)} }` })],
    ['two operations without a name', () => ({ query: 'query A { me { id } } query B { me { id } }' }), 400, 400],
    ['an operation that is not there', () => ({ query: 'query A { me { id } }', operationName: 'B' }), 400, 400],
    ['an unknown hash', () => ({ extensions: { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } } })],
    ['a subscription without a variable', () => ({ query: events('$w') })],
    ['a place that is not there', () => ({ query: events('$w'), variables: { w: 'ws_x' } }), 404],
  ])(
    'of an operation that is refused is 4xx for who understands it: %s',
    async (_why, request, status = 400, json = 200) => {
      const answer = await ask(RESPONSE_TYPE, request());
      expect(answer.json()).not.toHaveProperty('data');
      expect(answer.json<Result>().errors?.length).toBeGreaterThan(0);
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([status, `${RESPONSE_TYPE}; charset=utf-8`]);
      const plain = await ask('application/json', request());
      expect([plain.statusCode, plain.headers['content-type']]).toEqual([json, 'application/json; charset=utf-8']);
      expect(plain.json()).toEqual(answer.json());
    },
  );

  test('of a subscription of a stranger is 401', async () => {
    const answer = await ask(
      RESPONSE_TYPE,
      { query: events('$w'), variables: { w: world.ids.workspace_id } },
      {} as never,
    );
    expect([answer.statusCode, answer.json<Result>()]).toMatchObject([
      401,
      { errors: [{ path: ['workspaceEvents'] }] },
    ]);
    expect(answer.json()).not.toHaveProperty('data');
  });

  test.each<[what: string, query: string, data: unknown]>([
    ['a field that may be null', '{ node(id: "ws_01HZZZZZZZZZZZZZZZZZZZZZZZ") { id } }', { node: null }],
    [
      'one field of two',
      '{ __typename node(id: "ws_01HZZZZZZZZZZZZZZZZZZZZZZZ") { id } }',
      { __typename: 'Query', node: null },
    ],
    ['all data', '{ organizations(first: -1) { totalCount } }', null],
  ])('of an operation that ran is 200, whatever failed: %s', async (_what, query, data) => {
    for (const accept of [RESPONSE_TYPE, 'application/json']) {
      const answer = await ask(accept, { query });
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, `${accept}; charset=utf-8`]);
      expect(answer.json()).toMatchObject({ data });
    }
  });

  test.each(['text/html;q=0, image/png', 'application/json;q=0', '*/*;q=0', 'application/json;charset=latin1'])(
    'is 406 where nothing is acceptable: %s',
    async (accept) => {
      const answer = await ask(accept, { query: '{ me { id } }' });
      expect([answer.statusCode, answer.json<Result>()]).toEqual([
        406,
        {
          errors: [
            {
              message:
                '"Accept" must allow one of application/json, application/graphql-response+json, text/event-stream, ' +
                'multipart/mixed, in UTF-8.',
              extensions: { code: 'NOT_ACCEPTABLE' },
            },
          ],
        },
      ]);
    },
  );

  test.each(['application/json', RESPONSE_TYPE, 'multipart/mixed'])(
    'of a subscription is 406 to %s',
    async (accept) => {
      const answer = await ask(accept, { query: events('$w'), variables: { w: world.ids.workspace_id } });
      expect([answer.statusCode, answer.json<Result>()]).toEqual([
        406,
        {
          errors: [
            {
              message: 'For a subscription, "Accept" must allow text/event-stream.',
              extensions: { code: 'NOT_ACCEPTABLE' },
            },
          ],
        },
      ]);
    },
  );
});

test('a mutation whose answer nobody would take does not run', async () => {
  const query = `mutation ($org: ID!) { createWorkspace(orgId: $org, input: { organizationId: $org, name: "Unread" }) {
    id } }`;
  const request = graphqlRequest(query, { org: world.ids.org_id }, world.as('owner').authorization);
  const answer = await app.server.inject({ ...request, headers: { ...request.headers, accept: 'text/html' } });
  expect(answer.statusCode).toBe(406);
  const list = graphqlRequest(
    `{ workspaces(orgId: "${world.ids.org_id}") { nodes { name } } }`,
    {},
    world.as('owner').authorization,
  );
  expect((await app.server.inject(list)).body).not.toContain('Unread');
});

interface Result {
  data?: Record<string, unknown> | null;
  errors?: { message: string; extensions?: { code?: string } }[];
}

/** One operation over each of the three transports. */
const transports: Record<string, (query: string, variables?: Record<string, unknown>) => Promise<Result>> = {
  POST: async (query, variables = {}) =>
    (await app.server.inject(graphqlRequest(query, variables, world.as('owner').authorization))).json<Result>(),
  SSE: async (query, variables = {}) => {
    const request = graphqlRequest(query, variables, world.as('owner').authorization);
    const answer = await app.server.inject({
      ...request,
      headers: { ...request.headers, accept: 'text/event-stream' },
    });
    return JSON.parse(/^data: (.+)$/m.exec(answer.body)?.[1] ?? answer.body) as Result;
  },
  WebSocket: async (query, variables = {}) => {
    const socket = await openAcknowledged(url, world.as('owner').authorization);
    socket.send({ id: '1', type: 'subscribe', payload: { query, variables } });
    const message = await socket.next(({ type }) => type === 'next' || type === 'error');
    socket.close();
    return message.type === 'error' ? { errors: message.payload as Result['errors'] } : (message.payload as Result);
  },
};

const credentials = () => `{ username: "${world.username}", password: "${PASSWORD}" }`;

/** Documents that ask for too much, and one beside each that does not. */
const limits: [what: string, refused: () => string, accepted: () => string][] = [
  ['aliases', () => `{ ${times(31, (i) => `a${i}: me { id }`)} }`, () => `{ ${times(5, (i) => `a${i}: me { id }`)} }`],
  ['tokens', () => `{ me { ${times(2_100, () => 'id')} } }`, () => `{ me { ${times(100, () => 'id')} } }`],
  [
    'directives',
    () => `{ me { ${times(51, () => '... @include(if: true) { id }')} } }`,
    () => `{ me { ${times(5, () => '... @include(if: true) { id }')} } }`,
  ],
  ['depth, through inline fragments', () => `{ me ${nested(40)} }`, () => `{ me ${nested(2)} }`],
  [
    'circular introspection',
    () => '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }',
    () => '{ __schema { queryType { name } } }',
  ],
  [
    'rows',
    () =>
      `{ workspaces(orgId: "${world.ids.org_id}", first: 200) { nodes { members(first: 10000) { nodes { id } } } } }`,
    () => `{ workspaces(orgId: "${world.ids.org_id}", first: 2) { nodes { members(first: 2) { nodes { id } } } } }`,
  ],
  [
    'rows, by the default of a variable',
    () =>
      `query ($n: Int! = 10000) { workspaces(orgId: "${world.ids.org_id}", first: 200) { nodes { members(first: $n) {
        nodes { id } } } } }`,
    () =>
      `query ($n: Int! = 3) { workspaces(orgId: "${world.ids.org_id}", first: 2) { nodes { members(first: $n) { nodes {
        id } } } } }`,
  ],
  [
    'credentials, by aliases',
    () =>
      `mutation { a: login(input: ${credentials()}) { tokenType } b: login(input: ${credentials()}) { tokenType } }`,
    () => `mutation { a: login(input: ${credentials()}) { tokenType } }`,
  ],
  [
    'credentials, by a fragment',
    () =>
      `mutation { ...F login(input: ${credentials()}) { tokenType } } fragment F on Mutation {
        b: login(input: ${credentials()}) { tokenType } ... on Mutation { forgotPassword(input: {
        email: "a@example.test" }) { email } } }`,
    () => `mutation { ...F } fragment F on Mutation { login(input: ${credentials()}) { tokenType } }`,
  ],
];

describe.each(Object.keys(transports))('limits over %s', (transport) => {
  test.each(limits)('%s', async (_what, refused, accepted) => {
    const bad = await transports[transport]!(refused());
    expect(bad.errors?.length, JSON.stringify(bad)).toBeGreaterThan(0);
    expect(bad.data ?? null).toBeNull();
    const good = await transports[transport]!(accepted());
    expect(good.errors, JSON.stringify(good)).toBeUndefined();
    expect(good.data).toBeTruthy();
  });

  test('names are not suggested, machinery is not shown', async () => {
    const { errors } = await transports[transport]!('{ mee { id } }');
    expect(errors?.[0]?.message).toContain('Cannot query field');
    expect(JSON.stringify(errors)).not.toMatch(/Did you mean|node_modules|stack/);
  });
});

describe.each(Object.keys(transports))('a subscription of which nothing is included over %s', (transport) => {
  const field = 'workspaceEvents(orgId: "a", workspaceId: "b")';

  test.each([
    ['by a literal', `subscription { ${field} @skip(if: true) { id } }`],
    ['around a fragment', `subscription { ...F } fragment F on Subscription { ${field} @include(if: false) { id } }`],
  ])('is a mistake of its document, %s', async (_how, query) => {
    expect(await transports[transport]!(query)).toEqual({
      errors: [
        {
          message: 'The subscription selects nothing: @skip and @include exclude all of it.',
          locations: [{ line: 1, column: 1 }],
        },
      ],
    });
  });

  test('is not one of which something is', async () => {
    const query = `subscription { ${field} @skip(if: false) @include(if: true) { id } }`;
    expect((await transports[transport]!(query)).errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });
});

describe('over GET', () => {
  const get = (query: string, accept: string) =>
    app.server.inject({ url: `/graphql?${query}`, headers: { ...world.as('owner'), accept } });

  test.each([
    ['variables', 'variables=x'],
    ['variables beside a query', 'query=%7B__typename%7D&variables=%7B'],
    ['extensions', 'query=%7B__typename%7D&extensions=x'],
  ])('%s that are no JSON are refused as such a body is', async (_what, query) => {
    for (const accept of ['application/json', 'application/graphql-response+json', '*/*']) {
      const answer = await get(query, accept);
      expect(answer.statusCode).toBe(400);
      expect(answer.json()).toEqual({
        errors: [
          {
            message: 'The parameters "variables" and "extensions" must be JSON.',
            extensions: {
              code: 'BAD_REQUEST',
              originalError: { name: 'SyntaxError', message: expect.any(String) as string },
            },
          },
        ],
      });
    }
    const streamed = await get(query, 'text/event-stream');
    expect([streamed.statusCode, streamed.body]).toEqual([200, expect.stringContaining('must be JSON.')]);
  });

  test('parameters that are JSON are read', async () => {
    const query = encodeURIComponent('query ($first: Int!) { organizations(first: $first) { totalCount } }');
    const answer = await get(`query=${query}&variables=%7B%22first%22%3A1%7D&extensions=%7B%7D`, 'application/json');
    expect(answer.json()).toEqual({ data: { organizations: { totalCount: 1 } } });
  });
});

describe.each(['POST', 'WebSocket'])('the size of pages within pages over %s', (transport) => {
  const send = (query: string, variables?: Record<string, unknown>) => transports[transport]!(query, variables);
  const lists = (first: string) =>
    `{ organizations(first: ${first}) { nodes { id workspaces(first: ${first}) { nodes { id members(first: ${first}) {
      nodes { userId } } } } } } }`;

  test.each<[how: string, query: string, variables?: Record<string, unknown>]>([
    ['as literals', lists('50')],
    ['in variables', `query ($n: Int!) ${lists('$n')}`, { n: 50 }],
    ['by the defaults of variables', `query ($n: Int! = 50) ${lists('$n')}`],
    [
      'by a default of a variable above that of the argument',
      `query ($n: Int! = 200) ${lists('$n').replace('$n', '1')}`,
    ],
    ['in variables over small defaults', `query ($n: Int! = 1) ${lists('$n')}`, { n: 50 }],
    ['by the default of the argument', lists('50').replaceAll('(first: 50)', '')],
    ['in edges', `${lists('50').replaceAll('nodes {', 'edges { node {').slice(0, -1)} } } } }`],
  ])('is bounded when it is given %s', async (_how, query, variables) => {
    const { data, errors } = await send(query, variables);
    expect(data ?? null).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_LARGE' } }]);
  });

  test('lets an ordinary page through, with every field', async () => {
    const fields = Object.values((schema.getType('Workspace') as GraphQLObjectType).getFields()).filter(
      ({ type, args }) => isLeafType(getNamedType(type)) && args.length === 0,
    );
    expect(fields.length).toBeGreaterThan(8);
    const names = fields.map(({ name }) => name).join(' ');
    const { data, errors } = await send(
      `{ workspaces(orgId: "${world.ids.org_id}", first: 50) { totalCount pageInfo { hasNextPage endCursor } nodes {
        ${names} } } }`,
    );
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({ workspaces: { totalCount: 1, nodes: [{ id: world.ids.workspace_id }] } });
  });
});

describe('over POST alone', () => {
  const post = (payload: string, headers: Record<string, string> = {}) =>
    app.server.inject({
      method: 'POST',
      url: '/graphql',
      headers: { 'content-type': 'application/json', ...headers, ...world.as('owner') },
      payload,
    });

  test('a batch is refused', async () => {
    const answer = await post('[{"query":"{ me { id } }"},{"query":"{ me { id } }"}]');
    expect(answer.statusCode).toBeGreaterThanOrEqual(400);
    expect(answer.statusCode).toBeLessThan(500);
    expect(answer.body).not.toContain(world.accounts.owner.userId);
  });

  test.each(['text/plain', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded'])(
    '%s, which a foreign page could send, is refused',
    async (type) => {
      const logout = '{"query":"mutation { logout { __typename } }"}';
      const payload = type.startsWith('multipart')
        ? `--x\r\ncontent-disposition: form-data; name="operations"\r\n\r\n${logout}\r\n--x--\r\n`
        : type.startsWith('text')
          ? logout
          : 'query=mutation+%7B+logout+%7B+__typename+%7D+%7D';
      const answer = await post(payload, { 'content-type': type });
      expect(answer.statusCode).toBeGreaterThanOrEqual(400);
      expect(answer.statusCode).toBeLessThan(500);
      expect((await app.server.inject({ url: '/v1/auth/me', headers: world.as('owner') })).statusCode).toBe(200);
    },
  );

  test('GET never changes anything', async () => {
    const answer = await app.server.inject({
      url: `/graphql?query=${encodeURIComponent('mutation { logout { __typename } }')}`,
      headers: { ...world.as('owner'), accept: 'application/json' },
    });
    expect(answer.statusCode).toBe(405);
    expect((await app.server.inject({ url: '/v1/auth/me', headers: world.as('owner') })).statusCode).toBe(200);
  });

  test('a million variables that are wrong, or unknown, are answered in few words', async () => {
    const variables = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`v${i}`, i]));
    const answer = await post(JSON.stringify({ query: '{ me { id } }', variables }));
    expect(answer.body.length).toBeLessThan(20_000);
    const input = { name: 5, tags: Array.from({ length: 50_000 }, () => 5) };
    const query = 'mutation ($i: UpdateWorkspaceInput!) { updateWorkspace(orgId: "a", id: "b", input: $i) { id } }';
    expect((await post(JSON.stringify({ query, variables: { i: input } }))).body.length).toBeLessThan(50_000);
  });

  test('a body past the limit is not read', async () => {
    const answer = await post(
      JSON.stringify({ query: '{ me { id } }', variables: { a: 'x'.repeat(3 * 1024 * 1024) } }),
    );
    expect(answer.statusCode).toBe(413);
    const chunked = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Blob([`{"query":"{ me { id } }","a":"${'x'.repeat(3 * 1024 * 1024)}"}`]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(chunked.status).toBe(413);
  });

  test('an empty body, chunked or not, is refused at once', async () => {
    const empty = { method: 'POST', headers: { 'content-type': 'application/json' } };
    expect((await fetch(`${url}/graphql`, empty)).status).toBe(400);
    expect(
      (await fetch(`${url}/graphql`, { ...empty, body: new Blob([]).stream(), duplex: 'half' } as RequestInit)).status,
    ).toBe(400);
  });

  test('introspection can be switched off', async () => {
    const silent = await startTestApp({
      env: { GRAPHQL_INTROSPECTION: 'false', DATA_DIR: app.dataDir },
      databaseUrl: app.database.url,
    });
    try {
      for (const query of ['{ __schema { queryType { name } } }', '{ __type(name: "User") { name } }']) {
        const answer = await silent.server.inject(graphqlRequest(query));
        expect(answer.json<Result>().errors?.length).toBeGreaterThan(0);
        expect(answer.json<Result>().data ?? null).toBeNull();
      }
      expect(
        (await silent.server.inject(graphqlRequest('{ authConfig { __typename allowRegistration } }'))).json<Result>()
          .errors,
      ).toBeUndefined();
    } finally {
      await silent.close();
    }
  });
});

describe('close codes of the socket', () => {
  const init = () => ({ type: 'connection_init', payload: world.as('owner') });
  const query = {
    id: '1',
    type: 'subscribe',
    payload: { query: `subscription { workspaceEvents(orgId: "${''}", workspaceId: "") { id } }` },
  };

  test('4400 for an invalid message', async () => {
    for (const message of ['no json', '{}', '{"type":"unknown"}', '[]', 'null', '{"type":"subscribe"}']) {
      const socket = await openSocket(url);
      socket.send(message);
      expect(await socket.closed(), message).toBe(4400);
    }
  });

  test('4401 for an operation before the greeting', async () => {
    const socket = await openSocket(url);
    socket.send(query);
    expect(await socket.closed()).toBe(4401);
  });

  test.each([
    ['no token', {}],
    ['garbage', { authorization: 'Bearer garbage' }],
    ['a token of the wrong type', { authorization: 5 }],
  ])('4403 for %s', async (_what, payload) => {
    const socket = await openSocket(url);
    socket.send({ type: 'connection_init', payload });
    expect(await socket.closed()).toBe(4403);
    expect(socket.messages).toEqual([]);
  });

  test('the header of the upgrade request authenticates, too', async () => {
    const socket = await openSocket(url, world.as('owner'));
    socket.send({ type: 'connection_init' });
    await socket.next(({ type }) => type === 'connection_ack');
    socket.close();
  });

  test('4408 for a socket that says nothing', async () => {
    const socket = await openSocket(url);
    expect(await socket.closed()).toBe(4408);
  });

  test('4409 for an id that is in use', async () => {
    const socket = await openAcknowledged(url, world.as('owner').authorization);
    const open = {
      id: 'same',
      type: 'subscribe',
      payload: {
        query: `subscription {
          workspaceEvents(orgId: "${world.ids.org_id}", workspaceId: "${world.ids.workspace_id}") { id } }`,
      },
    };
    socket.send(open);
    socket.send(open);
    expect(await socket.closed()).toBe(4409);
  });

  test('4429 for a second greeting', async () => {
    const socket = await openSocket(url);
    socket.send(init());
    socket.send(init());
    expect(await socket.closed()).toBe(4429);
  });

  test('1009 for a message past 64 KiB, and no more streams than a socket may have', async () => {
    const shouted = vi.spyOn(console, 'error').mockReturnValue(undefined);
    onTestFinished(() => shouted.mockRestore());
    const huge = await openAcknowledged(url, world.as('owner').authorization);
    huge.send({ id: '1', type: 'subscribe', payload: { query: `{ me { id } } # ${'x'.repeat(70_000)}` } });
    expect(await huge.closed()).toBe(1009);
    expect(shouted).not.toHaveBeenCalled();
    const socket = await openAcknowledged(url, world.as('owner').authorization);
    for (let i = 0; i < 25; i++) {
      const events = `subscription {
        workspaceEvents(orgId: "${world.ids.org_id}", workspaceId: "${world.ids.workspace_id}") { id } }`;
      socket.send({ id: `s${i}`, type: 'subscribe', payload: { query: events } });
    }
    // the socket counts once as a connection with streams, and has its own limit of operations
    const refused = () =>
      new Set(
        socket.messages
          .filter((message) => JSON.stringify(message).includes('errors') || message.type === 'error')
          .map(({ id }) => id),
      );
    await waitUntil(() => refused().size === 5);
    expect([...refused()].filter((id) => Number(String(id).slice(1)) < 20)).toEqual([]);
    socket.close();
  });
});
