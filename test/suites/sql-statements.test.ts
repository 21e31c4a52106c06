import { type GraphQLObjectType, getNamedType, isNonNullType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { FreshCache } from '../../src/access/fresh-cache.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { listRoutes } from '../support/lists.ts';
import { type Looker, lookersAt } from '../support/lookers.ts';
import { rootFieldOf, routeOf } from '../support/operations.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';
import { expectOk, graphqlRequest, injectable, partsOf } from '../support/requests.ts';
import { argumentsOf, rootFields, selectionOf, showsRecords } from '../support/root-fields.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let log: QueryLog;
let lookers: Looker[];
const lookUps = vi.spyOn(FreshCache.prototype, 'get');
const caches = new Set<FreshCache<object>>();
beforeAll(async () => {
  // the questions below are wider than a client's may be
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  world = await createWorld(app);
  lookers = await lookersAt(app, world, listRoutes);
  log = logQueries(app.database.pool);
}, 120_000);
afterAll(() => app.close());

/**
 * The statements of a request that finds nothing kept: what access checks remember for a moment would hide what they
 * ask.
 */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  for (const cache of lookUps.mock.contexts) caches.add(cache as FreshCache<object>);
  lookUps.mockClear();
  for (const cache of caches) cache.clear();
  return log.during(work);
}

/**
 * What a small and a large question send, the fewest of some tries: answers of the database that come at different
 * moments may part what is gathered in one statement, for the small question as for the large. More tries are made only
 * while the numbers differ.
 */
async function compared(small: () => Promise<unknown>, large: () => Promise<unknown>) {
  let [few, many] = [await statementsOf(small), await statementsOf(large)];
  for (let tries = 1; few.length !== many.length && tries < 12; tries++) {
    const again = [await statementsOf(small), await statementsOf(large)] as const;
    if (again[0].length < few.length) few = again[0];
    if (again[1].length < many.length) many = again[1];
  }
  return { few, many };
}

/** How often each looker was shown something: a suite that is refused everywhere counts nothing. */
const shown = new Map<string, number>();
const countShown = (title: string) => shown.set(title, (shown.get(title) ?? 0) + 1);

/** How many rows of a list a looker sees who asks for some; `null` where it depends: there are only one's own. */
const seen = ({ isToken, title }: Looker, field: string, asked: number): number | null => {
  if (field === 'notifications' && title !== 'owner') return null;
  // tokens that are restricted to some places see nothing of what signs people in
  if (field === 'identityProviders' && isToken && title.includes('some')) return 0;
  return isToken && field === 'organizations' ? 1 : asked;
};

describe.each(listRoutes.map((list) => [routeOf(list.operation), list] as const))('%s', (_title, list) => {
  test('as many statements for twenty rows as for one, with any role', async () => {
    const { operation, isPaged, array } = list;
    for (const looker of lookers) {
      const parts = partsOf(operation, looker.world, { token: looker.world.accounts.owner.accessToken });
      const ask = async (limit: number) => {
        const query = isPaged ? { ...parts.query, limit: String(limit) } : parts.query;
        const answer = await app.server.inject(injectable(operation, { ...parts, query }));
        if (answer.statusCode === 403 && looker.title !== 'owner') return null;
        expect(answer.statusCode, `${looker.title}: ${answer.body}`).toBe(200);
        return answer.json<Record<string, unknown[]>>()[array]!.length;
      };
      let rows: number | null = null;
      const { few, many } = await compared(
        () => ask(1),
        async () => (rows = await ask(20)),
      );
      expect(few.length, looker.title).toBeGreaterThan(0);
      expect(many, `${looker.title}: ${many.join('\n')}`).toHaveLength(few.length);
      // who it is, what they may do in the organization and in the workspace, the page, its total, and what its rows
      // need
      expect(many.length, many.join('\n')).toBeLessThanOrEqual(8);
      if (rows === null) continue;
      expect(rows, looker.title).toBeGreaterThanOrEqual(seen(looker, rootFieldOf(operation), 20) ?? 0);
      countShown(looker.title);
    }
  });
});

interface NestedCase {
  title: string;
  root: (typeof rootFields)[number];
  field: string;
}

/** Each field of a listed type that is no column: a nested list, another object, or a computed value. */
const nested: NestedCase[] = rootFields.flatMap((root) => {
  const connection = getNamedType(root.field.type);
  const nodes = isObjectType(connection) ? connection.getFields().nodes : undefined;
  // what records name depends on what was done lately
  if (root.kind !== 'query' || !nodes || showsRecords(root.name)) return [];
  const node = getNamedType(nodes.type) as GraphQLObjectType;
  return Object.values(node.getFields())
    .filter(
      ({ extensions, args }) =>
        extensions.pothosExposedField === undefined &&
        !args.some((argument) => isNonNullType(argument.type) && argument.defaultValue === undefined),
    )
    .map((field) => ({ title: `Query.${root.name} { nodes { ${field.name} } }`, root, field: field.name }));
});

test('lists and nested fields are found', () => {
  expect(listRoutes.length).toBeGreaterThan(15);
  expect(nested.length).toBeGreaterThan(40);
});

/** The question for some rows of a list, with one field of each, and some rows of that where it is a list itself. */
function nestedQuery({ root, field }: NestedCase, given: object, first: number, inner: number): string {
  const declared = root.field.args
    .filter(({ name }) => name in given)
    .map(({ name, type }) => `$${name}: ${type.toString()}`);
  const passed = Object.keys(given).map((name) => `${name}: $${name}`);
  const nodes = getNamedType((getNamedType(root.field.type) as GraphQLObjectType).getFields().nodes!.type);
  const { type, args } = (nodes as GraphQLObjectType).getFields()[field]!;
  const page = args.some(({ name }) => name === 'first') ? `(first: ${inner})` : '';
  const selection = showsRecords(field) ? '{ totalCount nodes { id } }' : selectionOf(type, page ? 3 : 2);
  return `query${declared.length > 0 ? ` (${declared.join(', ')})` : ''} {
    ${root.name}(${[...passed, `first: ${first}`].join(', ')}) {
      nodes { ${field}${page} ${selection} } } }`;
}

interface NestedAnswer {
  data?: Record<string, { nodes: unknown[] } | null> | null;
  errors?: { message: string; extensions: { code: string } }[];
}

test.each(nested.map((item) => [item.title, item] as const))(
  '%s: as many statements for twenty parents and pages of twenty as for eight, whoever looks',
  async (_title, item) => {
    for (const looker of lookers) {
      const given = argumentsOf(item.root, looker.world);
      const ask = (first: number, inner: number) => async () => {
        const { authorization } = looker.world.as('owner');
        const request = graphqlRequest(nestedQuery(item, given, first, inner), given, authorization);
        const { data, errors } = await expectOk<NestedAnswer>(app, request);
        const codes = new Set(errors?.map(({ extensions }) => extensions.code));
        // what some may not see is refused, for twenty parents with as many statements as for eight
        expect([...codes], `${looker.title}: ${JSON.stringify(errors)}`).toEqual(errors ? ['FORBIDDEN'] : []);
        if (looker.title === 'owner') expect(errors).toBeUndefined();
        const list = data?.[item.root.name];
        if (!list) return;
        expect(list.nodes.length, looker.title).toBe(seen(looker, item.root.name, first) ?? list.nodes.length);
        countShown(looker.title);
      };
      // among eight members is who looks, to whom more is shown
      const { few, many } = await compared(ask(8, 8), ask(20, 20));
      // what a check knows already depends on the moment, and what it has to ask is asked in one batch or in two: a
      // statement for each of twelve parents or rows more would be twelve more
      expect(Math.abs(many.length - few.length), `${looker.title}: ${many.join('\n')}`).toBeLessThanOrEqual(2);
    }
  },
);

test('each of those who look was shown something', () => {
  expect(lookers.length).toBe(9);
  const atLeast = listRoutes.length / 2 + nested.length;
  expect(lookers.filter(({ title }) => (shown.get(title) ?? 0) < atLeast).map(({ title }) => title)).toEqual([]);
});

test('the log sees the statements of a request, hand-written ones and those of the ORM', async () => {
  const statements = await log.during(async () => {
    await expectOk(app, {
      method: 'POST',
      url: '/v1/auth/login',
      payload: { username: world.username, password: world.password },
    });
  });
  expect(statements.some((text) => /from\s+"public"\."users"/i.test(text))).toBe(true);
});
