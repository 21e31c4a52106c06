import { rolesWith } from '../../access/permissions.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { noCache, type RequestCache } from '../../data/request-cache.ts';
import type { ToolInstance as InstanceRow } from '../../generated/prisma/client.ts';
import type { OrganizationPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import type { ConfigFieldDescriptor } from './config-field.ts';
import { type ActionChanges, effectiveActions, type ToolAction } from './effective-actions.ts';
import { type Sealed, sealedColumns } from './sealed-columns.ts';
import { type ToolFacts, toolFacts } from './tool-instance.facts.ts';

const columns = {
  ...columnsOf(
    words(
      'id orgId workspaceId namespaceId toolId name description configuration credentialRefs customActionParameters',
      'actionDefaults authConfig customActions authMode connectionStatus clientId clientSecretVaultId callbackUrl',
      'scopesOverride returnAddresses isActive mcpDescriptionOverride mcpActionFilter mcpActionDescriptions',
      'mcpMaxCallsPerTurn mcpRequiresConfirmation mcpParameterOverrides schemaVersion metadata usageCount actionCounts',
      'lastUsedAt createdBy createdAt updatedAt resourceVersion',
    ),
  ),
  toolVersion: 'tool.resource_version',
};

type JsonColumn = 'configuration' | 'credentialRefs' | 'authConfig' | 'metadata' | 'actionCounts';

/** How often an action was executed, and how often it failed. */
export interface ActionCount {
  executed: number;
  failed: number;
}

/** The columns of an instance, as they are read. */
export interface StoredInstance extends Omit<InstanceRow, keyof ActionChanges | JsonColumn>, ActionChanges {
  configuration: Record<string, unknown>;
  credentialRefs: Record<string, string>;
  authConfig: Record<string, unknown>;
  metadata: Record<string, unknown>;
  actionCounts: Record<string, ActionCount>;
  /** The `resource_version` of the tool. */
  toolVersion: number;
}

/** What follows from the tool and the columns. */
interface Derived {
  toolName: string;
  toolSlug: string;
  toolCategory: string;
  toolIconUrl: string | null;
  supportedStepTypes: string[];
  toolConfigSchema: readonly ConfigFieldDescriptor[];
  effectiveActionSchemas: readonly ToolAction[];
  hasCredentials: boolean;
  credentialFields: string[];
  upgradeAvailable: boolean;
  latestSchemaVersion: number;
  schemaDeprecated: boolean;
}

/** An instance as callers see it. */
export interface ToolInstance extends StoredInstance, Derived {}

/** Filters of a list of instances. */
export interface InstanceFilters {
  /** Only instances of this tool. */
  toolId?: string | null;
  /** Only instances that are active. */
  activeOnly?: boolean | null;
}

function derivedOf(row: StoredInstance, tool: ToolFacts): Derived {
  const credentialFields = Object.keys(row.credentialRefs).sort();
  return {
    toolName: tool.name,
    toolSlug: tool.slug,
    toolCategory: tool.category,
    toolIconUrl: tool.iconUrl,
    supportedStepTypes: tool.supportedStepTypes,
    toolConfigSchema: tool.configFields,
    effectiveActionSchemas: effectiveActions(tool.actions, row),
    hasCredentials: credentialFields.length > 0 || row.connectionStatus === 'connected',
    credentialFields,
    upgradeAvailable: row.schemaVersion < tool.currentSchemaVersion,
    latestSchemaVersion: tool.currentSchemaVersion,
    schemaDeprecated: row.schemaVersion < tool.minSchemaVersion,
  };
}

/** Where the instances of a tool are looked for. */
export type ToolPlace = OrganizationPlace & { toolId: string };

// values, not joins: the page is read by the index of its tool, and they are asked for its rows alone
const OF_LIVE_WORKSPACE = '(select w.deleted_at is null from workspaces w where w.id = t.workspace_id)';
const READERS = rolesWith('tool_instance:read')
  .map((role) => `'${role}'`)
  .join(', ');
/** The workspaces in which the caller may read instances, for those who do not administer the organization. */
const OWN = `(select true from workspace_members m
  where m.workspace_id = t.workspace_id and m.user_id = $me and m.role in (${READERS}))`;

/** A tool that an organization has: its own, or a built-in one. @throws RESOURCE_NOT_FOUND `tool` */
export function visible<Tool extends { orgId: string | null }>(tool: Tool | null, orgId: string, id: string): Tool {
  if (!tool || (tool.orgId !== null && tool.orgId !== orgId)) throw notFound('tool', id);
  return tool;
}

const FROM = 'tool_instances t join tools tool on tool.id = t.tool_id';

/** Adds what follows from the tools to the rows of instances. */
function completion({ sql }: ServiceDeps) {
  const facts = toolFacts(sql);
  return async <Stored extends StoredInstance>(context: RequestCache, rows: readonly Stored[]) => {
    const tools = await facts.of(context, rows);
    return rows.map((row, index) => Object.assign(row, derivedOf(row, tools[index]!)));
  };
}

type StoredCalled = StoredInstance & Sealed<'own'>;

const FIND_CALLED = `select ${Object.entries({ ...columns, ...sealedColumns('own') })
  .map(([property, column]) => `${column} as "${property}"`)
  .join(', ')}
  from ${FROM} left join credentials own on own.tool_instance_id = t.id and own.org_id = t.org_id
  where t.org_id = $1 and t.workspace_id = $2 and t.id = $3`;

/** Reads an instance for a call, with what it keeps itself, sealed. @throws RESOURCE_NOT_FOUND */
export function calledInstanceReads(deps: ServiceDeps) {
  const complete = completion(deps);
  return async ({ orgId, workspaceId }: WorkspacePlace, id: string): Promise<ToolInstance & StoredCalled> => {
    const found = await deps.sql.read<StoredCalled>(FIND_CALLED, [orgId, workspaceId, id]);
    const [instance] = await complete(noCache, found);
    if (!instance) throw notFound('tool_instance', id);
    return instance;
  };
}

/** The reads of instances. What follows from their tools is computed when they are read. */
export function instanceReads(deps: ServiceDeps) {
  const instances = {
    kind: 'tool_instance',
    from: FROM,
    count: { from: 'tool_instances t' },
    columns,
    complete: completion(deps),
  } as const;
  const ofTool = {
    ...instances,
    below: ['orgId', 'toolId'],
    always: [OF_LIVE_WORKSPACE],
    filters: ({ activeOnly }: InstanceFilters) => ({ 't.is_active = ?': activeOnly || undefined }),
  } as const;
  return {
    /** The instances of a workspace. */
    reads: new Reads<ToolInstance, WorkspacePlace, PageArgs & InstanceFilters, StoredInstance>(deps, {
      ...instances,
      demands: async ({ orgId }, { toolId }) => {
        if (toolId) visible(await findRow(deps.sql, 'tools', { id: toolId }), orgId, toolId);
      },
      name: 'tool_instances',
      below: ['orgId', 'workspaceId'],
      filters: ({ toolId, activeOnly }) => ({ 't.tool_id = ?': toolId, 't.is_active = ?': activeOnly || undefined }),
    }),
    /** The instances of a tool in an organization, for those who administer it. */
    allOfTool: new Reads<ToolInstance, ToolPlace, PageArgs & InstanceFilters, StoredInstance>(deps, {
      ...ofTool,
      name: 'instances_of_tool',
    }),
    /** The instances of a tool that other callers may read. */
    ownOfTool: new Reads<ToolInstance, ToolPlace, PageArgs & InstanceFilters, StoredInstance>(deps, {
      ...ofTool,
      name: 'own_instances_of_tool',
      mine: OWN,
    }),
  };
}
