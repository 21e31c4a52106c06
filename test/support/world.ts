import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import type { CompiledOperation } from '../../rest/operation.ts';
import { newId } from '../../src/kernel/ids.ts';
import { type Role, roles } from '../../src/kernel/roles.ts';
import type { TestApp } from './app.ts';
import { makeGrant } from './application-grant.ts';
import { operationAt, operations, pathVariables, routeOf } from './operations.ts';
import { type Account, createUser, PASSWORD, prove, register } from './person.ts';
import { expectOk, injectable, partsOf } from './requests.ts';
import { type SampleSource, sharedIds } from './samples.ts';
import { fromOutside } from './single-connection.ts';
import { makeMarkedInstance } from './tool-instance.ts';
import { waitUntil } from './wait.ts';

/**
 * A tenant with something in every corner, made through the front door: an organization, a workspace, an account of
 * each role (the same role in both), and one of each resource that has a route to make it. All its texts hold `marker`.
 */
export interface World extends SampleSource {
  accounts: Record<Role, Account>;
  /** Member of the organization, of no workspace. */
  guest: Account;
  /** Belongs to another organization. */
  stranger: Account;
  /** `Bearer …` of the account with that role. */
  as: (role: Role) => { authorization: string };
}

type Json = Record<string, unknown>;

/** The first account of an instance administers the platform: no world's account should be that one. */
export async function ensureOperator(app: TestApp): Promise<void> {
  const isEmpty = (await app.database.prisma.user.count()) === 0;
  if (isEmpty) await register(app, { username: 'operator' });
}

export interface WorldOptions {
  /** Resources are made too, one of each; else only the organization, its workspace and the accounts. */
  withResources?: boolean;
}

/** Makes a world; see {@link World}. */
export async function createWorld(app: TestApp, { withResources = true }: WorldOptions = {}): Promise<World> {
  await ensureOperator(app);
  const marker = `mk${randomBytes(6).toString('hex')}`;
  const owner = await register(app, { username: `${marker}-owner`, fullName: `${marker} owner`, password: PASSWORD });
  const stranger = await register(app, {
    username: `zz${randomBytes(6).toString('hex')}`,
    fullName: 'Somebody else',
    password: PASSWORD,
  });
  const ids: Record<string, string> = {
    org_id: owner.orgId,
    workspace_id: owner.workspaceId,
    stranger_user_id: stranger.userId,
  };
  let count = 0;
  const asOwner = owner.headers;
  const hire = (name: string, role: Role) =>
    createUser(app, owner, { username: `${marker}-${name}`, fullName: `${marker} ${name}`, password: PASSWORD, role });
  const others = roles.filter((role) => role !== 'owner');
  const hired: Account[] = await Promise.all([...others.map((role) => hire(role, role)), hire('guest', 'member')]);
  const guest = hired.pop()!;
  const [viewer, member, editor, admin] = hired as [Account, Account, Account, Account];
  const accounts: Record<Role, Account> = { viewer, member, editor, admin, owner };
  await fromOutside(() => prove(app, [...Object.values(accounts), guest]));
  for (const role of others) {
    const payload = { user_id: accounts[role].userId, role };
    await expectOk(app, {
      method: 'POST',
      url: `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}/members`,
      headers: asOwner,
      payload,
    });
  }
  Object.assign(ids, {
    user_id: accounts.member.userId,
    member_user_id: accounts.member.userId,
    guest_user_id: guest.userId,
  });
  const world: World = {
    marker,
    ids,
    // the owner has a passkey, and signs in with more than a password
    username: guest.username,
    password: PASSWORD,
    next: () => ++count,
    accounts,
    guest,
    stranger,
    as: (role) => ({ authorization: `Bearer ${accounts[role].accessToken}` }),
  };
  await fill(app, world, 'PUT', '/v1/orgs/{org_id}/workspaces/{workspace_id}');
  await fill(app, world, 'PUT', '/v1/users/{user_id}', { email: undefined, username: undefined });
  await fill(app, world, 'PATCH', '/v1/users/me/preferences');
  if (withResources) {
    // the first environment is the default one, which cannot go before the others: `environment_id` is the second
    const environments = operationAt('POST', '/v1/orgs/{org_id}/workspaces/{workspace_id}/environments');
    ids.from_environment_id = findKey(await makeOne(app, world, environments), ['environment_id'])!;
    const secret = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/secrets'));
    Object.assign(ids, { secret_id: secret.secret_id, name: secret.name });
    const tool = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/tools'));
    Object.assign(ids, { tool_id: tool.tool_id, slug: tool.slug });
    // a model has targets at an account; entitlements are known by their model
    for (const variable of ['provider_account_id', 'logical_model_id']) await makeId(app, world, variable);
    await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/workspaces/{workspace_id}/model-entitlements'));
    const instanceId = await makeMarkedInstance(app, world);
    Object.assign(ids, { tool_instance_id: instanceId, instance_id: instanceId });
    await makeRelation(app, world);
    // endpoints and actions run it, and executions name all of them
    for (const variable of ['augmentation_id', 'endpoint_id', 'action_id']) await makeId(app, world, variable);
    ids.notification_id = await makeNotification(app, world, 'owner');
    ids.passkey_id = await makePasskey(app, world, 'owner');
    ids.session_id = await sessionOf(app, world);
    ids.end_user_connection_id = await makeEndUserConnection(app, world);
    // artifacts are made in it
    await makeId(app, world, 'thread_id');
    // no route makes a version of a recipe alone
    await makeId(app, world, 'organization_recipe_id');
    ids.organization_recipe_version_id = await versionOf(app, ids.organization_recipe_id!);
    await makeId(app, world, 'application_id');
    ids.application_grant_id = await grantIn(app, world);
    // no route makes a delivery of an event
    await makeId(app, world, 'webhook_id');
    ids.webhook_delivery_id = await deliveryOf(app, world);
    await makeId(app, world, 'audit_stream_id');
    ids.audit_stream_delivery_id = await auditDeliveryOf(app, world);
    for (const variable of variablesOf(operations)) await makeId(app, world, variable);
    // an instance of the world's own tool
    await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances'));
    await deployEverywhere(app, world);
    // an artifact with a version before
    await fill(
      app,
      world,
      'PUT',
      '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/artifacts/{artifact_id}',
    );
  }
  // no route names one by its own id
  if (withResources)
    for (const path of ['namespaces/{namespace_id}/connections', 'connections/api-key'])
      Object.assign(ids, {
        connection_id: findKey(
          await makeOne(app, world, operationAt('POST', `/v1/orgs/{org_id}/workspaces/{workspace_id}/${path}`)),
          ['connection_id'],
        ),
      });
  // no route names one alone, so its id is asked for nowhere
  if (withResources) await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/apps/{app_id}/tokens'));
  if (withResources) ids.test_id = await startedTest(app, world);
  if (withResources) ids.received_upload = await receivedFile(app, world, 'owner');
  await settled(app);
  return world;
}

/**
 * Resolves when jobs that are due are done (texts are indexed, and mails gone), and all workspaces have their storage.
 * The service itself may hold a workspace while it makes its storage, so that nothing is pending for others.
 */
export async function workDone(app: TestApp): Promise<void> {
  await app.jobsDone();
  await waitUntil(async () => {
    await app.services.buckets.provisionPending();
    return isNone(app, `select from workspaces where bucket_status = 'pending' and deleted_at is null limit 1`);
  });
}

/**
 * Resolves when what happens a moment later by itself has happened: {@link workDone}, and a stream that is opened now
 * begins behind all events so far. Transactions of other databases of the server hold events back, too.
 */
export async function settled(app: TestApp): Promise<void> {
  await workDone(app);
  await waitUntil(() => isNone(app, 'select from events where xid >= pg_snapshot_xmin(pg_current_snapshot()) limit 1'));
}

const isNone = async (app: TestApp, text: string): Promise<boolean> =>
  (await fromOutside(() => app.database.pool.query(text))).rowCount === 0;

/** Deploys the world's release in its environments. */
async function deployEverywhere(app: TestApp, world: World): Promise<void> {
  const deploy = operationAt(
    'POST',
    '/v1/orgs/{org_id}/workspaces/{workspace_id}/environments/{environment_id}/deploy',
  );
  const ids = world.ids as Record<string, string>;
  for (const environment_id of [ids.from_environment_id!, ids.environment_id!]) {
    const body = await makeOne(app, { ...world, ids: { ...ids, environment_id } }, deploy);
    ids.deployment_id = findKey(body, ['deployment_id'])!;
  }
}

const graph = '/v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}/namespaces/{namespace_id}';

/** Makes a relation of the world's entity to another one; its route does not answer its id. */
export async function makeRelation(app: TestApp, world: World): Promise<string> {
  const ids = world.ids as Record<string, string>;
  for (const variable of ['app_id', 'namespace_id']) await makeId(app, world, variable);
  const entities = operationAt('POST', `${graph}/entities`);
  ids.target_entity_id ??= findKey(await makeOne(app, world, entities), ['entity_id'])!;
  await makeId(app, world, 'entity_id');
  await makeOne(app, world, operationAt('POST', `${graph}/entities/relations`));
  // what is merged already can be merged again, and nothing is lost
  ids.merged_entity_id ??= newId('entity');
  await app.database.pool.query(
    `insert into entity_merges (id, org_id, app_id, namespace_id, entity_id)
     select $1, org_id, app_id, namespace_id, id from entities where id = $2 on conflict do nothing`,
    [ids.merged_entity_id, ids.entity_id],
  );
  const { rows } = await app.database.pool.query<{ id: string }>(
    'select id from entity_relations where source_entity_id = $1 order by id desc limit 1',
    [ids.entity_id],
  );
  ids.relation_id ??= rows[0]!.id;
  return rows[0]!.id;
}

/** Somebody else revokes a token of the account with this role, which is told of it. No route makes notifications. */
export async function makeNotification(app: TestApp, { ids, as }: World, role: Role): Promise<string> {
  const url = `/v1/orgs/${ids.org_id}/api-tokens`;
  const { token } = await expectOk<{ token: { token_id: string } }>(app, {
    method: 'POST',
    url,
    headers: as(role),
    payload: { name: 'told' },
  });
  const other = as(role === 'owner' ? 'admin' : 'owner');
  await expectOk(app, { method: 'DELETE', url: `${url}/admin/${token.token_id}`, headers: other });
  const { notifications } = await expectOk<{ notifications: { notification_id: string }[] }>(app, {
    method: 'GET',
    url: '/v1/notifications',
    headers: as(role),
  });
  // the newest rows are the pattern of others: lists show no row like this one
  await app.database.pool.query('delete from api_tokens where id = $1', [token.token_id]);
  return notifications[0]!.notification_id;
}

/** A connection of an end user of the world's instance. No route makes one without a browser. */
export async function makeEndUserConnection(app: TestApp, { accounts, ids, marker }: World): Promise<string> {
  const id = newId('connection');
  await fromOutside(() =>
    app.database.pool.query(
      `insert into connections (id, org_id, workspace_id, namespace_id, tool_instance_id, tool_id, end_user_id,
          end_user_name, end_user_email, auth_type, status, account_label, created_by)
        select $1::text, org_id, workspace_id, namespace_id, id, tool_id, $3 || '-' || lower($1::text), $3,
          $3 || '@example.test', 'api_key', 'connected', $3, $4
        from tool_instances where id = $2`,
      [id, ids.instance_id, marker, accounts.owner.userId],
    ),
  );
  return id;
}

/** The newest session of the world's owner. No route tells it. */
async function sessionOf(app: TestApp, { accounts }: World): Promise<string> {
  const text = 'select max(id) as id from sessions where user_id = $1';
  return (await app.database.pool.query<{ id: string }>(text, [accounts.owner.userId])).rows[0]!.id;
}

/** A passkey, which was just used. No route makes one without an authenticator. */
export const makePasskey = (app: TestApp, { accounts, marker }: World, role: Role): Promise<string> =>
  givePasskey(app, accounts[role].userId, `${marker} key`);

/** The same for anybody. */
export async function givePasskey(app: TestApp, userId: string, name: string): Promise<string> {
  const id = newId('passkey');
  await fromOutside(() =>
    app.database.pool.query(
      `with used as (update sessions set factor_at = now() where user_id = $2)
        insert into passkeys (id, user_id, name, credential_id, public_key, sign_count, is_synced, last_used_at)
        values ($1, $2, $3, $4, '\\x00', 1, true, now())`,
      [id, userId, name, randomBytes(32).toString('base64url')],
    ),
  );
  return id;
}

/** Path variables of all operations. */
export const variablesOf = (list: readonly CompiledOperation[]): string[] => [
  ...new Set(list.flatMap(({ path }) => pathVariables(path))),
];

/** Fills the texts of something that registration made. */
async function fill(app: TestApp, world: World, method: string, path: string, without: Json = {}): Promise<void> {
  const operation = operationAt(method, path);
  const parts = partsOf(
    operation,
    { ...world, ids: { ...world.ids, user_id: world.accounts.owner.userId } },
    { token: world.accounts.owner.accessToken, requiredOnly: false },
  );
  parts.body = { ...(parts.body as Json), ...without };
  await expectOk(app, injectable(operation, parts));
}

/**
 * The id of a path variable, made by the route that makes such things: for `…/apps/{app_id}` that is `POST …/apps`. Ids
 * of the outer path are made first.
 */
export async function makeId(app: TestApp, world: World, variable: string): Promise<void> {
  const ids = world.ids as Record<string, string>;
  if (ids[variable] !== undefined || sharedIds[variable] !== undefined) return;
  const maker = makerOf(variable);
  if (!maker) {
    throw new Error(
      `The suites do not know an id for the path variable '{${variable}}': no route POST makes one. ` +
        `Set ids.${variable} in createWorld (test/support/world.ts).`,
    );
  }
  for (const outer of pathVariables(maker.path)) await makeId(app, world, outer);
  const body = await makeOne(app, world, maker);
  const id = findKey(body, [variable, `${variable.replace(/_id$/, '')}_id`, 'id']);
  if (id === undefined)
    throw new Error(
      `The answer of ${routeOf(maker)} has no '${variable}': ` +
        `set ids.${variable} in createWorld (test/support/world.ts).`,
    );
  ids[variable] = id;
}

/** The folders of variables that stand for the same thing below others, too. */
const makers: Record<string, string> = {
  instance_id: '/v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances',
};

/** The route that makes what a path variable stands for. */
export function makerOf(variable: string): CompiledOperation | undefined {
  const known = operations.find(({ method, path }) => method === 'POST' && path === makers[variable]);
  if (known) return known;
  const suffix = `/{${variable}}`;
  const folders = operations
    .filter(({ path }) => path.endsWith(suffix))
    .map(({ path }) => path.slice(0, -suffix.length));
  return operations.find(({ method, path }) => method === 'POST' && folders.includes(path));
}

/** Calls a route that makes something, with all fields filled in. */
export async function makeOne(app: TestApp, world: World, maker: CompiledOperation): Promise<Json> {
  return expectOk(
    app,
    injectable(maker, partsOf(maker, world, { token: world.accounts.owner.accessToken, requiredOnly: false })),
  );
}

/** The first of these keys that has a text, wherever in a value it stands. */
export function findKey(value: unknown, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const found = findOne(value, key);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findOne(value: unknown, key: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const own = (value as Json)[key];
  if (typeof own === 'string') return own;
  for (const inner of Object.values(value)) {
    const found = findOne(inner, key);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The latest version of a recipe of an organization. */
async function versionOf(app: TestApp, organizationRecipeId: string): Promise<string> {
  const orderBy = { number: 'desc' } as const;
  const where = { organizationRecipeId };
  const { id } = await app.database.prisma.organizationRecipeVersion.findFirstOrThrow({ where, orderBy });
  return id;
}

/** What the owner has granted to the application of the world. */
export const grantIn = (app: TestApp, { ids, accounts }: World): Promise<string> =>
  makeGrant(app, { orgId: ids.org_id!, applicationId: ids.application_id!, userId: accounts.owner.userId });
/** Records that were sent to the audit stream of a world. */
export async function auditDeliveryOf(app: TestApp, { ids, marker }: World): Promise<string> {
  const { id } = await app.database.prisma.auditStreamDelivery.create({
    data: {
      id: newId('audit_stream_delivery'),
      orgId: ids.org_id!,
      auditStreamId: ids.audit_stream_id!,
      resourceId: ids.audit_stream_id!,
      records: 1,
      sizeBytes: 2,
      firstAt: new Date(),
      lastAt: new Date(),
      excerpt: JSON.stringify({ metadata: { of: marker } }),
      status: 'delivered',
      tries: 1,
      finishedAt: new Date(),
    },
  });
  return id;
}

/** Something that was sent to the webhook of a world. */
export async function deliveryOf(app: TestApp, { ids, marker }: World): Promise<string> {
  const { id } = await app.database.prisma.webhookDelivery.create({
    data: {
      id: newId('webhook_delivery'),
      orgId: ids.org_id!,
      webhookId: ids.webhook_id!,
      eventId: newId('event'),
      eventType: 'secret.expiring',
      resourceType: 'secret',
      resourceId: ids.secret_id!,
      body: JSON.stringify({ workspace_id: null, data: { of: marker } }),
      status: 'delivered',
      tries: 1,
      finishedAt: new Date(),
    },
  });
  return id;
}

/** A test sign-in that waits for its provider. */
async function startedTest(app: TestApp, { ids, accounts }: World): Promise<string> {
  const { id } = await app.database.prisma.identityProviderTest.create({
    data: {
      id: newId('identity_provider_test'),
      orgId: ids.org_id!,
      identityProviderId: ids.idp_id!,
      startedBy: accounts.owner.userId,
      expiresAt: new Date(Date.now() + 86_400_000),
    },
  });
  return id;
}

/** A file that a role has sent, and that is no artifact yet. */
export async function receivedFile(app: TestApp, { ids, accounts }: World, role: Role): Promise<string> {
  const owner = {
    orgId: ids.org_id!,
    workspaceId: ids.workspace_id!,
    namespaceId: ids.namespace_id!,
    userId: accounts[role].userId,
  };
  const file = { content: Readable.from([Buffer.from('sent')]), fileName: 'sent.txt', contentType: null };
  return (await app.services.files.receive(owner, file)).id;
}
