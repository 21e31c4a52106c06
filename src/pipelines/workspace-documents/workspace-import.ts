import { isDeepStrictEqual } from 'node:util';
import { emitChange, recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { insertEnvironments } from '../../delivery/environments/environment.service.ts';
import { environmentsOf } from '../../delivery/views.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import type { InputIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { insertEntitlements } from '../../models/model-entitlements/model-entitlement.service.ts';
import { entitlementsOf } from '../../models/views.ts';
import { newNamespace } from '../../tenancy/namespaces/namespace.service.ts';
import { lockWorkspace } from '../../tenancy/workspaces/workspace.service.ts';
import {
  type CheckedCopy,
  checkCopy,
  insertCopy,
  type ToolOfInstance,
} from '../../tools/tool-instances/copied-instance.ts';
import { demandInstances } from '../../tools/tool-instances/kept-instances.ts';
import { lockToolsBySlug } from '../../tools/tools/named-tools.ts';
import { insertTool } from '../../tools/tools/tool.service.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { insertApp } from '../recipes/recipe-application.ts';
import type { Surroundings } from '../recipes/recipe-surroundings.ts';
import { entitlementOf, environmentOf, instanceOf, toolOf } from './document-parts.ts';
import type { EntitlementPart, InstancePart, ToolPart } from './workspace-document.ts';
import { clientSecretName, issueAt, issuesIn, type PlannedApp, refuse, type WorkspacePlan } from './workspace-plan.ts';

/** A part that an import made. */
export interface MadePart {
  orgId: string;
  resourceType: 'namespace' | 'environment' | 'tool' | 'tool_instance' | 'model_entitlement' | 'app';
  /** What the document calls it: its key, its slug, or the model. */
  key: string;
  resourceId: string | null;
}

/** What an import writes, once everything that it needs was looked up. */
export interface ImportWork {
  plan: WorkspacePlan;
  surroundings: Surroundings;
  /** The instances whose tools are there, or in the document. */
  instances: WorkspacePlan['instances'];
  /** The identifiers of the secrets that clients of instances name. */
  secretIds: ReadonlyMap<string, string>;
  /** The entitlements whose models are there, with their places in the document. */
  entitlements: readonly { at: number; part: EntitlementPart }[];
  /** Whether the schedules of an app wait. */
  isHeld(app: PlannedApp): boolean;
}

const COUNTS = ['namespaces', 'environments', 'tools', 'tool_instances', 'entitlements', 'apps'] as const;

/**
 * Writes all parts, each with its record and its events as if it was made by itself.
 * @throws RESOURCE_NOT_FOUND `workspace`; InputError for names that the workspace has already, and for instances that
 * their tools do not accept
 */
export async function importInto(
  tx: Tx,
  caller: Caller,
  place: WorkspacePlace,
  vault: Vault,
  work: ImportWork,
): Promise<{ made: MadePart[]; warnings: string[] }> {
  const { plan, surroundings } = work;
  const { orgId, workspaceId } = place;
  await lockWorkspace(tx, place, 'no key update');
  refuse(await clashes(tx, place, work));
  const made: MadePart[] = [];
  const add = (resourceType: MadePart['resourceType'], key: string, resourceId: string) =>
    made.push({ orgId, resourceType, key, resourceId });

  for (const { slug, ...namespace } of plan.document.namespaces) {
    const row = { id: plan.namespaceIds.get(slug)!, orgId, workspaceId };
    tx.insert('namespaces', newNamespace(caller, row, { ...namespace, slug }));
    recordChange(tx, 'create', 'namespace', row);
    add('namespace', slug, row.id);
  }
  const { environments } = plan.document;
  const withId = environments.map((part) => environmentOf(part, plan.environmentIds.get(part.slug)!));
  await insertEnvironments(tx, caller, place, withId);
  for (const { slug, id } of withId) add('environment', slug, id);

  const tools = await insertTools(tx, caller, orgId, work);
  for (const { slug, id } of tools.made) add('tool', slug, id);
  const given = plan.apps.flatMap(({ definition }) => definition.steps.map(surroundings.instanceOf));
  const own = new Set(work.instances.map(({ id }) => id));
  demandInstances(
    tx,
    given.filter((id) => id !== null && !own.has(id)),
  );
  await insertInstances(tx, caller, place, vault, work, tools.bySlug);
  for (const { id, part } of work.instances) add('tool_instance', part.key, id);
  const grants = work.entitlements.map(({ part }) => entitlementOf(part));
  const granted = await insertEntitlements(tx, caller, place, grants);
  for (const [model, id] of granted) add('model_entitlement', model, id);
  for (const app of plan.apps) {
    const isHeld = work.isHeld(app);
    insertApp(tx, caller, { orgId, workspaceId, appId: app.id }, app, { instanceOf: surroundings.instanceOf, isHeld });
    add('app', app.key, app.id);
  }
  recordImport(tx, place, made);
  return { made, warnings: tools.warnings };
}

function recordImport(tx: Tx, { orgId, workspaceId }: WorkspacePlace, made: readonly MadePart[]): void {
  const kinds: Record<(typeof COUNTS)[number], MadePart['resourceType']> = {
    namespaces: 'namespace',
    environments: 'environment',
    tools: 'tool',
    tool_instances: 'tool_instance',
    entitlements: 'model_entitlement',
    apps: 'app',
  };
  const counts = Object.fromEntries(
    COUNTS.map((name) => [name, made.filter(({ resourceType }) => resourceType === kinds[name]).length]),
  ) as Record<(typeof COUNTS)[number], number>;
  const row = { id: workspaceId, orgId, workspaceId };
  tx.audit({
    action: 'import',
    resourceType: 'workspace',
    resourceId: workspaceId,
    orgId,
    workspaceId,
    metadata: counts,
  });
  emitChange(tx, 'imported', 'workspace', row, counts);
}

interface Taken {
  namespaces: string[];
  environments: string[];
  entitlements: string[];
}

const TAKEN = `select
  array(select n.slug from namespaces n
    where n.org_id = $1 and n.workspace_id = $2 and n.slug = any($3::text[])) as namespaces,
  array(select e.slug from (${environmentsOf('$1', '$2')}) e where e.slug = any($4::text[])) as environments,
  array(select e.logical_model_id from (${entitlementsOf('$1', '$2')}) e
    where e.logical_model_id = any($5::text[])) as entitlements`;

/** Names that are unique in a workspace, and that it has already. */
async function clashes(
  tx: Tx,
  { orgId, workspaceId }: WorkspacePlace,
  { plan: { document }, entitlements }: ImportWork,
): Promise<InputIssue[]> {
  const namespaces = document.namespaces.map(({ slug }, at) => ({ at, name: slug }));
  const environments = document.environments.map(({ slug }, at) => ({ at, name: slug }));
  const models = entitlements.map(({ at, part }) => ({ at, name: part.model }));
  const lists = [namespaces, environments, models].map((list) => list.map(({ name }) => name));
  if (lists.every((list) => list.length === 0)) return [];
  const [taken] = await tx.query<Taken>({ text: TAKEN, values: [orgId, workspaceId, ...lists] });
  const issuesOf = (list: keyof Taken, field: string, noun: string, given: typeof namespaces) => {
    const known = new Set(taken![list]);
    return given
      .filter(({ name }) => known.has(name))
      .map(({ at, name }) => issueAt([list, at, field], `the workspace has ${noun} '${name}' already`));
  };
  return [
    ...issuesOf('namespaces', 'slug', 'a namespace', namespaces),
    ...issuesOf('environments', 'slug', 'an environment', environments),
    ...issuesOf('entitlements', 'model', 'an entitlement to', models),
  ];
}

interface MadeTools {
  bySlug: ReadonlyMap<string, ToolOfInstance>;
  made: { slug: string; id: string }[];
  warnings: string[];
}

/** Makes the tools that the organization does not have. Those that it has are used as they are. */
async function insertTools(tx: Tx, caller: Caller, orgId: string, { plan, instances }: ImportWork): Promise<MadeTools> {
  const { tools } = plan.document;
  const slugs = [...new Set([...tools.map(({ slug }) => slug), ...instances.map(({ part }) => part.tool)])];
  const there = await lockToolsBySlug(tx, orgId, slugs);
  const bySlug = new Map<string, ToolOfInstance>(there);
  const made: MadeTools['made'] = [];
  const warnings: string[] = [];
  for (const part of tools) {
    const known = there.get(part.slug);
    if (known) {
      if (differs(part, known))
        warnings.push(`The organization has a different tool '${part.slug}'. The import uses that tool.`);
      continue;
    }
    const id = newId('tool');
    const { current_schema_version, min_schema_version } = part;
    const versions = { currentSchemaVersion: current_schema_version ?? 1, minSchemaVersion: min_schema_version ?? 1 };
    const tool = toolOf(part);
    insertTool(tx, caller, { id, orgId }, tool, versions);
    made.push({ slug: part.slug, id });
    bySlug.set(part.slug, {
      id,
      status: tool.status ?? 'active',
      configSchema: (tool.configSchema ?? []) as ToolRow['configSchema'],
      credentialSchema: (tool.credentialSchema ?? []) as ToolRow['credentialSchema'],
      customActionType: tool.customActionType ?? 'none',
      currentSchemaVersion: versions.currentSchemaVersion,
    });
  }
  return { bySlug, made, warnings };
}

/** Whether a tool is described otherwise than the one that is there, in what the document says. */
const differs = (part: ToolPart, row: ToolRow): boolean =>
  Object.entries(toolOf(part)).some(
    ([name, value]) => value !== null && value !== undefined && !isDeepStrictEqual(value, row[name as keyof ToolRow]),
  );

async function insertInstances(
  tx: Tx,
  caller: Caller,
  place: WorkspacePlace,
  vault: Vault,
  { plan, instances, secretIds }: ImportWork,
  tools: ReadonlyMap<string, ToolOfInstance>,
): Promise<void> {
  const checked: { copy: ReturnType<typeof instanceOf>; stored: CheckedCopy; id: string; part: InstancePart }[] = [];
  const issues: InputIssue[] = [];
  for (const { id, at, part } of instances) {
    const copy = instanceOf(part, clientSecretOf(part, secretIds));
    const stored = checkCopy(tools.get(part.tool)!, copy);
    issues.push(...issuesIn(['tool_instances', at], stored.issues));
    checked.push({ copy, stored, id, part });
    const reference = copy.connectionCredentials?.clientSecretVaultId;
    const secretAt = ['input', 'document', 'tool_instances', at, 'connection_credentials', 'client_secret'];
    if (reference) await vault.demandReference(tx, place.orgId, reference, secretAt);
  }
  refuse(issues);
  for (const { copy, stored, id, part } of checked) {
    const namespaceId = part.namespace ? plan.namespaceIds.get(part.namespace)! : null;
    const row = { ...place, id, namespaceId, toolId: tools.get(part.tool)!.id };
    insertCopy(tx, caller, row, copy, stored);
  }
}

/** The reference to the secret of a client: the identifier of one that is there, or one to another vault. */
function clientSecretOf(part: InstancePart, secretIds: ReadonlyMap<string, string>): string | null {
  const reference = part.connection_credentials?.client_secret;
  if (!reference) return null;
  const name = clientSecretName(reference);
  return name === null ? reference : (secretIds.get(name) ?? null);
}
