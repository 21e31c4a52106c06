import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { type GraphQLInputType, getNullableType, isInputObjectType, isListType } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { shapeFault } from '../support/error-shapes.ts';
import { lackSomething } from '../support/lacking.ts';
import { addDeleted } from '../support/lists.ts';
import { snakeCase } from '../support/names.ts';
import { operations, rootFieldOf, routeOf } from '../support/operations.ts';
import { graphqlRequest, injectable, type Parts, partsOf, requestOf } from '../support/requests.ts';
import { argumentsOf, documentOf, meaningOf, rootFields, titleOf } from '../support/root-fields.ts';
import { checksums, idsOf } from '../support/rows.ts';
import { idNamed } from '../support/samples.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

/**
 * Places where an id of somebody from outside is welcome (defaults §1: adding a user from outside makes them a member).
 * A new one is added here on purpose, or not at all.
 */
const welcomesForeigners = ['addWorkspaceMember input.userId', 'addOrganizationMember input.userId'];

/**
 * Filters of records. Those of the caller's own organization never name what is of another one: they leave nothing.
 * What an app calls an end user is a word of its own.
 */
const filtersOfRecords: readonly (readonly [path: string, filters: readonly string[], list: string])[] = [
  ['/activity', ['user_id', 'token_id', 'resource_id'], 'activities'],
  ['/application-grants', ['user_id', 'application_id'], 'application_grants'],
  ['/end-user-connections', ['end_user_id'], 'connections'],
];
const isFilterOfRecords = (operation: (typeof operations)[number], name: string): boolean =>
  filtersOfRecords.some(([path, filters]) => operation.path.endsWith(path) && filters.includes(name));

/** Answers that are the same for everyone. */
const withoutTenant = [
  'GET /v1/auth/config',
  'GET /v1/auth/invite-info',
  'GET /v1/notifications/preferences',
  'GET /v1/notifications/unread-count',
  'GET /v1/orgs/{org_id}/tools/custom-action-schemas',
  'GET /v1/orgs/{org_id}/recipes',
  'GET /v1/orgs/{org_id}/recipes/{recipe_id}',
  'GET /v1/orgs/{org_id}/audit-streams/{audit_stream_id}/lag',
  'GET /v1/orgs/{org_id}/storage',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/storage',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/analytics/resources',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/analytics/executions',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/analytics/executions/hourly',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/analytics/executions/daily',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/analytics/actions',
  'GET /v1/orgs/{org_id}/activity/summary',
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/activity/summary',
  'GET /v1/orgs/{org_id}/users/{user_id}/activity/summary',
];

let app: TestApp;
let own: World;
let foreign: World;
let foreignIds: Set<string>;
let before: Record<string, string>;

beforeAll(async () => {
  // asks for more at once than a client may
  app = await startTestApp({ env: { GRAPHQL_MAX_COST: '1000000', GRAPHQL_MAX_TOKENS: '10000' } });
  own = await createWorld(app);
  foreign = await createWorld(app);
  await addDeleted(app, foreign);
  await lackSomething(app, foreign);
  foreignIds = new Set([...(await idsOf(app.database.pool, foreign.ids.org_id!)), ...Object.values(foreign.ids)]);
  await app.jobsDone(); // texts are indexed in the background
  before = await checksums(app.database.pool, foreign.ids.org_id!);
});
afterAll(() => app.close());

/** The foreign id that an id of the own world is swapped for; `undefined` where there is no counterpart. */
function swapped(name: string): string | undefined {
  return idNamed(name, foreign.ids);
}

/** What an answer shows of the foreign tenant, beyond what the request itself said. */
function leakOf(body: string, request: InjectOptions): string | undefined {
  const said = decodeURIComponent(JSON.stringify([request.url, request.payload]));
  return [foreign.marker, ...foreignIds].find((secret) => body.includes(secret) && !said.includes(secret));
}

async function expectRefused(request: InjectOptions, where: string): Promise<LightMyRequestResponse> {
  const answer = await app.server.inject(request);
  expect(answer.statusCode, `${where}: ${answer.body}`).toBeGreaterThanOrEqual(403);
  expect([403, 404, 409, 422], `${where}: ${answer.body}`).toContain(answer.statusCode);
  expect(shapeFault(answer), where).toBeNull();
  expect(leakOf(answer.body, request), where).toBeUndefined();
  return answer;
}

/** Status and body of an answer, without what tells the moment and the identifiers that were asked for. */
function withoutIds({ statusCode, body }: LightMyRequestResponse): [status: number, text: string] {
  const text = body.replace(/"timestamp":"[^"]*"/, '');
  const hidden = [...foreignIds].reduce((shown, secret) => shown.replaceAll(secret, 'ID'), text);
  return [statusCode, hidden.replaceAll(/\w+_0{26}/g, 'ID')];
}

/** An id of the same kind that nothing has. */
const invented = (name: string): string => swapped(name)!.replace(/_.*$/, '_00000000000000000000000000');

/** The places of a request that hold an id which the other world has too. */
interface Place {
  label: string;
  swap: (parts: Parts, id: (name: string) => string | undefined) => Parts;
}

function placesOf(operation: (typeof operations)[number], rootName: string): Place[] {
  const isShared = (name: string) => idNamed(name, own.ids) !== undefined && swapped(name) !== undefined;
  const places: Place[] = operation.parameters
    .filter(({ name, in: place }) => place !== 'header' && isShared(name))
    .filter(({ name, in: place }) => place !== 'query' || !isFilterOfRecords(operation, name))
    .map(({ name, wireName, in: place }) => ({
      label: `${place} ${name}`,
      swap: (parts, id) =>
        place === 'path'
          ? { ...parts, params: { ...parts.params, [wireName]: id(name)! } }
          : { ...parts, query: { ...parts.query, [wireName]: id(name)! } },
    }));
  for (const field of Object.values(operation.body?.type.getFields() ?? {})) {
    const isList = isListType(getNullableType(field.type));
    if (
      !isId(field.type) ||
      !isShared(snakeCase(field.name)) ||
      welcomesForeigners.includes(`${rootName} input.${field.name}`)
    )
      continue;
    const key = snakeCase(field.name);
    places.push({
      label: `body ${key}`,
      swap: (parts, id) => ({ ...parts, body: { ...(parts.body as object), [key]: isList ? [id(key)] : id(key) } }),
    });
  }
  return places;
}

function isId(type: GraphQLInputType): boolean {
  const nullable = getNullableType(type);
  return isListType(nullable) ? isId(nullable.ofType) : !isInputObjectType(nullable) && nullable.name === 'ID';
}

describe('the control: with the right token the same requests do answer', () => {
  // a tenant's own reading may leave a trace, such as the count of a secret's reveals
  afterAll(async () => {
    await app.jobsDone(); // texts are indexed in the background
    before = await checksums(app.database.pool, foreign.ids.org_id!);
  });
  test.each(
    operations
      .filter(({ method, type }) => method === 'GET' && type === 'query')
      .map((operation) => [routeOf(operation), operation] as const),
  )('%s', async (title, operation) => {
    const answer = await app.server.inject(
      requestOf(operation, foreign, { token: foreign.accounts.owner.accessToken }),
    );
    expect(answer.statusCode, answer.body).toBe(200);
    // some answers hold no text, only identifiers
    const shows = [foreign.marker, ...foreignIds].some((text) => answer.body.includes(text));
    if (!withoutTenant.includes(title)) expect(shows, answer.body).toBe(true);
  });
});

/**
 * Routes, and root fields, that are about the caller or take no identifier. A new one is added here on purpose, or not
 * at all.
 */
const aboutOneself = [
  'DELETE /v1/auth/factors/totp',
  'GET /v1/auth/factors',
  'GET /v1/auth/me',
  'GET /v1/auth/me/profile',
  'GET /v1/notifications',
  'GET /v1/notifications/preferences',
  'GET /v1/notifications/unread-count',
  'GET /v1/orgs',
  'GET /v1/users/me',
  'PATCH /v1/users/me/preferences',
  'POST /v1/auth/factors/proof',
  'POST /v1/auth/factors/proof/begin',
  'POST /v1/auth/factors/recovery-codes',
  'POST /v1/auth/factors/totp',
  'POST /v1/auth/factors/totp/confirm',
  'POST /v1/auth/logout',
  'POST /v1/auth/passkeys',
  'POST /v1/auth/passkeys/begin',
  'POST /v1/auth/sso/logout',
  'POST /v1/connections/oauth/exchange',
  'POST /v1/invitations/accept',
  'POST /v1/notifications/read-all',
  'POST /v1/orgs',
  'POST /v1/users',
  'PUT /v1/notifications/preferences',
];
const rootsAboutOneself = [
  'Mutation.acceptInvitation',
  'Mutation.addPasskey',
  'Mutation.beginFactorProof',
  'Mutation.beginPasskey',
  'Mutation.beginSingleLogout',
  'Mutation.changePassword',
  'Mutation.confirmTotp',
  'Mutation.createOrganization',
  'Mutation.createUser',
  'Mutation.disableTotp',
  'Mutation.enrolTotp',
  'Mutation.exchangeConnection',
  'Mutation.logout',
  'Mutation.markAllNotificationsRead',
  'Mutation.proveFactor',
  'Mutation.renewRecoveryCodes',
  // its places are of a list; those of others are refused in mutes.test.ts
  'Mutation.updateNotificationMutes',
  'Mutation.updateNotificationPreferences',
  // likewise in digests.test.ts
  'Mutation.updateNotificationSchedules',
  'Mutation.updatePreferences',
  // a position in the whole outbox, as the cursors of one's own events are
  'Query.eventCursor',
  'Query.me',
  'Query.myFactors',
  'Query.notificationPreferences',
  'Query.notifications',
  'Query.organizations',
  'Query.serviceStatus',
  'Query.unreadNotifications',
  'Subscription.notificationChanged',
  'Subscription.unreadNotifications',
];

test('everything else that is not public takes an identifier that is swapped', () => {
  const routes = operations.filter(({ isPublic }) => !isPublic);
  expect(
    routes
      .filter((operation) => placesOf(operation, rootFieldOf(operation)).length === 0)
      .map(routeOf)
      .sort(),
  ).toEqual(aboutOneself);
  const roots = rootFields.filter(({ field }) => field.extensions.access !== 'public');
  expect(
    roots
      .filter((root) => swapsOf(root, argumentsOf(root, own)).length === 0)
      .map(titleOf)
      .sort(),
  ).toEqual(rootsAboutOneself);
});

describe('each id of a route swapped for one of another tenant', () => {
  test.each(
    operations.filter(({ isPublic }) => !isPublic).map((operation) => [routeOf(operation), operation] as const),
  )('%s is refused, some of them exactly like an id that does not exist', async (route, operation) => {
    const token = own.accounts.owner.accessToken;
    const places = placesOf(operation, rootFieldOf(operation));
    const compared = thinned(places, route);
    for (const place of places) {
      const { label, swap } = place;
      const parts = partsOf(operation, own, { token });
      const hidden = await expectRefused(injectable(operation, swap(parts, swapped)), label);
      if (!compared.includes(place)) continue;
      const missing = await app.server.inject(injectable(operation, swap(parts, invented)));
      expect(withoutIds(hidden), label).toEqual(withoutIds(missing));
    }
    if (places.length > 1) {
      const all = places.reduce((parts, { swap }) => swap(parts, swapped), partsOf(operation, own, { token }));
      await expectRefused(injectable(operation, all), 'all of them');
    }
  });
});

describe('a filter of records by an id of another tenant leaves nothing', () => {
  const filters = operations.flatMap((operation) =>
    operation.parameters
      .filter(({ name, in: place }) => place === 'query' && isFilterOfRecords(operation, name))
      .map(({ name }) => [`${routeOf(operation)}?${name}`, operation, name] as const),
  );
  test('there are such filters', () => expect(filters.length).toBeGreaterThan(10));
  test.each(filters)('%s', async (_title, operation, name) => {
    const parts = partsOf(operation, own, { token: own.accounts.owner.accessToken });
    const id = swapped(name) ?? foreign.ids.workspace_id!;
    const answer = await app.server.inject(injectable(operation, { ...parts, query: { [name]: id } }));
    const [, , list = ''] = filtersOfRecords.find(([path]) => operation.path.endsWith(path)) ?? [];
    expect(answer.json()).toEqual({ total: 0, has_more: false, next_cursor: null, [list]: [] });
  });
});

describe('each id of a root field swapped for one of another tenant', () => {
  test.each(
    rootFields
      .filter(({ field }) => field.extensions.access !== 'public')
      .map((root) => [titleOf(root), root] as const),
  )('%s', async (_title, root) => {
    const given = argumentsOf(root, own);
    const changes = swapsOf(root, given);
    if (changes.length > 1) changes.push(Object.assign({}, ...changes) as Record<string, unknown>);
    for (const change of changes) {
      const request = graphqlRequest(
        documentOf(root, { ...given, ...change }, 3),
        { ...given, ...change },
        `Bearer ${own.accounts.owner.accessToken}`,
      );
      if (root.kind === 'subscription') request.headers = { ...request.headers, accept: 'text/event-stream' };
      const answer = await app.server.inject(request);
      const text = root.kind === 'subscription' ? /^data: (.+)$/m.exec(answer.body)?.[1] : answer.body;
      const { data, errors } = JSON.parse(text ?? '') as {
        data?: Record<string, unknown> | null;
        errors?: { extensions: { code: string } }[];
      };
      expect(data?.[root.name] ?? null, answer.body).toBeNull();
      if (root.name !== 'node')
        expect(['FORBIDDEN', 'RESOURCE_NOT_FOUND', 'VALIDATION_ERROR'], answer.body).toContain(
          errors?.[0]?.extensions.code,
        );
      expect(leakOf(answer.body, request)).toBeUndefined();
    }
  });

  test.runIf(rootFields.some(({ name }) => name === 'node'))(
    'node(id) of everything that the other tenant has',
    async () => {
      for (const id of thinned([...foreignIds], 'node')) {
        const request = graphqlRequest(
          'query ($id: ID!) { node(id: $id) { __typename id } }',
          { id },
          `Bearer ${own.accounts.owner.accessToken}`,
        );
        const answer = await app.server.inject(request);
        expect(answer.json<{ data?: { node: unknown } | null }>().data?.node ?? null, id).toBeNull();
        expect(leakOf(answer.body, request)).toBeUndefined();
      }
    },
  );
});

/** Arguments with one id swapped each. */
function swapsOf(root: (typeof rootFields)[number], given: Record<string, unknown>): Record<string, unknown>[] {
  return root.field.args.flatMap((argument): Record<string, unknown>[] => {
    if (!(argument.name in given)) return [];
    const type = getNullableType(argument.type);
    if (isInputObjectType(type)) {
      return Object.values(type.getFields()).flatMap((field) => {
        const id =
          isId(field.type) && !welcomesForeigners.includes(`${root.name} input.${field.name}`)
            ? swapped(snakeCase(field.name))
            : undefined;
        return id === undefined
          ? []
          : [
              {
                [argument.name]: {
                  ...(given[argument.name] as object),
                  [field.name]: isListType(getNullableType(field.type)) ? [id] : id,
                },
              },
            ];
      });
    }
    const meaning = root.name === 'node' ? 'workspace_id' : meaningOf(root, argument.name, own.ids);
    const id = isId(argument.type) ? swapped(meaning) : undefined;
    return id === undefined ? [] : [{ [argument.name]: id }];
  });
}

describe('what the own requests answer', () => {
  test.each(
    operations
      // one's own activity names what one has asked for above
      .filter(({ method, type, path }) => method === 'GET' && type === 'query' && !path.endsWith('/activity'))
      .map((operation) => [routeOf(operation), operation] as const),
  )('%s shows nothing of the other tenant, also when asked for it', async (_title, operation) => {
    const token = own.accounts.owner.accessToken;
    const parts = partsOf(operation, own, { token });
    const searches = operation.parameters.filter(({ name }) => ['search', 'q', 'query', 'name'].includes(name));
    for (const query of [
      {},
      ...searches.map(({ wireName }) => ({ [wireName]: foreign.marker.slice(0, 6) })),
      ...searches.map(({ wireName }) => ({ [wireName]: '%' })),
    ]) {
      const request = injectable(operation, { ...parts, query: { ...parts.query, ...query } });
      const answer = await app.server.inject(request);
      expect(leakOf(answer.body, request)).toBeUndefined();
    }
  });
});

test('nothing of the other tenant was changed by any of it', async () => {
  expect(await checksums(app.database.pool, foreign.ids.org_id!)).toEqual(before);
});
