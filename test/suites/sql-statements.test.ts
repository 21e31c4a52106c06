import { type GraphQLObjectType, getNamedType, isNonNullType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { rootFieldOf, routeOf } from '../support/operations.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';
import { graphqlRequest, injectable, partsOf } from '../support/requests.ts';
import { argumentsOf, rootFields, selectionOf } from '../support/root-fields.ts';
import { createWorld, must, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let log: QueryLog;
beforeAll(async () => {
  // the questions below are wider than a client's may be
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  world = await createWorld(app);
  log = logQueries(app.database.pool);
});
afterAll(() => app.close());

/** The fewest statements that a request needed: what access checks keep for a moment must not blur the count. */
async function fewest(work: () => Promise<unknown>): Promise<string[]> {
  const runs: string[][] = [];
  for (let i = 0; i < 4; i++) runs.push(await log.during(work));
  return runs.sort((a, b) => a.length - b.length)[0]!;
}

describe.each(listRoutes.map((list) => [routeOf(list.operation), list] as const))('%s', (_title, list) => {
  test('as many statements for twenty rows as for one', async () => {
    const { operation, isPaged, array } = list;
    const ask = async (limit: string, least: number) => {
      const parts = partsOf(operation, world, { token: world.accounts.owner.token });
      const body = await must(
        app,
        injectable(operation, isPaged ? { ...parts, query: { ...parts.query, limit } } : parts),
      );
      expect((body[array] as unknown[]).length).toBeGreaterThanOrEqual(least);
    };
    const few = isPaged ? [] : await fewest(() => ask('', 1));
    await addRows(app, world, list, 25);
    const one = isPaged ? await fewest(() => ask('1', 1)) : few;
    const many = await fewest(() => ask('20', 20));
    expect(one.length).toBeGreaterThan(0);
    expect(many).toHaveLength(one.length);
    expect(many.length).toBeLessThanOrEqual(4);
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
  if (root.kind !== 'query' || !nodes) return [];
  const node = getNamedType(nodes.type) as GraphQLObjectType;
  return Object.values(node.getFields())
    .filter(
      ({ extensions, args }) =>
        extensions.pothosExposedField === undefined &&
        !args.some((argument) => isNonNullType(argument.type) && argument.defaultValue === undefined),
    )
    .map((field) => ({ title: `Query.${root.name} { nodes { ${field.name} } }`, root, field: field.name }));
});

const seeded = new Set<string>();

/** Twenty rows for a root list; the REST list that asks for the same root field knows where they are. */
async function seed(name: string): Promise<void> {
  if (seeded.has(name)) return;
  seeded.add(name);
  const list = listRoutes.find(({ operation }) => rootFieldOf(operation) === name);
  if (list) await addRows(app, world, list, 25);
}

test.each(nested.map((item) => [item.title, item] as const))(
  '%s: as many statements for twenty parents as for two',
  async (_title, { root, field }) => {
    await seed(root.name);
    const given = argumentsOf(root, world);
    const declared = root.field.args
      .filter(({ name }) => name in given)
      .map(({ name, type }) => `$${name}: ${type.toString()}`);
    const passed = Object.keys(given).map((name) => `${name}: $${name}`);
    const type = (
      getNamedType((getNamedType(root.field.type) as GraphQLObjectType).getFields().nodes!.type) as GraphQLObjectType
    ).getFields()[field]!;
    const isConnection = type.args.some(({ name }) => name === 'first');
    const query = (first: number) =>
      `query${declared.length > 0 ? ` (${declared.join(', ')})` : ''} { ${root.name}(${[...passed, `first: ${first}`].join(', ')}) { nodes { ${field}${isConnection ? '(first: 3)' : ''} ${selectionOf(type.type, 3)} } } }`;
    const ask = (first: number, least: number) => async () => {
      const { data, errors } = await must<{ data: Record<string, { nodes: unknown[] }>; errors?: unknown }>(
        app,
        graphqlRequest(query(first), given, world.as('owner').authorization),
      );
      expect(errors).toBeUndefined();
      expect(data[root.name]!.nodes.length).toBeGreaterThanOrEqual(least);
    };
    const few = await fewest(ask(2, 2));
    const many = await fewest(ask(20, 20));
    expect(many, many.join('\n')).toHaveLength(few.length);
  },
);

test('the log sees the statements of a request, hand-written ones and those of the ORM', async () => {
  const statements = await log.during(async () => {
    await must(app, {
      method: 'POST',
      url: '/v1/auth/login',
      payload: { username: world.username, password: world.password },
    });
  });
  expect(statements.some((text) => /from\s+"public"\."users"/i.test(text))).toBe(true);
});
