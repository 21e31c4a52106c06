import type { LightMyRequestResponse } from 'fastify';
import {
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  isInterfaceType,
  isListType,
  isObjectType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { gentlestFirst, operationAt, operations, routeOf } from '../support/operations.ts';
import { expectOk, graphqlRequest, injectable, partsOf } from '../support/requests.ts';
import { argumentsOf, documentOf, type RootField, rootFields } from '../support/root-fields.ts';
import { changedTables, databaseChecksums } from '../support/rows.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, findKey, settled, type World, workDone } from '../support/world.ts';

/** Mutations without `expectedVersion`, and why. A new one is added here on purpose, or not at all. */
const withoutVersion: Record<string, string> = {
  updateWorkspaceStorage: 'sets one number, which has no version of its own',
  updateOrganizationStorage: 'the same',
  updateSignInPolicy: 'sets rules, which have no version of their own',
  breakGlass: 'about the session or the sign-in of the account',
  acceptInvitation: 'whoever is invited cannot read the invitation',
  addOrganizationMember: 'makes something',
  addWorkspaceMember: 'makes something',
  applyRecipe: 'makes something',
  archiveNotification: 'moves what nobody else sees; repeating it changes nothing',
  beginFactorProof: 'about the session or the sign-in of the account',
  beginPasskey: 'about the session or the sign-in of the account',
  beginPasskeySignIn: 'about the session or the sign-in of the account',
  completeSignIn: 'about the session or the sign-in of the account',
  confirmTotp: 'about the session or the sign-in of the account',
  enrolTotp: 'about the session or the sign-in of the account',
  proveFactor: 'about the session or the sign-in of the account',
  disableTotp: 'about the session or the sign-in of the account',
  renewRecoveryCodes: 'about the session or the sign-in of the account',
  signInWithPasskey: 'about the session or the sign-in of the account',
  addPasskey: 'makes something',
  removePasskey: 'of the caller alone, who cannot lose what they remove',
  renamePasskey: 'a name that nobody else sees or changes',
  changePassword: 'about the session or the sign-in of the account',
  createApiToken: 'makes something',
  createRecipeOfApp: 'makes something',
  createArtifact: 'makes something; a next version adds to what it cannot lose',
  createAppToken: 'makes something',
  createEnvironment: 'makes something',
  createConnectLink: 'makes something; the links that it ends have no versions',
  createNamespaceConnection: 'makes something, or replaces the key of what it cannot name',
  createUpload: 'makes something',
  createWorkspaceConnection: 'makes something, or replaces the key of what it cannot name',
  finishUpload: 'makes something',
  executeNamespaceToolAction: 'changes nothing but what is counted',
  executeToolAction: 'changes nothing but what is counted',
  exchangeConnection: 'the state names what was started',
  forgotPassword: 'about the session or the sign-in of the account',
  initiateNamespaceConnection: 'makes something; the connection that is there stays as it is',
  initiateWorkspaceConnection: 'makes something; the connection that is there stays as it is',
  discoverSso: 'changes nothing',
  exchangeSsoCode: 'about the session or the sign-in of the account',
  finishOidcSignIn: 'about the session or the sign-in of the account',
  finishSamlSignIn: 'about the session or the sign-in of the account',
  importWorkspace: 'makes something, in a workspace that stays as it is',
  importTool: 'makes something',
  previewToolImport: 'changes nothing',
  previewToolReimport: 'changes nothing',
  importEntities: 'is about many, each of which is found by what it is',
  createApplication: 'makes something',
  createScimToken: 'makes something',
  createAuditStream: 'makes something',
  testAuditStream: 'makes something',
  createWebhook: 'makes something',
  testWebhook: 'makes something',
  redeliverWebhookDelivery: 'a delivery has no version; one that waits stays as it is',
  redeliverWebhookDeliveries: 'is about many, which have no versions',
  initiateSso: 'makes something',
  login: 'about the session or the sign-in of the account',
  issueNamespaceConnectionToken: 'changes nothing',
  issueWorkspaceConnectionToken: 'changes nothing',
  joinPresence: 'who is present is no resource with a version',
  leavePresence: 'who is present is no resource with a version',
  linkIdentity: 'makes something',
  beginSingleLogout: 'about the session or the sign-in of the account',
  logout: 'about the session or the sign-in of the account',
  mapMissingParts: 'is about many parts of an app, and changes only what each lacks',
  markAllNotificationsRead: 'moves what nobody else sees; repeating it changes nothing',
  markNotificationRead: 'moves what nobody else sees; repeating it changes nothing',
  markNotificationUnread: 'moves what nobody else sees; repeating it changes nothing',
  refreshNamespaceConnection: 'replaces what the provider gave, and no setting',
  refreshWorkspaceConnection: 'replaces what the provider gave, and no setting',
  refresh: 'about the session or the sign-in of the account',
  refreshApiToken: 'makes the next token; the refresh token names the one before',
  register: 'makes something',
  relateEntities: 'makes something; the versions of both ends stay',
  reportExecution: 'reports are ordered by what they say: a run has no version',
  reportModelUsage: 'counts: reports do not depend on one another',
  resolveEntity: 'makes something, or finds it',
  revokeApplicationGrant: 'a grant has no version: it is there or it is not',
  resendVerification: 'about the session or the sign-in of the account',
  resetPassword: 'about the session or the sign-in of the account',
  switchOrganization: 'about the session or the sign-in of the account',
  testIdentityProvider: 'makes something',
  testToolInstance: 'changes nothing but what is counted',
  unarchiveNotification: 'moves what nobody else sees; repeating it changes nothing',
  resetMemberFactors: 'ends all factors that there are; none are left to repeat it on',
  endMemberSessions: 'a session has no version: it is open or it is not',
  resumeApiTokens: 'is about many tokens, and repeating it changes nothing',
  unlinkIdentity: 'a link has no version: it is there or it is not',
  updateNotificationMutes: "replaces the caller's own list",
  updateNotificationSchedules: "replaces the caller's own list",
  updateNotificationPreferences: "replaces the caller's own list",
  viewResource: 'who is present is no resource with a version',
  verifyEmail: 'about the session or the sign-in of the account',
};

/** Tables with a version that have no type: what a directory keeps is SCIM's, which has ETags of its own. */
const withoutType = ['scim_users', 'scim_groups'];

/**
 * Nodes that nobody changes; a notification is its recipient's own, and only moves between three states. A grant ends,
 * and is gone.
 */
const unchanging = ['Deployment', 'Notification', 'ApplicationGrant'];

const versioned = schema.getType('Versioned');
const isVersioned = (type: GraphQLOutputType | undefined) => {
  const named = getNamedType(type);
  return isObjectType(named) && named.getInterfaces().some((candidate) => candidate === versioned);
};

/** `createNote`, which answers a `Note`: there is no version yet. */
const makesWhatItAnswers = ({ name, field }: RootField): boolean =>
  isVersioned(field.type) && name === `create${getNamedType(field.type).name}`;

test('every mutation takes the version of its resource, but those that make it or are listed', () => {
  const mutations = rootFields.filter(({ kind }) => kind === 'mutation');
  const makers = mutations.filter(makesWhatItAnswers).map(({ name }) => name);
  const without = mutations.filter(({ field }) => field.args.every(({ name }) => name !== 'expectedVersion'));
  expect(without.map(({ name }) => name).sort()).toEqual(
    [...new Set([...Object.keys(withoutVersion), ...makers])].sort(),
  );
});

test('every type with its own identifier has a version, except those that never change', () => {
  const node = schema.getType('Node');
  if (!isInterfaceType(node)) throw new Error('Node is no interface.');
  const without = schema.getPossibleTypes(node).filter((type) => !isVersioned(type));
  expect(without.map(({ name }) => name)).toEqual(unchanging);
});

test('each route answers a single resource with its ETag, be it in an envelope or not', () => {
  const isSingle = ({ response, type }: CompiledOperation) => {
    if (type === 'subscription' || response.kind !== 'value') return false;
    const named = getNamedType(response.type);
    if (isVersioned(named)) return true;
    // a session is no resource, though it shows its user; nor is a traversal, though it shows where it started
    return (
      response.shape?.fields.some(
        ({ type: inner, key }) =>
          inner && !isListType(getNullableType(inner)) && isVersioned(inner) && key !== 'user' && key !== 'root',
      ) ?? false
    );
  };
  const wrong = operations.filter((operation) => isSingle(operation) !== (operation.etag !== null));
  expect(wrong.map(routeOf)).toEqual([]);
});

test('a trigger raises the version in each table that has one', async () => {
  const { rows } = await app.database.pool.query<{ name: string; triggers: string[] }>(
    `select c.table_name as name, array(select tgname::text from pg_trigger g where g.tgrelid = c.table_name::regclass
      and g.tgname = 'resource_version') as triggers
     from information_schema.columns c where c.table_schema = 'public' and c.column_name = 'resource_version'`,
  );
  expect(rows.length - withoutType.length).toBe(schema.getPossibleTypes(versioned as never).length);
  for (const { name, triggers } of rows) expect(triggers, name).toEqual(['resource_version']);
});

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());

type Ids = Record<string, string>;
const asOwner = () => world.as('owner');
const ask = async (method: string, path: string, body: object = {}) => {
  const operation = operationAt(method, path);
  const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken, requiredOnly: false });
  return expectOk(
    app,
    injectable(operation, { ...parts, body: operation.body ? { ...(parts.body as object), ...body } : undefined }),
  );
};
const O = '/v1/orgs/{org_id}';
const W = `${O}/workspaces/{workspace_id}`;
const E = `${W}/environments/{environment_id}`;
const newToken = async (path: string): Promise<Ids> => ({ token_id: findKey(await ask('POST', path), ['token_id'])! });
const newInvitation = async (): Promise<Ids> => ({
  invitation_id: findKey(await ask('POST', `${O}/invitations`), ['invitation_id'])!,
});

/** What is deleted and restored again and again. */
const lost: { workspace_id?: string; secret_id?: string; artifact_id?: string } = {};

/**
 * What a route needs before each of its requests, for it to find something that it can change. @returns other ids than
 * the world's
 */
const before: Record<string, () => Promise<Ids>> = {
  [`POST ${O}/invitations/{invitation_id}/resend`]: newInvitation,
  [`DELETE ${O}/invitations/{invitation_id}`]: newInvitation,
  [`DELETE ${O}/api-tokens/{token_id}`]: () => newToken(`${O}/api-tokens`),
  [`DELETE ${O}/api-tokens/admin/{token_id}`]: () => newToken(`${O}/api-tokens`),
  [`DELETE ${O}/apps/{app_id}/tokens/{token_id}`]: () => newToken(`${O}/apps/{app_id}/tokens`),
  [`POST ${O}/secrets/{secret_id}/restore`]: async () => {
    lost.secret_id ??= findKey(await ask('POST', `${O}/secrets`), ['secret_id'])!;
    const url = `/v1/orgs/${world.ids.org_id}/secrets/${lost.secret_id}`;
    await app.server.inject({ method: 'DELETE', url, headers: asOwner() });
    return { secret_id: lost.secret_id };
  },
  [`POST ${W}/restore`]: async () => {
    lost.workspace_id ??= findKey(await ask('POST', `${O}/workspaces`), ['workspace_id'])!;
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${lost.workspace_id}`;
    await app.server.inject({ method: 'DELETE', url, headers: asOwner() });
    return { workspace_id: lost.workspace_id };
  },
  [`POST ${W}/namespaces/{namespace_id}/artifacts/{artifact_id}/restore`]: async () => {
    lost.artifact_id ??= findKey(await ask('POST', `${W}/namespaces/{namespace_id}/artifacts`), ['artifact_id'])!;
    await app.jobsDone();
    const { org_id, workspace_id, namespace_id } = world.ids;
    const shelf = `/v1/orgs/${org_id}/workspaces/${workspace_id}/namespaces/${namespace_id}/artifacts`;
    await app.server.inject({ method: 'DELETE', url: `${shelf}/${lost.artifact_id}`, headers: asOwner() });
    return { artifact_id: lost.artifact_id };
  },
  [`POST ${W}/apps/{app_id}/namespaces/{namespace_id}/entities/{entity_id}/merge`]: async () => {
    const made = await ask('POST', `${W}/apps/{app_id}/namespaces/{namespace_id}/entities`);
    return { merged_entity_id: findKey(made, ['entity_id'])! };
  },
  [`DELETE ${E}/deploy/{app_id}`]: async () => {
    await ask('POST', `${E}/deploy`);
    return {};
  },
  // it was promoted
  [`DELETE ${W}/namespaces/{namespace_id}/artifacts/{artifact_id}`]: async () => ({
    artifact_id: findKey(await ask('POST', `${W}/namespaces/{namespace_id}/artifacts`), ['artifact_id'])!,
  }),
  // it is deployed
  [`DELETE ${W}/apps/{app_id}/releases/{release_id}`]: async () => ({
    release_id: findKey(await ask('POST', `${W}/apps/{app_id}/releases`), ['release_id'])!,
  }),
  // endpoints and actions run it
  [`DELETE ${W}/apps/{app_id}/augmentations/{augmentation_id}`]: async () => ({
    augmentation_id: findKey(await ask('POST', `${W}/apps/{app_id}/augmentations`), ['augmentation_id'])!,
  }),
  // steps use the world's
  [`DELETE ${W}/tool-instances/{instance_id}`]: async () => {
    const instance_id = findKey(await ask('POST', `${W}/tool-instances`), ['instance_id'])!;
    return { instance_id, tool_instance_id: instance_id };
  },
  // the world's has instances
  [`DELETE ${O}/tools/{tool_id}`]: async () => ({ tool_id: findKey(await ask('POST', `${O}/tools`), ['tool_id'])! }),
  [`DELETE ${O}/model-catalog/{logical_model_id}`]: async () => ({
    logical_model_id: findKey(await ask('POST', `${O}/model-catalog`), ['logical_model_id'])!,
  }),
  // models have targets at the world's
  [`DELETE ${O}/provider-accounts/{provider_account_id}`]: async () => ({
    provider_account_id: findKey(await ask('POST', `${O}/provider-accounts`), ['provider_account_id'])!,
  }),
  [`POST ${W}/tool-instances/{instance_id}/upgrade`]: async () => {
    await app.database.pool.query(
      `update tools set current_schema_version = current_schema_version + 1
        where id = (select tool_id from tool_instances where id = $1)`,
      [world.ids.instance_id],
    );
    return {};
  },
  // the world's member has left the organization by then, and is nobody's to manage
  'DELETE /v1/users/{user_id}': async () => ({ user_id: world.accounts.editor.userId }),
};

/** What of a sample would be refused. */
const withoutFields: Record<string, string[]> = {
  [`PUT ${E}`]: ['slug', 'is_default'],
  [`POST ${O}/secrets/{secret_id}/rotate`]: ['expected_version'],
  'PUT /v1/users/{user_id}': ['email', 'username'],
};

/** Whether anything was changed since background work was last waited for. */
let hasChanged = true;

/** @param done waits for background work, such as indexing and making storage: it is no change of a test */
const prepared = async (operation: CompiledOperation, done = settled): Promise<World> => {
  const makeIds = before[routeOf(operation)];
  const ids = { ...world.ids, ...(await makeIds?.()) };
  if (makeIds || hasChanged) await done(app);
  hasChanged = false;
  return { ...world, ids };
};

/** A request that would succeed without the header. */
async function send(operation: CompiledOperation, source: World, ifMatch?: string): Promise<LightMyRequestResponse> {
  const parts = partsOf(operation, source, { token: world.accounts.owner.accessToken, requiredOnly: false });
  delete parts.query.permanent;
  for (const field of withoutFields[routeOf(operation)] ?? []) delete (parts.body as Record<string, unknown>)[field];
  if (ifMatch !== undefined) parts.headers['if-match'] = ifMatch;
  const answer = await app.server.inject(injectable(operation, parts));
  hasChanged ||= answer.statusCode < 400;
  return answer;
}

/** The version that a refusal tells, once it has been looked at. */
function versionOf(answer: LightMyRequestResponse): number {
  const body = answer.json<{ details: { current_version: number } }>();
  const { current_version } = body.details;
  expect(body).toEqual({
    error: 'PRECONDITION_FAILED',
    message: expect.any(String) as string,
    details: { current_version },
    timestamp: expect.any(String) as string,
    status_code: 412,
  });
  expect(current_version).toBeGreaterThanOrEqual(1);
  return current_version;
}

/** Routes that leave nothing behind whose version could be seen. */
const isLast = ({ method }: CompiledOperation) => method === 'DELETE';
const inOrder = gentlestFirst(operations.filter(({ takesIfMatch }) => takesIfMatch));
// tokens, secrets and sources live in the app, the workspace and the namespace
const takesAllAlong = ({ method, path }: CompiledOperation) =>
  method === 'DELETE' && [`${W}/namespaces/{namespace_id}`, `${W}/apps/{app_id}`, W, O].includes(path);
const takers = [...inOrder.filter((operation) => !takesAllAlong(operation)), ...inOrder.filter(takesAllAlong)];

test('PUT, PATCH and DELETE all take If-Match, but for what never changes and has no version', () => {
  const without = operations.filter(({ method, takesIfMatch }) => /PUT|PATCH|DELETE/.test(method) && !takesIfMatch);
  expect(without.map(({ rootField }) => rootField)).toEqual([
    'revokeApplicationGrant',
    'relateEntities',
    'disableTotp',
    'renamePasskey',
    'removePasskey',
    'updateSignInPolicy',
    'updateWorkspaceStorage',
    'updateOrganizationStorage',
    'updateNotificationPreferences',
    'archiveNotification',
  ]);
});

const withRoutes = takers.map((operation) => [routeOf(operation), operation] as const);

describe.each(withRoutes)('%s', (route, operation) => {
  let source: World;
  beforeAll(async () => {
    source = await prepared(operation);
  });

  test('refuses a version that is not the current one, and changes nothing', async () => {
    const was = await databaseChecksums(app.database.pool);
    const current = versionOf(await send(operation, source, '"999999999"'));
    const tags = [`W/"${current}"`, '"somebody-elses"', '""', `"999999999", W/"${current}"`, `"0${current}"`];
    for (const tag of thinned(tags, `${route} tags`)) {
      const fresh = before[routeOf(operation)] === newInvitation ? await prepared(operation) : source;
      expect(versionOf(await send(operation, fresh, tag)), tag).toBe(current);
    }
    if (before[routeOf(operation)] !== newInvitation)
      expect(changedTables(was, await databaseChecksums(app.database.pool))).toEqual([]);
  });

  test('refuses a header that is not a list of entity tags', async () => {
    const was = await databaseChecksums(app.database.pool);
    const headers = ['1', '', '"1', 'W/', '*, "1"', '"1" "2"', 'w/"1"', '"a b"'];
    for (const header of thinned(headers, `${route} headers`)) {
      const answer = await send(operation, source, header);
      expect(answer.statusCode, header).toBe(400);
      expect(answer.json()).toMatchObject({ error: 'INVALID_REQUEST', details: { reason: 'if_match' } });
    }
    expect(changedTables(was, await databaseChecksums(app.database.pool))).toEqual([]);
  });

  test('GraphQL refuses it likewise: with expectedVersion', async () => {
    const root = rootFields.find(({ name }) => name === operation.rootField)!;
    const given = argumentsOf(root, source);
    const was = await databaseChecksums(app.database.pool);
    const asked = async (expectedVersion: number) => {
      const all = { ...given, expectedVersion };
      // a refusal shows nothing of what is asked for: two objects deep, no document is too large
      const document = documentOf(root, all, 2);
      const answer = await app.server.inject(graphqlRequest(document, all, asOwner().authorization));
      return answer.json<{ data: unknown; errors: { extensions: unknown }[] }>().errors[0]?.extensions;
    };
    expect(await asked(999_999_999)).toEqual({
      code: 'PRECONDITION_FAILED',
      details: { current_version: versionOf(await send(operation, await again(operation, source), '"999999999"')) },
    });
    expect(await asked(0)).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: ['expectedVersion'], type: 'greater_than_equal' }] },
    });
    if (before[routeOf(operation)] !== newInvitation)
      expect(changedTables(was, await databaseChecksums(app.database.pool))).toEqual([]);
  });
});

// These come last: transactions of others hold back the events of a change, and the tests above would wait for them.
test.each(withRoutes)(
  '%s takes the current version, among others too, and `*`; what it changed has another one then',
  async (_route, operation) => {
    const source = await prepared(operation, workDone);
    const current = versionOf(await send(operation, source, '"999999999"'));
    const fresh = await again(operation, source, workDone);
    const done = await send(operation, fresh, `"999999999" , "${current}"`);
    expect(done.statusCode, done.body).toBe(operation.status);
    expect(done.body).not.toMatch(/_etag|resource_version/);
    if (operation.etag) expect(Number(JSON.parse(String(done.headers.etag)))).toBeGreaterThan(current);
    else expect(done.headers.etag).toBeUndefined();
    if (isLast(operation)) return;
    const next = await again(operation, fresh, workDone);
    const read = operations.find(({ method, path }) => method === 'GET' && path === operation.path);
    if (read) expect((await send(read, next)).headers.etag).toBe(done.headers.etag);
    if (next === fresh) versionOf(await send(operation, next, `"${current}"`));
    expect((await send(operation, next, ' * ')).statusCode).toBe(operation.status);
  },
);

/**
 * An address gets three mails in an hour, so that each attempt needs an invitation of its own; and what was done once
 * may have to be again.
 */
async function again(operation: CompiledOperation, source: World, done = settled): Promise<World> {
  const needsAnother = before[routeOf(operation)] === newInvitation || routeOf(operation).endsWith('/restore');
  return needsAnother ? prepared(operation, done) : source;
}
