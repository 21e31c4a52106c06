import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Plan } from '../../src/engine/execution/plan.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { hostileDocuments } from '../support/hostile-documents.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { operations, routeOf } from '../support/operations.ts';
import { stopAges } from '../support/passing-time.ts';
import { graphqlRequest, partsOf } from '../support/requests.ts';
import { argumentsOf, documentOf, rootFields, showsRecords, sumsRecords, titleOf } from '../support/root-fields.ts';
import { ofAnyMoment } from '../support/signed-links.ts';
import { stopClock, stopClockFor } from '../support/stopped-clock.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';
import { writtenRequest } from '../support/written.ts';

/*
 * graphql-js executes a document that a client sends for the first time; later its plan does. Both must give the same
 * answer, byte for byte.
 */
let app: TestApp;
let world: World;
const id = () => world.ids.workspace_id;
const org = () => world.ids.org_id;
/** Nothing is added to its sums. */
const dayThatIsOver = new Date(Date.now() - 10 * 86_400_000).toISOString().slice(0, 10);
const runs = vi.spyOn(Plan.prototype, 'run');
beforeAll(async () => {
  app = await startTestApp({
    env: {
      GRAPHQL_MAX_COST: '1000000',
      GRAPHQL_MAX_TOKENS: '20000',
      GRAPHQL_MAX_DEPTH: '20',
      RATE_LIMIT_RPS: '0',
      // of what is read side by side, errors come as the database answers: one connection answers in turn
      DATABASE_POOL_SIZE: '1',
    },
  });
  world = await createWorld(app);
  for (const list of listRoutes) await addRows(app, world, list, 3);
  await app.database.pool.query(
    `insert into activity_uses (org_id, workspace_id, start, resource_type, resource_id, requests, errors)
      values ($1, $2, $3, 'workspace', $2, 7, 1), ($1, $2, $3, 'secret', $4, 9, 2)`,
    [org(), id(), dayThatIsOver, world.ids.secret_id],
  );
});
afterAll(() => {
  runs.mockRestore();
  return app.close();
});

/**
 * What differs from one time to the next: traces, that a secret was looked at once more, and the position of events,
 * which every transaction of the server moves on.
 */
const withoutChance = (body: string) =>
  ofAnyMoment(body)
    .replaceAll(/("eventCursor":"[\da-f]{6})-\d+-\d+"/g, '$1"')
    .replaceAll(/"trace_?id":"[^"]*"/gi, '')
    .replaceAll(/"(?:accessCount|access_count)":\d+/g, '')
    .replaceAll(/"(?:lastAccessedAt|last_accessed_at|lastUsedAt|last_used_at)":(?:null|"[^"]*")/g, '');

async function expectAgreement(request: ReturnType<typeof graphqlRequest>): Promise<string> {
  runs.mockClear();
  const first = await app.server.inject(request);
  expect(runs).not.toHaveBeenCalled();
  for (const _time of [2, 3]) {
    const again = await app.server.inject(request);
    expect(withoutChance(again.body)).toBe(withoutChance(first.body));
    expect(again.statusCode).toBe(first.statusCode);
  }
  return first.body;
}

const roles = ['owner', 'viewer'] as const;
/** Who asks for how much of a route. The first one sees the most, and is never left out. */
const ways = roles.flatMap((role) => [false, true].map((requiredOnly) => ({ role, requiredOnly })));
let mark = 0;
/** A document that did not come yet. */
const fresh = (query: string) => `${query} # ${++mark}`;

describe.each(
  operations
    .filter(({ type, path }) => type === 'query' && !path.includes('/activity'))
    .map((operation) => [routeOf(operation), operation] as const),
)('the document of %s', (route, operation) => {
  test('gives the same by its plan', async () => {
    stopClockFor(operation.path);
    for (const { role, requiredOnly } of [ways[0]!, ...thinned(ways.slice(1), route)]) {
      const parts = partsOf(operation, world, { token: world.accounts[role].accessToken, requiredOnly });
      const { query, variables } = writtenRequest(operation, parts);
      await expectAgreement(graphqlRequest(fresh(query), variables, parts.headers.authorization));
      expect(runs).toHaveBeenCalledTimes(2);
    }
  });
});

describe.each(
  rootFields
    .filter(({ kind, name }) => kind === 'query' && !showsRecords(name) && !sumsRecords(name))
    .map((field) => [titleOf(field), field] as const),
)('%s with all that lies below it', (title, field) => {
  test('gives the same by its plan', async () => {
    stopClock(); // places have analytics, which are of the moment
    stopAges(); // what access checks remember makes some errors sooner: it is there from the first request on
    for (const role of ['owner', ...thinned(['viewer', null] as const, title)] as const) {
      const variables = argumentsOf(field, world);
      const authorization = role && world.as(role).authorization;
      const query = documentOf(field, variables, 3);
      await app.server.inject(graphqlRequest(fresh(query), variables, authorization));
      await expectAgreement(graphqlRequest(fresh(query), variables, authorization));
      expect(runs).toHaveBeenCalledTimes(2);
    }
  });
});

test.each(thinned(hostileDocuments, 'plans').map((document) => [document.what, document] as const))(
  'hostile: %s',
  async (_what, { query, variables = '{}', operationName = null }) => {
    const request = graphqlRequest(query, {}, world.as('owner').authorization);
    await expectAgreement({
      ...request,
      payload:
        `{"query":${JSON.stringify(fresh(query))},"variables":${variables},` +
        `"operationName":${JSON.stringify(operationName)}}`,
    });
  },
);

/** Forms of documents that the documents above do not have. */
const forms: [what: string, query: () => string, variables?: () => Record<string, unknown>][] = [
  [
    'node of two types',
    () =>
      `{ a: node(id: "${id()}") { id __typename ...W } b: node(id: "${org()}") { ...W ... on Organization {
        name workspaces(first: 1) { nodes { ...W } } } } } fragment W on Workspace { id name organization { id } }`,
  ],
  ['node of a type that nothing was asked of', () => `{ node(id: "${id()}") { ... on Secret { name } } }`],
  ['node that is not there', () => `{ node(id: "ws_01HZZZZZZZZZZZZZZZZZZZZZZZ") { id } me { id } }`],
  [
    'conditions',
    () =>
      'query ($a: Boolean!, $b: Boolean = true) { me { id @skip(if: $a) username @include(if: $b) ' +
      '...F @include(if: $a) ...F } } fragment F on User { email }',
    () => ({ a: true }),
  ],
  [
    'a condition that is null',
    () => 'query ($b: Boolean = true) { me { id username @include(if: $b) } }',
    () => ({ b: null }),
  ],
  [
    'fields that merge',
    () =>
      `{ workspace(orgId: "${org()}", id: "${id()}") { members(first: 2) { nodes { userId } } }
        workspace(orgId: "${org()}", id: "${id()}") { members(first: 2) { totalCount nodes { role } } } }`,
  ],
  [
    'a list that may not be read beside one that may',
    () => `{ me { id } secrets(orgId: "org_x") { totalCount } organizations { nodes { id } } }`,
  ],
  [
    'bad arguments in several places',
    () => `{ a: organizations(first: 0) { totalCount } b: organizations(first: 1000) { totalCount } me { id } }`,
  ],
  [
    'what was used most',
    () =>
      `{ topResources(orgId: "${org()}", workspaceId: "${id()}", from: "${dayThatIsOver}T00:00:00Z",
        to: "${dayThatIsOver}T12:00:00Z") { uses resourceType resourceId resource { __typename id ...W } } }
        fragment W on Workspace { name }`,
  ],
  ['variables within an input', () => 'query ($id: ID!) { node(id: $id) { id } }', () => ({ id: '' })],
];
test.each(forms)('%s', async (_what, query, variables = () => ({})) => {
  for (const role of roles)
    await expectAgreement(graphqlRequest(fresh(query()), variables(), world.as(role).authorization));
});

test('records are made of both', async () => {
  const query = fresh(`{ workspace(orgId: "${org()}", id: "${id()}") { id } }`);
  const count = async () => {
    await app.services.activity.flush();
    const { rows } = await app.database.pool.query<{ n: number }>(
      `select count(*)::int as n from activity where resource_type = 'workspace' and action = 'read'
        and resource_id = $1`,
      [id()],
    );
    return rows[0]!.n;
  };
  const before = await count();
  for (let n = 1; n <= 3; n++) {
    await app.server.inject(graphqlRequest(query, {}, world.as('owner').authorization));
    expect(await count()).toBe(before + n);
  }
});
