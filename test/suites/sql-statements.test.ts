import { isDeepStrictEqual } from 'node:util';
import { type GraphQLObjectType, getNamedType, isNonNullType, isObjectType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { forgetAccess } from '../support/forgetting.ts';
import { listRoutes } from '../support/lists.ts';
import { answerInLockstep } from '../support/lockstep.ts';
import { type Looker, lookersAt } from '../support/lookers.ts';
import { rootFieldOf, routeOf } from '../support/operations.ts';
import { logQueries, type QueryLog } from '../support/query-log.ts';
import { expectOk, graphqlRequest, injectable, partsOf } from '../support/requests.ts';
import { argumentsOf, rootFields, selectionOf, showsRecords } from '../support/root-fields.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let log: QueryLog;
let owner: Looker;
let others: Looker[];
beforeAll(async () => {
  // the questions below are wider than a client's may be
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  world = await createWorld(app);
  await openSessions(world);
  const lookers = await lookersAt(app, world, listRoutes);
  owner = lookers.find(({ title }) => title === 'owner')!;
  others = lookers.filter((looker) => looker !== owner);
  log = logQueries(app.database.pool);
  answerInLockstep(app.database.pool);
});
afterAll(() => app.close());

/** As many sessions of the owner as a page has rows: no list of REST shows them, so no route makes rows of it. */
async function openSessions({ accounts, ids }: World): Promise<void> {
  const expiresAt = new Date(Date.now() + 86_400_000);
  const session = { userId: accounts.owner.userId, orgId: ids.org_id!, expiresAt };
  const data = Array.from({ length: 20 }, () => ({ id: newId('session'), ...session }));
  await app.database.prisma.session.createMany({ data });
  // a session that nothing can be done with is not open
  const tokens = data.map(({ id }) => ({ hash: `hash of ${id}`, sessionId: id, expiresAt }));
  await app.database.prisma.refreshToken.createMany({ data: tokens });
}

/**
 * The statements of a request that finds nothing kept: what access checks remember for a moment would hide what they
 * ask.
 */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  await forgetAccess(app);
  const sent = await log.by(work);
  return sent.map(withoutCounts).filter(isOfReads).sort();
}

/** A read is no transaction; what runs in the background may be one. */
const isOfReads = (text: string) => !/^(?:begin|commit|rollback)$/i.test(text);

/** How often a small and a large question are asked until they have sent the same once. */
const TRIES = 5;

/**
 * Expects a small and a large question to send the same. Background work may get in between, and of what is asked in
 * batches one may begin a moment before the others: that changes statements of either, at random. A question whose
 * statements grow with its rows has no size in common with the small one, however often both are asked.
 */
async function expectSame(
  small: () => Promise<unknown>,
  large: () => Promise<unknown>,
  who: string,
): Promise<readonly string[]> {
  const few: string[][] = [];
  const many: string[][] = [];
  for (let tries = 1; tries <= TRIES; tries++) {
    few.push(await statementsOf(small));
    many.push(await statementsOf(large));
    const same = many.find((each) => few.some((other) => isDeepStrictEqual(each, other)));
    if (!same) continue;
    expect(same.length, who).toBeGreaterThan(0);
    return same;
  }
  expect(many.at(-1), who).toEqual(few.at(-1));
  throw new Error(`${who}: not the same in any of ${TRIES} tries`);
}

/** Lists of values have as many places as there are values. */
const withoutCounts = (text: string) => text.replace(/\(\$\d+(?:\s*,\s*\$\d+)*\)/g, '($…)');

/** Who asks a question: always the owner, who sees the most, and some of the others. */
const lookersOf = (question: string): Looker[] => [owner, ...thinned(others, question)];

/** How often each looker asked, and was shown something: a suite that is refused everywhere counts nothing. */
const asked = new Map<string, number>();
const shown = new Map<string, number>();
const count = (counts: Map<string, number>, { title }: Looker) => counts.set(title, (counts.get(title) ?? 0) + 1);

/** How many rows of a list a looker sees who asks for some; `null` where it depends: there are only one's own. */
const seen = ({ isToken, title }: Looker, field: string, asked: number): number | null => {
  if (field === 'notifications' && title !== 'owner') return null;
  // members may restore what they created
  if (title === 'member' && ['deletedArtifacts', 'workspaceDeletedArtifacts'].includes(field)) return null;
  // tokens that are restricted to some places see nothing of what signs people in
  if (field === 'identityProviders' && isToken && title.includes('some')) return 0;
  // and of the tokens only their own line
  if (isToken && field === 'apiTokens' && title.includes('some')) return 1;
  return isToken && field === 'organizations' ? 1 : asked;
};

describe.each(listRoutes.map((list) => [routeOf(list.operation), list] as const))('%s', (route, list) => {
  test('the same statements for twenty rows as for two, with any role', async () => {
    const { operation, isPaged, array } = list;
    for (const looker of lookersOf(route)) {
      count(asked, looker);
      const parts = partsOf(operation, looker.world, { token: looker.world.accounts.owner.accessToken });
      const ask = async (limit: number) => {
        const query = isPaged ? { ...parts.query, limit: String(limit) } : parts.query;
        const answer = await app.server.inject(injectable(operation, { ...parts, query }));
        if (answer.statusCode === 403 && looker.title !== 'owner') return null;
        expect(answer.statusCode, `${looker.title}: ${answer.body}`).toBe(200);
        return answer.json<Record<string, unknown[]>>()[array]!.length;
      };
      let rows: number | null = null;
      const many = await expectSame(
        () => ask(2), // for a single row some have a shorter form
        async () => (rows = await ask(20)),
        looker.title,
      );
      expect(many.length, looker.title).toBeGreaterThan(0);
      // who it is, what they may do in the organization and in the workspace, the page, its total, and what its rows
      // need
      expect(many.length, many.join('\n')).toBeLessThanOrEqual(8);
      if (rows === null) continue;
      expect(rows, looker.title).toBeGreaterThanOrEqual(seen(looker, rootFieldOf(operation), 20) ?? 0);
      count(shown, looker);
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
  '%s: the same statements for twelve parents and pages of twelve as for eight, whoever looks',
  async (title, item) => {
    for (const looker of lookersOf(title)) {
      count(asked, looker);
      const given = argumentsOf(item.root, looker.world);
      const ask = (first: number, inner: number) => async () => {
        const { authorization } = looker.world.as('owner');
        const request = graphqlRequest(nestedQuery(item, given, first, inner), given, authorization);
        const { data, errors } = await expectOk<NestedAnswer>(app, request);
        const codes = new Set(errors?.map(({ extensions }) => extensions.code));
        // what some may not see is refused, for twelve parents with as many statements as for eight
        expect([...codes], `${looker.title}: ${JSON.stringify(errors)}`).toEqual(errors ? ['FORBIDDEN'] : []);
        if (looker.title === 'owner') expect(errors).toBeUndefined();
        const list = data?.[item.root.name];
        if (!list) return;
        expect(list.nodes.length, looker.title).toBe(seen(looker, item.root.name, first) ?? list.nodes.length);
        count(shown, looker);
      };
      // among eight members is who looks, to whom more is shown
      await expectSame(ask(8, 8), ask(12, 12), looker.title);
    }
  },
);

test('each of those who look was shown most of what they asked for', () => {
  expect(others.length).toBe(8);
  const isShown = ({ title }: Looker) => shown.get(title)! > asked.get(title)! / 2;
  expect([owner, ...others].filter((looker) => !isShown(looker)).map(({ title }) => title)).toEqual([]);
});

test('the log sees the statements of a request, hand-written ones and those of the ORM', async () => {
  const statements = await log.by(async () => {
    await expectOk(app, {
      method: 'POST',
      url: '/v1/auth/login',
      payload: { username: world.username, password: world.password },
    });
  });
  expect(statements.some((text) => /from\s+"public"\."users"/i.test(text))).toBe(true);
});
