import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { createWorld, type World } from '../../support/world.ts';

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '500' } });
  world = await createWorld(app, { withResources: false });
});
afterAll(() => app.close());

/** Yoga answers what has this content type: the words are the same. */
const YOGA = 'application/graphql+json';

async function answered(contentType: string, body: string, headers: Record<string, string>) {
  const answer = await app.server.inject({
    method: 'POST',
    url: '/graphql',
    headers: { 'content-type': contentType, 'x-trace-id': 'trace', ...headers },
    payload: body,
  });
  const { date: _date, ...rest } = answer.headers;
  return { status: answer.statusCode, headers: rest, body: answer.body };
}

const ME = '{ me { id username } }';
const bodies: [what: string, body: unknown][] = [
  ['a query', { query: ME }],
  [
    'a query with variables',
    { query: 'query ($first: Int!) { organizations(first: $first) { totalCount } }', variables: { first: 2 } },
  ],
  ['nothing where nothing is needed', { query: ME, variables: null, operationName: null, extensions: null }],
  ['extensions that mean nothing here', { query: ME, extensions: { tracing: true } }],
  ['one of two operations', { query: 'query A { me { id } } query B { me { username } }', operationName: 'B' }],
  ['neither of two operations', { query: 'query A { me { id } } query B { me { username } }' }],
  ['an operation that is not there', { query: ME, operationName: 'C' }],
  ['an operation with an empty name', { query: ME, operationName: '' }],
  ['a mutation that fails', { query: 'mutation { deleteWorkspace(orgId: "org_x", id: "ws_x") { message } }' }],
  ['an error in a place that may be null', { query: '{ me { id } node(id: "ws_01HZZZZZZZZZZZZZZZZZZZZZZZ") { id } }' }],
  ['a failure, and what was found', { query: '{ me { id } workspace(orgId: "org_x", id: "ws_x") { id } }' }],
  ['input out of bounds', { query: '{ organizations(first: 1000) { totalCount } }' }],
  [
    'a variable of the wrong type',
    { query: 'query ($n: Int!) { organizations(first: $n) { totalCount } }', variables: { n: 'secret' } },
  ],
  ['a variable that is missing', { query: 'query ($n: Int!) { organizations(first: $n) { totalCount } }' }],
  ['too much', { query: '{ organizations(first: 200) { nodes { workspaces(first: 200) { nodes { id } } } } }' }],
  ['a document that is none', { query: '{ me { id ' }],
  ['a document that is empty', { query: '' }],
  ['an unknown field', { query: '{ mee { id } }' }],
  ['an introspection', { query: '{ __schema { queryType { name } } __typename }' }],
  ['a subscription', { query: 'subscription { workspaceEvents(orgId: "a", workspaceId: "b") { id } }' }],
  ['no query', {}],
  ['a query that is no text', { query: 5 }],
  ['an unknown parameter', { query: ME, more: 1 }],
  ['variables as a list', { query: ME, variables: [] }],
  ['variables as a text', { query: ME, variables: '{}' }],
  ['extensions as a text', { query: ME, extensions: 'x' }],
  ['an operation name that is no text', { query: ME, operationName: 5 }],
  ['a list of requests', [{ query: ME }]],
  ['null', null],
  ['a text', 'text'],
];

const accepts: (string | undefined)[] = [
  undefined,
  '',
  '*/*',
  'application/json',
  'application/graphql-response+json',
  'application/graphql-response+json, application/json;q=0.9',
  'application/json, application/graphql-response+json',
  'application/*',
  'APPLICATION/JSON; charset=utf-8',
  'application/json;charset=latin1',
  'application/json;charset=latin1, application/graphql-response+json',
  'text/event-stream, application/json',
  'text/html,*/*;q=0.1',
  'multipart/mixed',
  'text/html',
];

describe.each(['owner', 'a stranger'] as const)('to %s', (who) => {
  const caller = () => (who === 'owner' ? world.as('owner') : {});

  test.each(bodies)('%s is answered as yoga does', async (_what, body) => {
    const text = JSON.stringify(body);
    for (const accept of ['application/json', 'application/graphql-response+json']) {
      const headers = { ...caller(), accept };
      const wanted = await answered(YOGA, text, headers);
      for (const _time of [1, 2, 3]) {
        const got = await answered('application/json', text, headers);
        expect(got.status).toBe(wanted.status);
        expect(got.body).toBe(wanted.body);
        expect(Object.keys(got.headers)).toEqual(
          expect.arrayContaining(Object.keys(wanted.headers).filter((name) => !name.startsWith('x-ratelimit'))),
        );
        expect(got.headers['content-type']).toBe(wanted.headers['content-type']);
      }
    }
  });

  test.each([
    ['that may not start', { query: 'subscription { workspaceEvents(orgId: "a", workspaceId: "b") { id } }' }],
    [
      'with variables that are wrong',
      {
        query: 'subscription ($w: ID!) { workspaceEvents(orgId: "a", workspaceId: $w) { id } }',
        variables: { w: ['secret'] },
      },
    ],
    ['of no event', { query: 'subscription { workspaceEvents(orgId: "a", workspaceId: "b", types: ["x"]) { id } }' }],
    ['that is invalid', { query: 'subscription { workspaceEvents { id } }' }],
    ['that is none', { query: ME }],
    [
      'of which nothing is included',
      { query: 'subscription { workspaceEvents(orgId: "a", workspaceId: "b") @skip(if: true) { id } }' },
    ],
  ])('a stream %s is refused as yoga does', async (_what, body) => {
    const text = JSON.stringify(body);
    const headers = { ...caller(), accept: 'text/event-stream' };
    const wanted = await answered(YOGA, text, headers);
    const got = await answered('application/json', text, headers);
    expect(got.status).toBe(wanted.status);
    expect(got.body).toBe(wanted.body);
    expect(got.headers['content-type']).toBe(wanted.headers['content-type']);
  });
});

test.each(accepts)('the media type for Accept %j is that of yoga', async (accept) => {
  const headers: Record<string, string> = { ...world.as('owner'), ...(accept === undefined ? {} : { accept }) };
  const body = JSON.stringify({ query: ME });
  const wanted = await answered(YOGA, body, headers);
  const got = await answered('application/json; charset=utf-8', body, headers);
  expect(got.status).toBe(wanted.status);
  expect(got.headers['content-type']).toBe(wanted.headers['content-type']);
  if (wanted.status === 200) expect(got.body).toBe(wanted.body);
});

test('a text that is no JSON is refused as yoga does', async () => {
  for (const body of ['', '{', '{"query": "{ me { id } }"', '\uFEFF{"query":"{ __typename }"}']) {
    const wanted = await answered(YOGA, body, {});
    const got = await answered('application/json', body, {});
    expect(got.status).toBe(wanted.status);
    expect(got.body).toBe(wanted.body);
  }
});

test('a fault is shown as an internal error, and logged with its trace', async () => {
  const list = vi.spyOn(app.services.organizations.own, 'list').mockRejectedValue(new Error('secret detail'));
  onTestFinished(() => list.mockRestore());
  for (const type of [YOGA, 'application/json', 'application/json'])
    expect(
      JSON.parse(
        (await answered(type, JSON.stringify({ query: '{ organizations { totalCount } }' }), world.as('owner'))).body,
      ),
    ).toMatchObject({
      errors: [
        { message: 'An internal error occurred.', extensions: { code: 'INTERNAL_SERVER_ERROR', trace_id: 'trace' } },
      ],
    });
});
