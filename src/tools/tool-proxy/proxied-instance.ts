import { noCache } from '../../data/request-cache.ts';
import type { Sql } from '../../data/sql.ts';
import { notFound } from '../../kernel/errors.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { SecretValue } from '../../vault/secrets/envelope.ts';
import { type CallPlace, namespaceOf } from '../connections/call-place.ts';
import type { UsableCredential } from '../connections/connection-credentials.ts';
import type { AuthType } from '../connections/connection-state.ts';
import { credentialIn } from '../connections/stored-credential.ts';
import { type ActionChanges, effectiveActions, type ToolAction } from '../tool-instances/effective-actions.ts';
import { type Sealed, sealedColumns, sealedIn } from '../tool-instances/sealed-columns.ts';
import { withoutKeys } from '../tool-instances/sent-credential.ts';
import { type ToolFacts, toolFacts } from '../tool-instances/tool-instance.facts.ts';
import type { ToolVersionCache } from '../tools/tool-version-cache.ts';

/** What is read of an instance to call its provider. */
export interface ProxiedInstance {
  id: string;
  orgId: string;
  workspaceId: string;
  /** Whose connection is used. */
  namespaceId: string | null;
  /** The end user whose connection is used; `null` for a call for none. */
  endUserId: string | null;
  /** The namespace that the instance is of; `null` for the whole workspace. */
  ownNamespaceId: string | null;
  isActive: boolean;
  authMode: string;
  configuration: Record<string, unknown>;
  actions: readonly ToolAction[];
  tool: { id: string; name: string; status: string; credentialSchema: object[] };
  /** What the instance keeps itself. */
  secrets: SecretValue;
  connection: ProxiedConnection | null;
}

/** The connection that an instance is called with. */
export interface ProxiedConnection extends UsableCredential {
  /** The namespace that it is of; `null` for the whole workspace. */
  namespaceId: string | null;
  expiresAt: Date | null;
}

const sealed = (name: 'own' | 'held'): string =>
  Object.entries(sealedColumns(name))
    .map(([property, column]) => `${column} as "${property}"`)
    .join(', ');

/** @param connection which one is used, of the instance `i` */
const find = (
  connection: string,
): string => `select i.id, i.org_id as "orgId", i.workspace_id as "workspaceId", i.namespace_id as "namespaceId",
    i.is_active as "isActive", i.auth_mode as "authMode", i.configuration,
    i.custom_actions as "customActions", i.custom_action_parameters as "customActionParameters",
    i.action_defaults as "actionDefaults", i.mcp_action_filter as "mcpActionFilter",
    i.mcp_action_descriptions as "mcpActionDescriptions", i.mcp_requires_confirmation as "mcpRequiresConfirmation",
    i.mcp_parameter_overrides as "mcpParameterOverrides",
    tool.id as "toolId", tool.resource_version as "toolVersion", tool.name as "toolName", tool.status as "toolStatus",
    tool.credential_schema as "credentialSchema", ${sealed('own')}, ${sealed('held')},
    held.connection_id as "connectionId", held.namespace_id as "connectionNamespaceId", held.auth_type as "authType",
    held.status as "connectionStatus", held.expires_at as "expiresAt"
  from tool_instances i
    join tools tool on tool.id = i.tool_id
    left join credentials own on own.tool_instance_id = i.id and own.org_id = i.org_id
    left join lateral (select c.*, t.namespace_id, t.auth_type, t.status, t.expires_at
      from connections t join credentials c on c.connection_id = t.id
      where t.org_id = i.org_id and t.tool_instance_id = i.id
        and ${connection}
      order by t.namespace_id nulls last limit 1) held on true
  where i.org_id = $1 and i.workspace_id = $2 and i.id = $3`;

const OF_PLACE = find(
  't.end_user_id is null and (t.namespace_id is null or t.namespace_id = coalesce($4, i.namespace_id))',
);
const OF_END_USER = find('t.end_user_id = $4');

interface FoundRow
  extends ActionChanges,
    Sealed<'own'>,
    Sealed<'held'>,
    Pick<ProxiedInstance, 'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'isActive' | 'authMode' | 'configuration'> {
  toolId: string;
  toolVersion: number;
  toolName: string;
  toolStatus: string;
  credentialSchema: object[];
  connectionId: string;
  connectionNamespaceId: string | null;
  authType: AuthType;
  connectionStatus: string;
  expiresAt: Date | null;
}

/** Reads all that a call needs in one statement, beside the actions of its tool, which a process keeps by version. */
export class ProxiedInstances {
  readonly #deps: { sql: Sql; credentials: Credentials };
  readonly #facts: ToolVersionCache<ToolFacts>;

  constructor(deps: { sql: Sql; credentials: Credentials }) {
    this.#deps = deps;
    this.#facts = toolFacts(deps.sql);
  }

  /**
   * @param endUserId whose connection is used: without one, there is none
   * @throws RESOURCE_NOT_FOUND
   */
  async get(place: CallPlace, id: string, endUserId: string | null): Promise<ProxiedInstance> {
    const { orgId, workspaceId } = place;
    const ofNamespace = 'namespaceId' in place ? place.namespaceId : null;
    const [row] = await (endUserId === null
      ? this.#deps.sql.read<FoundRow>(OF_PLACE, [orgId, workspaceId, id, ofNamespace])
      : this.#deps.sql.read<FoundRow>(OF_END_USER, [orgId, workspaceId, id, endUserId]));
    if (!row) throw notFound('tool_instance', id);
    const namespaceId = namespaceOf(place, row);
    const [facts] = await this.#facts.of(noCache, [row]);
    const own = sealedIn(row, 'own');
    const kept = own ? this.#deps.credentials.opened(own) : {};
    return {
      id,
      orgId,
      workspaceId,
      namespaceId,
      ownNamespaceId: row.namespaceId,
      isActive: row.isActive,
      authMode: row.authMode,
      configuration: row.configuration,
      actions: effectiveActions(facts!.actions, row),
      tool: { id: row.toolId, name: row.toolName, status: row.toolStatus, credentialSchema: row.credentialSchema },
      // what the instance signs in with is not for the calls of its end users
      secrets: endUserId === null ? kept : withoutKeys(row, kept),
      endUserId,
      connection: this.#connectionIn(row),
    };
  }

  #connectionIn(row: FoundRow): ProxiedConnection | null {
    const held = sealedIn(row, 'held');
    const stored = held && credentialIn(this.#deps.credentials.opened(held));
    if (!stored) return null;
    return {
      connectionId: row.connectionId,
      authType: row.authType,
      secret: 'api_key' in stored ? stored.api_key : stored.access_token,
      status: row.connectionStatus,
      namespaceId: row.connectionNamespaceId,
      expiresAt: row.expiresAt,
    };
  }
}
