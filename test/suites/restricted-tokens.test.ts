import { isDeepStrictEqual } from 'node:util';
import {
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isObjectType,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { words } from '../../src/data/paging.ts';
import { type PlaceKind, placeKinds } from '../../src/kernel/resources.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { lackSomething } from '../support/lacking.ts';
import { addDeleted } from '../support/lists.ts';
import type { AnyReads } from '../support/reads.ts';
import { graphqlRequest } from '../support/requests.ts';
import { argumentsOf, documentOf, type RootField, rootFields, showsRecords, titleOf } from '../support/root-fields.ts';
import { thinned } from '../support/thinned.ts';
import { issueToken } from '../support/tokens.ts';
import { type Twin, twinOf } from '../support/twin.ts';
import { createWorld, type World } from '../support/world.ts';

/**
 * A token that is restricted to one place, and a copy of that place with everything in it: whatever the schema can be
 * asked, nothing of the copy is shown, and all of the place itself is that its owner sees.
 */
type Restricted = Exclude<PlaceKind, 'organization'>;
const kinds = placeKinds.filter((kind): kind is Restricted => kind !== 'organization');

/** How a token comes to be restricted to a place. */
const restrictions: Record<Restricted, (id: string) => Record<string, unknown>> = {
  workspace: (id) => ({ workspace_ids: [id] }),
  namespace: (id) => ({ namespace_ids: [id] }),
  environment: (id) => ({ environment_ids: [id] }),
  app: (id) => ({ app_id: id }),
};

/**
 * What administers the whole organization, makes use of it, takes an app out of it, or shows what may be restored, for
 * which one needs what a change needs: a token must not be restricted, or only to places that have all of it. A new one
 * is added here on purpose, or not at all.
 */
const refused = [
  'Query.allApiTokens',
  'Query.routeModel',
  'Query.exportRecipe',
  'Query.exportWorkspace',
  'Query.identityProvider',
  'Query.identityLink',
  'Query.signInPolicy',
  'Query.membersWithoutFactor',
  'Query.memberSessions',
  'Query.identityProviderTest',
  'Query.workspaceDeletedArtifacts',
  'Query.deletedArtifacts',
];

/**
 * What signs people in to the whole organization, and the deleted workspaces, of which the place is none: a restricted
 * token gets an empty list.
 */
const unseen = ['Query.identityProviders', 'Query.deletedWorkspaces'];

/** Numbers of a place: a token that is restricted to a part of it, or to another, must not learn those of the whole. */
const numbers = words(
  'organizationAnalytics workspaceAnalytics appAnalytics namespaceAnalytics resourceCounts executionMetrics',
  'hourlyExecutions dailyExecutions actionAnalytics secretAnalytics sourceAnalytics series organizationStorage',
  'workspaceStorage topResources modelUsage',
).map((name) => `Query.${name}`);

/** Of the organization: a token that is restricted to a workspace gets only what is asked for of that. */
const ofAll = ['Query.organizationAnalytics', 'Query.organizationStorage', 'Query.series'];

/** Of which kind the numbers are that a token restricted to one place gets, beside those of its workspace. */
const ownNumbers: Partial<Record<Restricted, string>> = {
  namespace: 'Query.namespaceAnalytics',
  app: 'Query.appAnalytics',
};

/** Reads whose answer names nothing that lies in a place: people, and models of the organization. */
// nobody is present in the copy
const namesNothing = [
  'Query.presence',
  'Query.users',
  'Query.routeModel',
  'Query.connectionRequirements',
  'Query.searchEntities',
  ...numbers,
];

const NODE = 'query ($id: ID!) { node(id: $id) { id } }';
const DEPTH = 4;
const queries = rootFields.filter(
  // activity: test/insight/activity, because what was asked for is recorded with its ids
  ({ kind, name, field }) =>
    kind === 'query' &&
    field.extensions.access !== 'public' &&
    !showsRecords(name) &&
    // second factors, and the state of the service, are shown to sessions alone
    !['myFactors', 'serviceStatus'].includes(name),
);

/** Queries that a token restricted to a place of some kind asks in this run: each is asked with one kind at least. */
const queriesWith = (kind: Restricted) =>
  queries.filter((root) => thinned(kinds, titleOf(root)).includes(kind)).map((root) => [titleOf(root), root] as const);

let app: TestApp;
let world: World;
/** A token of the owner's that is restricted to nothing. */
let free: string;
beforeAll(async () => {
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  world = await createWorld(app);
  await addDeleted(app, world);
  await lackSomething(app, world);
  free = await tokenFor({});
});
afterAll(() => app.close());

async function tokenFor(restriction: Record<string, unknown>): Promise<string> {
  const maker = { orgId: world.ids.org_id!, headers: world.as('owner') };
  return (await issueToken(app, maker, { scopes: ['admin'], ...restriction })).plaintext_token;
}

interface Answer {
  /** The data, as text. */
  data: string;
  /** The codes of the errors. */
  codes: string[];
}

async function ask(root: RootField, given: Record<string, unknown>, token: string, but?: string): Promise<Answer> {
  const { body } = await app.server.inject(graphqlRequest(documentOf(root, given, DEPTH), given, `Bearer ${token}`));
  const { data, errors = [] } = JSON.parse(body) as { data: unknown; errors?: { extensions: { code: string } }[] };
  const text = JSON.stringify(data, (key, value: unknown) => (key === but ? null : value));
  return { data: text, codes: errors.map(({ extensions }) => extensions.code) };
}

/** Takes from a list what it declares of restricted tokens: it shows them what it shows everybody. */
function forgettingRestrictions(reads: Pick<AnyReads, 'list'>) {
  const list = reads.list.bind(reads);
  return vi.spyOn(reads, 'list').mockImplementation((context, place, args) => {
    const { principal } = context.anyCaller;
    const unrestricted = principal && { ...principal, type: 'user' as const, sessionId: '', token: null };
    const caller = { ...context.anyCaller, principal: unrestricted };
    return list({ anyCaller: caller, once: (key, make) => context.once(key, make) }, place, args);
  });
}

const shown = (body: string, ids: Iterable<string>): string[] => [...ids].filter((id) => body.includes(id));

/** Object types that reads lead to. */
function readTypes(): Set<GraphQLObjectType> {
  const found = new Set<GraphQLObjectType>();
  const follow = (output: GraphQLOutputType) => {
    const type = getNamedType(output);
    if (!isObjectType(type) || found.has(type) || type.name.startsWith('Activity')) return;
    found.add(type);
    for (const field of Object.values(type.getFields())) follow(field.type);
  };
  for (const { field } of queries) follow(field.type);
  return found;
}

test('every nested field is asked for', () => {
  const asked = new Set<string>();
  const types = new TypeInfo(schema);
  const Field = () => void asked.add(`${types.getParentType()?.name}.${types.getFieldDef()?.name}`);
  for (const root of queries)
    visit(parse(documentOf(root, argumentsOf(root, world), DEPTH)), visitWithTypeInfo(types, { Field }));
  const nested = [...readTypes()].flatMap((of) =>
    Object.values(of.getFields())
      // edges say what nodes say
      .filter(({ name, type }) => isObjectType(getNamedType(type)) && name !== 'edges' && !of.name.endsWith('Edge'))
      .filter(({ name }) => !showsRecords(name))
      .map(({ name }) => `${of.name}.${name}`),
  );
  expect(nested.length).toBeGreaterThan(40);
  expect(nested.filter((name) => !asked.has(name))).toEqual([]);
});

describe.each(kinds)('a token restricted to one %s', (kind) => {
  let token: string;
  let twin: Twin;
  /** The same world, but in the copy. */
  let beside: World;
  beforeAll(async () => {
    const id = world.ids[`${kind}_id`]!;
    token = await tokenFor(restrictions[kind](id));
    twin = await twinOf(app.database.pool, id, world.marker);
    const ids = Object.fromEntries(Object.entries(world.ids).map(([name, of]) => [name, twin.ids.get(of) ?? of]));
    beside = { ...world, ids, marker: twin.marker };
  });

  /** What an answer shows of the copy, beyond what was asked with. */
  const leakOf = ({ data }: Answer, given: object) => {
    const said = JSON.stringify(given);
    return shown(data, [twin.marker, ...twin.ids.values()]).filter((text) => !said.includes(text));
  };

  /**
   * What is wrong with an answer to the token: what it shows of the copy, what it hides of the place, and its errors.
   */
  const wrongIn = async (root: RootField) => {
    const given = argumentsOf(root, world);
    // an app's token sees the tokens of its app: what others are restricted to is not lost
    const but = kind === 'app' ? 'apiTokens' : undefined;
    const [byOwner, byToken] = [await ask(root, given, free, but), await ask(root, given, token)];
    expect(byOwner.codes).toEqual([]);
    const lost = shown(byOwner.data, twin.ids.keys()).filter((id) => !byToken.data.includes(id));
    return { leaks: leakOf(byToken, given), lost, codes: byToken.codes };
  };
  const nothing = { leaks: [], lost: [], codes: [] };

  test.each(queriesWith(kind))('%s shows its own and no other', async (title, root) => {
    const wrong = await wrongIn(root);
    const isWhole = numbers.includes(title) && kind !== 'workspace' && ownNumbers[kind] !== title;
    if (isWhole) expect(wrong.codes).toEqual(['FORBIDDEN']);
    if (isWhole || ([...refused, ...ofAll].includes(title) && wrong.codes.length > 0))
      expect(wrong).toMatchObject({ leaks: [], codes: ['FORBIDDEN'] });
    else if (unseen.includes(title)) expect(wrong).toMatchObject({ leaks: [], codes: [] });
    else expect(wrong).toEqual(nothing);
  });

  test.each(queriesWith(kind))('%s is not answered about another', async (title, root) => {
    const given = argumentsOf(root, beside);
    if (isDeepStrictEqual(given, argumentsOf(root, world))) return;
    // the control: it is there
    if (!namesNothing.includes(title)) expect(leakOf(await ask(root, given, free), {})).not.toEqual([]);
    expect(leakOf(await ask(root, given, token), given)).toEqual([]);
  });

  test('a list that forgot the restriction is found out', async () => {
    const root = queries.find(({ field }) => field.name === `${kind}s`)!;
    expect(await wrongIn(root)).toEqual(nothing);
    const forgetful = forgettingRestrictions(app.services[`${kind}s`].reads);
    expect(await wrongIn(root)).not.toEqual(nothing);
    forgetful.mockRestore();
  });

  test('node(id) finds objects inside its scope, and none outside', async () => {
    const idOf = async (id: string, as: string) => {
      const { body } = await app.server.inject(graphqlRequest(NODE, { id }, `Bearer ${as}`));
      return (JSON.parse(body) as { data: { node: { id: string } | null } }).data.node?.id;
    };
    let found = 0;
    for (const [inside, outside] of twin.ids) {
      expect(await idOf(outside, token), outside).toBeUndefined();
      expect(await idOf(inside, token)).toBe(await idOf(inside, free));
      if (await idOf(outside, free)) found++;
    }
    expect(found).toBeGreaterThan(0);
  });
});
