import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expectUnauthenticated } from '../support/error-shapes.ts';
import { addRows, type ListRoute, listRoutes } from '../support/lists.ts';
import { operationAt, routeOf } from '../support/operations.ts';
import { stopAges } from '../support/passing-time.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';
import { expectOk, graphqlRequest, injectable, partsOf } from '../support/requests.ts';
import { argumentsOf, documentOf, type RootField, rootFields, titleOf } from '../support/root-fields.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

/** What can be told from the input alone is told at once, and before access is asked. */
let app: TestApp;
let world: World;
let outside: World;
let queries: QueryLog;
/** A cursor of each list, by its route. */
const cursors = new Map<string, string>();

const paged = listRoutes.filter(({ isPaged }) => isPaged).map((list) => [routeOf(list.operation), list] as const);
const rootFieldOf = ({ operation }: ListRoute): RootField =>
  rootFields.find(({ kind, name }) => kind === 'query' && name === operation.rootField)!;

beforeAll(async () => {
  app = await startTestApp();
  queries = logQueries(app.database.pool);
  world = await createWorld(app);
  outside = await createWorld(app, { withResources: false });
  for (const [, list] of paged) await addRows(app, world, list, 3);
  for (const [route, list] of paged) cursors.set(route, await cursorOf(list));
});
afterAll(() => app.close());

async function cursorOf(list: ListRoute): Promise<string> {
  const { next_cursor } = await expectOk<{ next_cursor: string }>(app, listing(list, world, { limit: '1' }));
  return next_cursor;
}

/** The list of the world, as the owner of `by` asks for it. */
function listing({ operation }: ListRoute, by: World, query: Record<string, string>): InjectOptions {
  const parts = partsOf(operation, world, { token: by.accounts.owner.accessToken });
  return injectable(operation, { ...parts, query: { ...parts.query, ...query } });
}

/** Malformed, tampered with, and of some lists of something else. */
function badCursors(list: ListRoute, test: string): string[] {
  const good = cursors.get(routeOf(list.operation))!;
  const shown = (of: ListRoute) => String(rootFieldOf(of).field.type);
  const foreign = paged.filter(([, other]) => shown(other) !== shown(list)).map(([route]) => cursors.get(route)!);
  const tampered = Buffer.from(good, 'base64url');
  tampered[3]! ^= 1;
  return [
    'x',
    good.slice(0, -2),
    tampered.toString('base64url'),
    ...thinned(foreign, `${routeOf(list.operation)} ${test}`),
  ];
}

const detailOf = async (request: InjectOptions) => {
  const answer = await app.server.inject(request);
  expect(answer.statusCode, `${JSON.stringify(request.url)}: ${answer.body}`).toBe(422);
  return answer.json<{ detail: { loc: unknown[]; type: string; input: unknown }[] }>().detail;
};
const places = async (request: InjectOptions) => (await detailOf(request)).map(({ loc }) => loc);

describe('a cursor that cannot be right', () => {
  test('lists are found', () => expect(paged.length).toBeGreaterThan(10));

  test.each(paged)('%s: is reported together with the other failures', async (_title, list) => {
    for (const cursor of badCursors(list, 'beside others')) {
      const detail = await detailOf(listing(list, world, { limit: '0', cursor }));
      expect(detail.map(({ loc }) => loc)).toEqual([
        ['query', 'limit'],
        ['query', 'cursor'],
      ]);
      expect(detail[1]).toMatchObject({ type: 'value_error', input: cursor });
    }
  });

  test.each(paged)('%s: the cursor of the list itself is right, whatever else is wrong', async (route, list) => {
    expect(await places(listing(list, world, { limit: '0', cursor: cursors.get(route)! }))).toEqual([
      ['query', 'limit'],
    ]);
  });

  test.each(paged)('%s: is told to whoever has no access, from the input alone', async (_title, list) => {
    stopAges(); // the caller is known all the time, however slow the machine is
    const authentication = async () => queries.by(() => app.server.inject(listing(list, outside, { limit: '0' })));
    await authentication();
    for (const cursor of badCursors(list, 'without access')) {
      let answered: unknown;
      const statements = await queries.by(async () => {
        answered = await places(listing(list, outside, { cursor }));
      });
      expect(answered).toEqual([['query', 'cursor']]);
      expect(statements).toEqual(await authentication());
    }
  });

  const ofTenant = paged.filter(([, { operation }]) => operation.path.includes('{org_id}'));
  test.each(ofTenant)('%s: is the same list of another organization', async (route, { operation }) => {
    const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
    const params = { ...parts.params, org_id: outside.ids.org_id! };
    const query = { ...parts.query, cursor: cursors.get(route)! };
    expect(await places(injectable(operation, { ...parts, params, query }))).toEqual([['query', 'cursor']]);
  });

  test.each(paged)('%s: is nothing that a stranger hears of', async (_title, { operation }) => {
    const parts = partsOf(operation, world, { token: null });
    expectUnauthenticated(await app.server.inject(injectable(operation, { ...parts, query: { cursor: 'x' } })));
  });

  const filtered = paged.flatMap(([route, list]) => {
    const status = list.operation.parameters.find(
      ({ name, in: place, isRequired, type }) =>
        place === 'query' &&
        !isRequired &&
        !['limit', 'cursor', 'organization_id'].includes(name) &&
        String(type) === 'String',
    );
    return status ? [[`${route}?${status.wireName}=`, list, status.wireName, status.constraints] as const] : [];
  });
  test.each(filtered)('%s…: has other filters', async (_title, list, name, { oneOf }) => {
    const cursor = cursors.get(routeOf(list.operation))!;
    const filter = { [name]: oneOf?.[0] ?? world.marker };
    for (const by of [world, outside]) {
      expect(await places(listing(list, by, { ...filter, limit: '0', cursor }))).toEqual([
        ['query', 'limit'],
        ['query', 'cursor'],
      ]);
      expect(await places(listing(list, by, { ...filter, cursor }))).toEqual([['query', 'cursor']]);
    }
  });
});

describe('over GraphQL', () => {
  const issuesOf = async (request: InjectOptions) => {
    const answer = await app.server.inject(request);
    const [error] = answer.json<{
      errors: { extensions: { code: string; details?: { issues: { path: string[] }[] } } }[];
    }>().errors;
    return [
      error!.extensions.code,
      ...(error!.extensions.details?.issues ?? []).map(({ path }) => path.join('.')),
    ].sort();
  };
  const asking = (root: RootField, given: Record<string, unknown>, by: World | null) => {
    const variables = { ...argumentsOf(root, world), ...given };
    return graphqlRequest(documentOf(root, variables, 2), variables, by?.as('owner').authorization);
  };

  const fields = rootFields
    .filter(
      ({ kind, field }) =>
        kind === 'query' && ['first', 'after'].every((name) => field.args.some((a) => a.name === name)),
    )
    .map((root) => [titleOf(root), root] as const);
  test('lists are found', () => expect(fields.length).toBeGreaterThan(paged.length));
  test.each(fields)('%s: a stranger first, then the input, then access', async (_title, root) => {
    const bad = { first: 0, after: 'x' };
    expect(await issuesOf(asking(root, bad, null))).toEqual(['AUTHENTICATION_FAILED']);
    for (const by of [world, outside])
      expect(await issuesOf(asking(root, bad, by))).toEqual(['VALIDATION_ERROR', 'after', 'first']);
  });

  test('an organization that is not that of the arguments', async () => {
    const root = (name: string) => rootFields.find((field) => field.name === name)!;
    const given = { organizationId: 'org_other', first: 0 };
    const input = { organizationId: 'org_other', name: '' };
    for (const by of [world, outside]) {
      const listed = ['VALIDATION_ERROR', 'first', 'organizationId'];
      expect(await issuesOf(asking(root('workspaces'), given, by))).toEqual(listed);
      const made = ['VALIDATION_ERROR', 'input.name', 'input.organizationId'];
      expect(await issuesOf(asking(root('createWorkspace'), { input }, by))).toEqual(made);
    }
    expect(await issuesOf(asking(root('createWorkspace'), { input }, null))).toEqual(['AUTHENTICATION_FAILED']);
  });
});

describe('organization_id that is not that of the path', () => {
  test('in the body: together with the other failures, and before access', async () => {
    const operation = operationAt('POST', '/v1/orgs/{org_id}/workspaces');
    for (const by of [world, outside]) {
      const parts = partsOf(operation, world, { token: by.accounts.owner.accessToken });
      const sent = (body: unknown) => injectable(operation, { ...parts, body });
      const organization = ['body', 'organization_id'];
      expect(await places(sent({ organization_id: 'org_other' }))).toEqual([['body', 'name'], organization]);
      expect(await places(sent({ organization_id: 'org_other', name: 'x', tags: 3 }))).toEqual([
        ['body', 'tags'],
        organization,
      ]);
      expect(await detailOf(sent({ organization_id: 'org_other', name: 'x' }))).toEqual([
        {
          type: 'value_error',
          loc: organization,
          msg: `Value error, must equal the id that the request names, '${world.ids.org_id}'`,
          input: 'org_other',
          ctx: { error: `must equal the id that the request names, '${world.ids.org_id}'` },
        },
      ]);
    }
  });

  test('in the query: together with the other failures, and before access', async () => {
    const [, list] = paged.find(([route]) => route === 'GET /v1/orgs/{org_id}/workspaces')!;
    for (const by of [world, outside])
      expect(await places(listing(list, by, { organization_id: 'org_other', limit: '0', cursor: 'x' }))).toEqual([
        ['query', 'limit'],
        ['query', 'cursor'],
        ['query', 'organization_id'],
      ]);
  });
});
