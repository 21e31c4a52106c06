import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { credentialOf } from '../../src/access/authentication.ts';
import { isPermission } from '../../src/access/permissions.ts';
import type { ReadContext } from '../../src/data/request-cache.ts';
import { tableNamed } from '../../src/data/tables.ts';
import { Context } from '../../src/graphql/context.ts';
import type { Caller } from '../../src/kernel/caller.ts';
import { markChecked } from '../../src/kernel/mark-checked.ts';
import { placesOf, type ResourceWord, resourceWords } from '../../src/kernel/resources.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import { seenRelations } from '../../src/knowledge/entities/entity-relation.reads.ts';
import { readRoutedModels } from '../../src/models/models/model-routing.reads.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { camelCase, prismaRows, rowsOfWord } from '../support/prisma-rows.ts';
import { readsIn, writtenReads } from '../support/reads.ts';
import { writtenIn } from '../support/source-files.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let ids: Record<string, string>;
let rows: ReturnType<typeof prismaRows>;
beforeAll(async () => {
  app = await startTestApp();
  await createWorld(app); // another tenant, whose rows are not asked for
  world = await createWorld(app);
  for (const list of listRoutes) await addRows(app, world, list, 4);
  const { prisma, pool } = app.database;
  rows = prismaRows(prisma);
  const firstOf = async (table: string) =>
    (await pool.query<{ id: string }>(`select max(id) as id from ${table} where org_id = $1`, [world.ids.org_id]))
      .rows[0]!.id;
  ids = {
    ...world.ids,
    owner: world.accounts.owner.userId,
    editor: world.accounts.editor.userId,
    model_id: (await prisma.modelTarget.findFirstOrThrow({ where: { model: { orgId: world.ids.org_id } } })).modelId,
    entitlement_id: await firstOf('model_entitlements'),
    token: await firstOf('api_tokens'),
    thread_namespace: (await prisma.thread.findFirstOrThrow({ where: { orgId: world.ids.org_id } })).namespaceId,
  };
  await vary();
});
afterAll(() => app.close());

/** Rows that differ from what a tenant has at first: gone, expired, disabled, failing, used. */
async function vary(): Promise<void> {
  const { pool } = app.database;
  const last = (table: string, n: number) =>
    `id = (select id from ${table} where org_id = '${ids.org_id}' order by id desc offset ${n} limit 1)`;
  const lastArtifact = (n: number, condition: string) =>
    `id = (select id from artifacts where org_id = '${ids.org_id}' and ${condition}
      order by id desc offset ${n} limit 1)`;
  const living = 'deleted_at is null';
  const deleted = 'is_latest and deleted_at is not null';
  const gone = `id = (select max(id) from workspaces where org_id = '${ids.org_id}' and deleted_at is not null)`;
  for (const statement of [
    `update workspaces set deleted_at = now() where ${last('workspaces', 1)}`,
    `insert into workspace_members (id, org_id, workspace_id, user_id, role)
       select 'wm_of_gone', org_id, id, '${ids.editor}', 'editor' from workspaces where ${gone}`,
    `insert into workspace_members (id, org_id, workspace_id, user_id, role)
       select 'wm_of_' || id, org_id, id, '${ids.owner}', 'owner' from workspaces
       where org_id = '${ids.org_id}' and deleted_at is not null`,
    `update workspaces set deleted_at = now() - interval '31 days' where id = (select min(id) from workspaces
       where org_id = '${ids.org_id}' and deleted_at is not null)`,
    `update secrets set scope = 'workspace', workspace_id = (select id from workspaces where ${gone})
      where ${last('secrets', 3)}`,
    `update secrets set status = 'deleted', deleted_at = now() where ${last('secrets', 1)}`,
    `update secrets set scope = 'workspace', workspace_id = '${ids.workspace_id}' where ${last('secrets', 2)}`,
    `update invitations set expires_at = now() - interval '1 day' where ${last('invitations', 1)}`,
    `update api_tokens set revoked_at = now() - interval '91 days' where ${last('api_tokens', 1)}`,
    `update provider_accounts set enabled = false where ${last('provider_accounts', 1)}`,
    `update provider_accounts set usage_period = '2020-01', current_month_tokens = 7
      where ${last('provider_accounts', 2)}`,
    `update provider_accounts set usage_period = to_char(now() at time zone 'utc', 'YYYY-MM'),
      current_month_tokens = 7, max_requests_per_month = null where ${last('provider_accounts', 3)}`,
    `update identity_providers set protocol = 'saml', oidc_client_id = null, oidc_client_secret_ref = null,
      oidc_discovery_url = null, is_active = false where ${last('identity_providers', 1)}`,
    `update tool_instances set is_active = false, schema_version = 0, mcp_requires_confirmation = true,
      credential_refs = '{"api_key": "vault://x/api_key"}' where ${last('tool_instances', 1)}`,
    `update entities set mention_count = 7, last_referenced_at = now(), is_indexed = true, description = null
      where ${last('entities', 1)}`,
    `update model_targets set consecutive_failures = 3, last_failure = now() where model_id = '${ids.model_id}'`,
    `update logical_models set status_by_hand = 'degraded' where ${last('logical_models', 1)}`,
    `update model_entitlements set request_count = 5, total_tokens = 4000000000, last_used_at = now()
      where ${last('model_entitlements', 1)}`,
    `update artifacts set content = repeat('ü', 4097), content_text = repeat('a', 8192)
      where ${lastArtifact(1, living)}`,
    `update artifacts set content_text = repeat('a', 8193), promoted_to_source_id = null, thread_id = null
      where ${lastArtifact(2, living)}`,
    `update artifacts set status = 'archived', expires_at = now() + interval '1 day' where ${lastArtifact(3, living)}`,
    `update artifacts set expires_at = now() - interval '6 days' where ${lastArtifact(4, living)}`,
    `update artifacts set expires_at = now() - interval '8 days' where ${lastArtifact(5, living)}`,
    `update artifacts set deleted_at = now() where ${lastArtifact(6, living)}`,
    `update artifacts set deleted_at = now() where id = (select max(id) from artifacts
       where root_artifact_id = '${ids.artifact_id}' and not is_latest)`,
    `update artifacts set deleted_at = now() - interval '31 days' where ${lastArtifact(1, deleted)}`,
    `update artifacts set expires_at = now() - interval '8 days' where ${lastArtifact(2, deleted)}`,
    `update sources set size_bytes = 4000000000 where ${last('sources', 1)}`,
    `update environment_slots set release_id = null where environment_id = '${ids.from_environment_id}'`,
  ])
    expect((await pool.query(statement)).rowCount, statement).toBeGreaterThan(0);
}

const org = () => ids.org_id!;
const workspace = () => ids.workspace_id!;
const inWorkspace = () => ({ orgId: org(), workspaceId: workspace() });
const inNamespace = () => ({ ...inWorkspace(), namespaceId: ids.thread_namespace! });
const living = { deletedAt: null };
const notDeleted = { status: { not: 'deleted' } };
const visible = () => ({ OR: [{ workspaceId: null }, { workspace: living }] });
const kept = () => ({ OR: [{ revokedAt: null }, { revokedAt: { gt: new Date(Date.now() - 90 * 86_400_000) } }] });
const shownMembers = { user: { deactivatedAt: null } };

/** Users as the organization sees them. */
const usersOf = (where: Parameters<typeof rows.users>[0]) => rows.users(where, org());

/** Artifacts that are not yet removed. */
const readable = () => ({
  ...living,
  OR: [{ expiresAt: null }, { expiresAt: { gt: new Date(Date.now() - 7 * 86_400_000) } }],
});

/** What was deleted less than 30 days ago. */
const restorable = () => ({ deletedAt: { gt: new Date(Date.now() - 30 * 86_400_000) } });

/** Deleted artifacts, and versions that were deleted by themselves, that can be restored. */
const restorableArtifacts = (where: Parameters<typeof rows.deletedArtifacts>[0]) =>
  rows.deletedArtifacts({
    ...where,
    ...restorable(),
    AND: [{ OR: readable().OR }, { OR: [{ isLatest: true }, { root: living }] }],
  });

/** Artifacts as lists show them: without those that have expired, and without long texts. */
async function listedArtifacts(where: Parameters<typeof rows.artifacts>[0]) {
  const short = (text: string | null) => (text !== null && Buffer.byteLength(text) > 8_192 ? null : text);
  return (await rows.artifacts({ ...where, ...readable() }))
    .filter(({ isExpired, isLatest }) => !(isExpired && isLatest))
    .map((row) => ({ ...row, content: short(row.content), contentText: short(row.contentText) }));
}

/** The newest record of each app that has something deployed in an environment. */
async function deployed(where: { environmentId?: string; appId?: string }) {
  const slots = await app.database.prisma.environmentSlot.findMany({ where: { ...where, releaseId: { not: null } } });
  const current = slots.map(({ environmentId, appId, lastNumber: number }) => ({ environmentId, appId, number }));
  return rows.deployments({ ...inWorkspace(), OR: current });
}

test('no list is hand-written beside `Reads` and its parts, but that of activity, whose key has two columns', () => {
  const activity = ['insight/activity/activity-scope.ts', 'insight/activity/activity.service.ts'];
  const files = Object.keys(writtenIn(/\b(?:PageSource|readPages?)\b/g));
  expect(files).toEqual(['data/joined-rows.ts', 'data/paging.ts', 'data/reads.ts', ...activity]);
});

interface HeldReads {
  /** What names the parent. */
  place: () => Record<string, string>;
  /** The rows below it, read by Prisma, by their ids. */
  rows: () => Promise<{ id: string }[]>;
  /** Whoever asks, where the list is of what is the caller's own. */
  me?: () => string;
  /** What a row is known by within its parent, where it is not its id; and a word that stands for one. */
  known?: string;
  alias?: { word: string; of: (row: never) => boolean };
}

/** A resource of which every row of a place is listed, as it is stored. */
function plainReads(word: ResourceWord): HeldReads {
  const kinds = placesOf(word)!.filter((kind) => kind !== 'organization');
  const place = () => ({
    ...(kinds.length === 0 ? { orgId: org() } : inWorkspace()),
    ...Object.fromEntries(kinds.map((kind) => [`${kind}Id`, ids[`${kind}_id`]!])),
  });
  return { place, rows: () => rowsOfWord(app.database.prisma, word, place()) };
}

/** Every list that a service reads by `Reads`, but those of plain resources. THE place to add one. */
const special: Record<string, HeldReads> = {
  'workspaces.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.workspaces({ orgId: org(), ...living }),
  },
  'workspaces.own': {
    place: () => ({ orgId: org() }),
    me: () => ids.editor!,
    rows: () => rows.workspaces({ orgId: org(), ...living, members: { some: { userId: ids.editor } } }),
  },
  'namespaces.reads': {
    place: inWorkspace,
    rows: () => rows.namespaces(inWorkspace()),
    alias: { word: 'default', of: ({ slug }: { slug: string }) => slug === 'default' },
  },
  'apps.reads': {
    place: inWorkspace,
    rows: () => rows.apps(inWorkspace()),
  },
  'augmentations.reads': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id! }),
    rows: () => rows.augmentations({ ...inWorkspace(), appId: ids.app_id }),
  },
  'executions.reads': {
    known: 'executionId',
    place: () => inWorkspace(),
    rows: () => rows.executions(inWorkspace()),
  },
  'executions.ofApp': {
    known: 'executionId',
    place: () => ({ ...inWorkspace(), appId: ids.app_id! }),
    rows: () => rows.executions({ ...inWorkspace(), appId: ids.app_id }),
  },
  'users.colleagues': {
    place: () => ({ orgId: org() }),
    rows: () => usersOf({ organizations: { some: { orgId: org() } }, isActive: true }),
  },
  'users.inWorkspace': {
    place: inWorkspace,
    rows: () => usersOf({ workspaces: { some: { workspaceId: workspace() } }, deactivatedAt: null }),
  },
  'organizations.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.organizations({ id: org(), ...living }),
  },
  'notifications.reads': {
    place: () => ({}),
    me: () => ids.owner!,
    rows: () => rows.notifications({ recipientId: ids.owner }),
  },
  'organizations.own': {
    place: () => ({}),
    me: () => ids.owner!,
    rows: () => rows.organizations({ members: { some: { userId: ids.owner } }, ...living }),
  },
  'organizationMembers.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.organizationMembers({ orgId: org(), ...shownMembers }),
    known: 'userId',
  },
  'memberFactors.missing': {
    place: () => ({ orgId: org() }),
    rows: () => rows.membersWithoutFactor(org()),
    known: 'userId',
  },
  'memberSessions.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.memberSessions(org()),
  },
  'workspaceMembers.reads': {
    place: inWorkspace,
    rows: () => rows.workspaceMembers({ ...inWorkspace(), ...shownMembers }),
    known: 'userId',
  },
  'invitations.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.invitations({ orgId: org() }),
  },
  'environments.reads': {
    place: inWorkspace,
    rows: () => rows.environments(inWorkspace()),
  },
  'deployments.reads': {
    place: inWorkspace,
    rows: () => rows.deployments(inWorkspace()),
  },
  'deployments.history': {
    place: () => ({ ...inWorkspace(), environmentId: ids.environment_id! }),
    rows: () => rows.deployments({ ...inWorkspace(), environmentId: ids.environment_id }),
  },
  'deployments.current': {
    place: () => ({ ...inWorkspace(), environmentId: ids.environment_id! }),
    rows: () => deployed({ environmentId: ids.environment_id! }),
  },
  'deployments.historyOfApp': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id! }),
    rows: () => rows.deployments({ ...inWorkspace(), appId: ids.app_id }),
  },
  'deployments.currentOfApp': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id! }),
    rows: () => deployed({ appId: ids.app_id! }),
  },
  'artifacts.reads': {
    place: inNamespace,
    rows: () => listedArtifacts({ ...inNamespace(), isLatest: true }),
  },
  'artifacts.ofThread': {
    place: () => ({ ...inNamespace(), threadId: ids.thread_id! }),
    rows: () => listedArtifacts({ ...inNamespace(), threadId: ids.thread_id, isLatest: true }),
  },
  'artifacts.versions': {
    place: () => ({ ...inNamespace(), rootArtifactId: ids.artifact_id! }),
    rows: async () =>
      (await listedArtifacts({ ...inNamespace(), rootArtifactId: ids.artifact_id })).sort(
        (one, other) => one.version - other.version,
      ),
  },
  'artifacts.single': {
    place: inNamespace,
    rows: () => rows.artifacts({ ...inNamespace(), ...readable() }),
  },
  'deletedArtifacts.inNamespace': {
    place: inNamespace,
    rows: () => restorableArtifacts(inNamespace()),
  },
  'deletedArtifacts.inWorkspace': {
    place: inWorkspace,
    rows: () => restorableArtifacts(inWorkspace()),
  },
  'deletedWorkspaces.all': {
    place: () => ({ orgId: org() }),
    rows: () => rows.deletedWorkspaces({ orgId: org(), ...restorable() }),
  },
  'deletedWorkspaces.own': {
    place: () => ({ orgId: org() }),
    me: () => ids.owner!,
    rows: () =>
      rows.deletedWorkspaces({
        orgId: org(),
        ...restorable(),
        members: { some: { userId: ids.owner, role: 'owner' } },
      }),
  },
  'sources.reads': {
    place: inWorkspace,
    rows: () => rows.sources(inWorkspace()),
  },
  'sources.inNamespace': {
    place: inNamespace,
    rows: () => rows.sources(inNamespace()),
  },
  'threads.reads': {
    place: () => ({ ...inWorkspace(), namespaceId: ids.thread_namespace! }),
    rows: () => rows.threads({ ...inWorkspace(), namespaceId: ids.thread_namespace }),
  },
  'entities.reads': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id!, namespaceId: ids.namespace_id! }),
    rows: () => rows.entities({ ...inWorkspace(), appId: ids.app_id, namespaceId: ids.namespace_id }),
  },
  'entities.ofApp': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id! }),
    rows: () => rows.entities({ ...inWorkspace(), appId: ids.app_id }),
  },
  'entities.ofNamespace': {
    place: () => ({ ...inWorkspace(), namespaceId: ids.namespace_id! }),
    rows: () => rows.entities({ ...inWorkspace(), namespaceId: ids.namespace_id }),
  },
  // all of them start from it
  'entities.relations': {
    place: () => ({ orgId: org(), entityId: ids.entity_id! }),
    rows: () => rows.relations({ orgId: org(), sourceEntityId: ids.entity_id }),
  },
  'memories.reads': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id!, namespaceId: ids.namespace_id! }),
    rows: () => rows.memories({ ...inWorkspace(), appId: ids.app_id, namespaceId: ids.namespace_id }),
  },
  'memories.ofApp': {
    place: () => ({ ...inWorkspace(), appId: ids.app_id! }),
    rows: () => rows.memories({ ...inWorkspace(), appId: ids.app_id }),
  },
  'memories.ofNamespace': {
    place: () => ({ ...inWorkspace(), namespaceId: ids.namespace_id! }),
    rows: () => rows.memories({ ...inWorkspace(), namespaceId: ids.namespace_id }),
  },
  'apps.ofOrganization': {
    place: () => ({ orgId: org() }),
    rows: () => rows.apps({ orgId: org() }),
  },
  'secretReads.all': {
    place: () => ({ orgId: org() }),
    rows: () => rows.secrets({ orgId: org(), ...notDeleted, ...visible() }),
  },
  'secretReads.readable': {
    place: () => ({ orgId: org() }),
    me: () => ids.editor!,
    rows: () =>
      rows.secrets({
        orgId: org(),
        ...notDeleted,
        OR: [{ workspaceId: null }, { workspace: { ...living, members: { some: { userId: ids.editor } } } }],
      }),
  },
  'secretReads.inWorkspace': {
    place: inWorkspace,
    rows: () => rows.secrets({ ...inWorkspace(), ...notDeleted, workspace: living }),
  },
  'apiTokens.all': {
    place: () => ({ orgId: org() }),
    rows: () => rows.tokens({ orgId: org(), ...kept() }),
  },
  'apiTokens.own': {
    place: () => ({ orgId: org() }),
    me: () => ids.owner!,
    rows: () => rows.tokens({ orgId: org(), createdByUserId: ids.owner, tokenType: 'pat', ...kept() }),
  },
  'apiTokens.ownLine': {
    place: () => ({ orgId: org() }),
    me: () => ids.owner!,
    rows: () => rows.tokens({ orgId: org(), createdByUserId: ids.owner, tokenType: 'pat', ...kept() }),
  },
  'apiTokens.ownOfApps': {
    place: () => ({ orgId: org() }),
    me: () => ids.owner!,
    rows: () => rows.tokens({ orgId: org(), createdByUserId: ids.owner, tokenType: 'app', ...kept() }),
  },
  'apiTokens.ofApp': {
    place: () => ({ orgId: org(), appId: ids.app_id! }),
    rows: () => rows.tokens({ orgId: org(), appId: ids.app_id, ...kept() }),
  },
  'tools.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.tools(org()),
  },
  'tools.bySlug': {
    place: () => ({ orgId: org() }),
    rows: () => rows.tools(org()),
    known: 'slug',
  },
  'toolInstances.reads': {
    place: inWorkspace,
    rows: () => rows.toolInstances(inWorkspace()),
  },
  'toolInstances.allOfTool': {
    place: () => ({ orgId: org(), toolId: ids.tool_id! }),
    rows: () => rows.toolInstances({ orgId: org(), toolId: ids.tool_id, workspace: living }),
  },
  'toolInstances.ownOfTool': {
    place: () => ({ orgId: org(), toolId: ids.tool_id! }),
    me: () => ids.editor!,
    rows: () =>
      rows.toolInstances({
        orgId: org(),
        toolId: ids.tool_id,
        workspace: { ...living, members: { some: { userId: ids.editor } } },
      }),
  },
  // without their documents
  'organizationRecipes.versions': {
    place: () => ({ orgId: org(), organizationRecipeId: ids.organization_recipe_id! }),
    rows: () =>
      app.database.prisma.organizationRecipeVersion.findMany({
        where: { orgId: org(), organizationRecipeId: ids.organization_recipe_id! },
        omit: { document: true },
        orderBy: { id: 'asc' },
      }),
  },
  'providerAccounts.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.accounts({ orgId: org() }),
  },
  'applicationGrants.reads': {
    place: () => ({ orgId: org() }),
    rows: () =>
      app.database.prisma.oauthGrant.findMany({
        omit: { revokedAt: true, revokedReason: true },
        where: { orgId: org(), revokedAt: null },
        orderBy: { id: 'asc' },
      }),
  },
  'webhooks.reads': {
    place: () => ({ orgId: org() }),
    rows: () =>
      app.database.prisma.webhook.findMany({
        where: { orgId: org() },
        omit: { positionSeq: true, begunSnapshot: true, begunXid: true },
        orderBy: { id: 'asc' },
      }),
  },
  'webhookDeliveries.reads': {
    place: () => ({ orgId: org(), webhookId: ids.webhook_id! }),
    rows: () =>
      app.database.prisma.webhookDelivery.findMany({
        where: { orgId: org(), webhookId: ids.webhook_id! },
        omit: { place: true },
        orderBy: { id: 'asc' },
      }),
  },
  'auditStreams.reads': {
    place: () => ({ orgId: org() }),
    rows: () =>
      app.database.prisma.auditStream.findMany({
        where: { orgId: org() },
        omit: {
          positionId: true,
          positionAt: true,
          begunSnapshot: true,
          begunXid: true,
          lastSequence: true,
          batchBytes: true,
        },
        orderBy: { id: 'asc' },
      }),
  },
  'auditStreamDeliveries.reads': {
    place: () => ({ orgId: org(), auditStreamId: ids.audit_stream_id! }),
    rows: () =>
      app.database.prisma.auditStreamDelivery.findMany({
        where: { orgId: org(), auditStreamId: ids.audit_stream_id! },
        omit: { place: true, resourceId: true, maxTries: true, fromId: true, toId: true },
        orderBy: { id: 'asc' },
      }),
  },
  'applications.reads': {
    place: () => ({ orgId: org() }),
    rows: () =>
      app.database.prisma.application.findMany({
        where: { orgId: org() },
        omit: { secretHash: true },
        orderBy: { id: 'asc' },
      }),
  },
  'scimTokens.reads': {
    place: () => ({ orgId: org() }),
    rows: () =>
      app.database.prisma.scimToken.findMany({
        where: { orgId: org() },
        omit: { tokenHash: true },
        orderBy: { id: 'asc' },
      }),
  },
  'identityProviders.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.identityProviders({ orgId: org() }),
  },
  'models.reads': {
    place: () => ({ orgId: org() }),
    rows: () => rows.models({ orgId: org() }),
    known: 'logicalModelId',
  },
  'connections.reads': {
    place: inWorkspace,
    rows: () => rows.connections({ ...inWorkspace(), endUserId: null }),
  },
  'connections.inNamespace': {
    place: () => ({ ...inWorkspace(), namespaceId: ids.namespace_id! }),
    rows: () => rows.connections({ ...inWorkspace(), namespaceId: ids.namespace_id, endUserId: null }),
  },
  'connections.ofInstance': {
    place: () => ({ ...inWorkspace(), toolInstanceId: ids.tool_instance_id! }),
    rows: () => rows.connections({ ...inWorkspace(), toolInstanceId: ids.tool_instance_id, endUserId: null }),
  },
  'endUserConnections.reads': {
    place: inWorkspace,
    rows: () => rows.connections({ ...inWorkspace(), endUserId: { not: null } }),
  },
  'endUserConnections.ofInstance': {
    place: () => ({ ...inWorkspace(), toolInstanceId: ids.instance_id! }),
    rows: () => rows.connections({ ...inWorkspace(), toolInstanceId: ids.instance_id, endUserId: { not: null } }),
  },
  'modelEntitlements.reads': {
    place: inWorkspace,
    rows: () => rows.entitlements(inWorkspace()),
    known: 'logicalModelId',
  },
};

/** The service of a resource, which is named as its table. */
const listOf = (word: ResourceWord): string => camelCase(tableNamed(word)!);

/** Tokens are read as those of their owner, of an app, or all. */
const notPlain: readonly ResourceWord[] = ['api_token'];
const plainWords = resourceWords.filter(
  (word) =>
    !notPlain.includes(word) &&
    tableNamed(word) &&
    placesOf(word)?.length &&
    isPermission(`${word}:read`) &&
    !(`${listOf(word)}.reads` in special),
);
const declared: Record<string, HeldReads> = {
  ...special,
  ...Object.fromEntries(plainWords.map((word) => [`${listOf(word)}.reads`, plainReads(word)])),
};

test('every `Reads` is in here, and every one that is made is shown by its service', () => {
  const found = readsIn(app.services);
  expect([...found.keys()].sort()).toEqual(Object.keys(declared).sort());
  expect(found.size).toBe(writtenReads());
});

/** A request of somebody who has signed in. */
const asking = (userId: string): ReadContext =>
  new Context({ principal: { userId, token: null }, request: {} } as unknown as Caller, app.services);

describe.each(Object.entries(declared))('%s', (name, { place, rows: read, me, known = 'id', alias }) => {
  const reads = () => readsIn(app.services).get(name)!;
  const isBelowNothing = () => Object.keys(place()).length === 0;
  const wantedRows = async () => {
    const wanted = await read();
    expect(wanted).not.toEqual([]);
    return reads().sources.list.order === 'desc' ? wanted.reverse() : wanted;
  };

  test('lists the very rows that Prisma reads: all columns, in order, alone and beside another parent', async () => {
    const wanted = await wantedRows();
    const context = asking(me?.() ?? 'nobody');
    const nowhere = Object.fromEntries(Object.keys(place()).map((property) => [property, 'nowhere']));
    const alone = await reads().list(asking(me?.() ?? 'nobody'), markChecked(place()), { first: 200 });
    expect(alone.nodes).toStrictEqual(wanted);
    expect(await alone.total()).toBe(wanted.length);
    // what is below nothing is told apart by whose it is
    const other = isBelowNothing() ? asking('nobody') : context;
    const pages = [
      reads().list(other, markChecked(nowhere), { first: 200 }),
      reads().list(context, markChecked(place()), { first: 200 }),
    ];
    expect((await Promise.all(pages)).map(({ nodes }) => nodes)).toStrictEqual([[], wanted]);
    const totals = (await Promise.all(pages)).map(async (page) => page.total());
    expect(await Promise.all(totals)).toEqual([0, wanted.length]);
  });

  test('reads each of them alone, together, and by its id alone', async () => {
    const wanted = await wantedRows();
    const context = asking('nobody');
    const idOf = (row: object) => (row as Record<string, string>)[known]!;
    if (isBelowNothing()) {
      await expect(reads().get(context, markChecked(place()), idOf(wanted[0]!))).rejects.toThrow('below nothing');
      return;
    }
    const all = wanted.map((row) => reads().get(context, markChecked(place()), idOf(row)));
    expect(await Promise.all(all)).toStrictEqual(wanted);
    const [first] = wanted;
    expect(await reads().get(asking('nobody'), markChecked(place()), idOf(first!))).toStrictEqual(first);
    expect(await reads().findUnscoped(context, first!.id)).toStrictEqual(first);
    const { orgId } = place();
    if (orgId) expect(await reads().findInTenant(context, orgId, first!.id)).toStrictEqual(first);
    if (orgId) expect(await reads().findInTenant(context, 'nowhere', first!.id)).toBeNull();
    const elsewhere = { ...place(), orgId: 'nowhere' };
    expect(await reads().find(context, markChecked(elsewhere), idOf(first!))).toBeNull();
    if (!alias) return;
    const named = await reads().get(context, markChecked(place()), alias.word);
    expect([named]).toStrictEqual(wanted.filter((row) => alias.of(row as never)));
  });
});

async function owner(): Promise<Caller> {
  const principal = await app.services.authentication.authenticate(credentialOf(world.as('owner').authorization)!);
  return { principal, request: systemCaller('rows').request } as Caller;
}

/** Whole rows that are read by a statement of their own. THE place to add one. */
const statements: Record<string, () => Promise<void>> = {
  'tenancy/users/user.reads.ts': async () => {
    const [wanted] = await usersOf({ id: ids.editor });
    expect(await app.services.userReads.find(ids.editor!, org())).toStrictEqual(wanted);
  },
  'vault/secrets/reveal.service.ts': async () => {
    const { value, ...shown } = await app.services.reveals.get(
      await owner(),
      markChecked({ orgId: org() }),
      ids.secret_id!,
      true,
    );
    expect(value).toBeTypeOf('object');
    expect([shown]).toStrictEqual(await rows.secrets({ id: ids.secret_id }));
  },
  // shown with local names in place of identifiers: `test/pipelines/recipes/export.test.ts` compares all of it
  'pipelines/recipes/recipe-export.ts': async () => {
    const { recipe } = await app.services.recipes.export(
      await owner(),
      markChecked({ ...inWorkspace(), appId: ids.app_id! }),
    );
    const wanted = (await rows.augmentations({ appId: ids.app_id })).reverse();
    expect(wanted.length).toBeGreaterThan(1);
    expect(recipe.definition.augmentations).toMatchObject(
      wanted.map(({ name, description, status }) => ({ name, status, ...(description !== null && { description }) })),
    );
    const stages = wanted.flatMap((augmentation) => augmentation.stages);
    expect(recipe.definition.stages.map(({ name }) => name)).toEqual(stages.map(({ name }) => name));
  },
  'knowledge/entities/entity-search.ts': async () => {
    const place = markChecked({ ...inWorkspace(), appId: ids.app_id!, namespaceId: ids.namespace_id! });
    const [wanted] = await rows.entities({ id: ids.entity_id });
    const found = await app.services.entities.search(place, { query: wanted!.name, limit: 50 });
    const { entity, ...how } = found.find((one) => one.entity.id === ids.entity_id)!;
    expect(how).toMatchObject({ score: 1, matchedBy: 'name' });
    expect(entity).toStrictEqual(wanted);
  },
  'knowledge/entities/entity-path.ts': async () => {
    const place = markChecked({ ...inWorkspace(), appId: ids.app_id!, namespaceId: ids.namespace_id! });
    const args = { targetEntityId: ids.target_entity_id!, maxDepth: 1 };
    const { path } = await app.services.entities.path(place, ids.entity_id!, args);
    const [entity, target] = await rows.entities({ id: { in: [ids.entity_id!, ids.target_entity_id!] } });
    const wanted = entity?.id === ids.entity_id ? [entity, target] : [target, entity];
    expect(path!.entities).toStrictEqual(wanted);
  },
  'knowledge/entities/entity-relation.reads.ts': async () => {
    const [wanted] = await rows.relations({ sourceEntityId: ids.entity_id!, targetEntityId: ids.target_entity_id! });
    const place = { ...inWorkspace(), appId: ids.app_id!, namespaceId: ids.namespace_id! };
    const [asSource, ...others] = await seenRelations(app.services.sql, place, [wanted!.id], []);
    expect([asSource, others]).toStrictEqual([wanted, []]);
  },
  'knowledge/entities/entity.traversal.ts': async () => {
    const place = markChecked({ ...inWorkspace(), appId: ids.app_id!, namespaceId: ids.namespace_id! });
    const args = { depth: 1, includeMemories: false };
    const { root, connectedEntities } = await app.services.entities.traverse(place, ids.entity_id!, args);
    const [entity, target] = await rows.entities({ id: { in: [ids.entity_id!, ids.target_entity_id!] } });
    const wanted = entity?.id === ids.entity_id ? [entity, target] : [target, entity];
    expect([root, ...connectedEntities.map((found) => found.entity)]).toStrictEqual(wanted);
  },
  'models/models/model-routing.reads.ts': async () => {
    const { targets, ...wanted } = await app.database.prisma.logicalModel.findUniqueOrThrow({
      where: { id: ids.model_id! },
      include: { targets: { orderBy: { position: 'asc' }, include: { account: true } } },
    });
    const { logicalModelId } = wanted;
    const found = (await readRoutedModels(app.services.sql, inWorkspace(), [logicalModelId])).get(logicalModelId)!;
    expect(found).toMatchObject(shownOf(wanted, found));
    expect(Object.keys(shownOf(wanted, found))).toHaveLength(9);
    expect(found.targets).toHaveLength(targets.length);
    for (const [index, { account, ...target }] of targets.entries()) {
      const { providerType, region, dataResidency, routingMode, bridgeId, bridgeEndpointName } = account;
      const { credentialsRef, baseUrl } = account;
      const place = { providerType, region, dataResidency, credentialsRef, baseUrl };
      const ofAccount = { ...place, routingMode, bridgeId, bridgeEndpointName };
      const routed = found.targets[index]!;
      expect(routed).toMatchObject({ ...shownOf(target, routed), ...ofAccount, accountStatus: account.status });
      expect(Object.keys(shownOf(target, routed))).toHaveLength(10);
    }
  },
};

/** What of a row something shows. */
const shownOf = (row: object, shown: object) => Object.fromEntries(Object.entries(row).filter(([key]) => key in shown));

test('every statement that selects whole rows is in here', () => {
  const { 'data/paging.ts': _own, ...written } = writtenIn(/\$\{selectList\(/g);
  expect(Object.keys(written).sort()).toEqual(Object.keys(statements).sort());
  expect(new Set(Object.values(written)), 'one in each file').toEqual(new Set([1]));
});

test.each(Object.entries(statements))('%s selects the very rows that Prisma reads', (_file, holds) => holds());
