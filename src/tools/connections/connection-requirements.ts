import type { Sql } from '../../data/sql.ts';
import type { Tool } from '../../generated/prisma/client.ts';
import type { Checked, NamespacePlace } from '../../kernel/checked-place.ts';
import { instancesOf, visibleTools } from '../views.ts';
import type { AuthType } from './connection-state.ts';
import { serviceOf } from './connection-target.ts';
import { missingScopes } from './missing-scopes.ts';

/** What an app needs to be connected. */
export interface ConnectionRequirement {
  orgId: string;
  toolId: string;
  toolSlug: string;
  toolName: string;
  toolInstanceId: string | null;
  authType: AuthType;
  scopes: string[];
  status: string;
  /** Of the scopes, those that the connection does not have. */
  missingScopes: string[];
  satisfied: boolean;
}

/** All that an app needs. */
export interface ConnectionRequirements {
  orgId: string;
  appId: string;
  requirements: ConnectionRequirement[];
  total: number;
  allSatisfied: boolean;
}

/** The maximum number of requirements of an app. */
const MAX_REQUIREMENTS = 1_000;

interface Used extends Pick<Tool, 'slug' | 'credentialSchema'> {
  toolId: string;
  toolName: string;
  instanceId: string | null;
  authMode: string | null;
  scopesOverride: string[] | null;
  status: string | null;
  /** The scopes of the connection; `null` for an API key. */
  granted: string[] | null;
}

/** What the steps of an app use, as a group above says it: `tool_instance_id`, `tool_slug` and `config` of each. */
export type StepsOfApp = (orgId: string, workspaceId: string, appId: string) => string;

/**
 * An app uses the tool instances of its steps, or the tools of steps without one, and the tools and tool instances
 * whose identifiers are anywhere in the configs of its steps, in its metadata or in that of its newest release. For a
 * tool without a named instance, the instance is one that the namespace can use, a connected one first; for an instance
 * that the namespace cannot use, there is none. Those that need no connection are left out.
 */
const used = (stepsOfApp: StepsOfApp): string => `with steps as (${stepsOfApp('$1', '$2', '$4')}),
  words as (
    select s.tool_instance_id as id from steps s where s.tool_instance_id is not null
    union
    select t.id from steps s join (${visibleTools('$1')}) t on t.slug = s.tool_slug
      where not exists (select 1 from (${instancesOf('$1', '$2')}) i where i.id = s.tool_instance_id)
    union
    select w #>> '{}' from (select s.config as json from steps s
      union all select a.metadata from apps a where a.org_id = $1 and a.id = $4
      union all (select r.metadata from releases r where r.org_id = $1 and r.app_id = $4 order by r.id desc limit 1)) t,
      jsonb_path_query(t.json, '$.** ? (@.type() == "string")') w),
  instances as (
    select i.*, c.status as connected, case when c.auth_type = 'oauth2' then c.scopes end as granted
    from tool_instances i
    left join lateral (select k.status, k.auth_type, k.scopes from connections k
      where k.tool_instance_id = i.id and k.end_user_id is null and (k.namespace_id = $3 or k.namespace_id is null)
      order by case when k.namespace_id is null then 1
        when exists (select 1 from credentials e where e.connection_id = k.id) then 0 else 2 end limit 1) c on true
    where i.org_id = $1 and i.workspace_id = $2 and (i.namespace_id is null or i.namespace_id = $3)),
  named as (select i.* from instances i where i.id in (select id from words)),
  chosen as (
    select distinct on (t.id) t.id as tool, i.* from tools t
    left join instances i on i.tool_id = t.id
    where (t.org_id = $1 or t.org_id is null) and t.id in (select id from words)
      and not exists (select 1 from named n where n.tool_id = t.id)
    order by t.id, (i.connected = 'connected') desc nulls last, i.is_active desc nulls last, i.id desc),
  elsewhere as (
    select distinct i.tool_id as tool from tool_instances i where i.org_id = $1 and i.workspace_id = $2
      and i.id in (select id from words) and i.id not in (select id from named))
  select t.id as "toolId", t.slug, t.name as "toolName", t.credential_schema as "credentialSchema",
    u.id as "instanceId", u.auth_mode as "authMode", u.scopes_override as "scopesOverride", u.connected as status,
    u.granted
  from (select n.tool_id as tool, n.id, n.auth_mode, n.scopes_override, n.connected, n.granted from named n
    union all select c.tool, c.id, c.auth_mode, c.scopes_override, c.connected, c.granted from chosen c
    union all select e.tool, null, null, null, null, null from elsewhere e
      where e.tool not in (select c.tool from chosen c where c.id is null)) u
  join tools t on t.id = u.tool
  where t.supports_connection and coalesce(u.auth_mode, '') <> 'none'
    and (u.connected is not null
      or not exists (select 1 from credentials k where k.tool_instance_id = u.id and u.auth_mode = 'vault'))
  order by t.slug, t.id, u.id limit ${MAX_REQUIREMENTS}`;

/** Finds out what an app needs in a namespace. */
export class ConnectionRequirementsReader {
  readonly #sql: Sql;
  readonly #used: string;

  constructor(sql: Sql, stepsOfApp: StepsOfApp) {
    this.#sql = sql;
    this.#used = used(stepsOfApp);
  }

  /** @param appId an app of the workspace */
  async of(
    { orgId, workspaceId, namespaceId }: Checked<NamespacePlace>,
    appId: string,
  ): Promise<ConnectionRequirements> {
    const used = await this.#sql.query<Used>({ text: this.#used, values: [orgId, workspaceId, namespaceId, appId] });
    const requirements = used.map((row) => requirementOf(orgId, row));
    return {
      orgId,
      appId,
      requirements,
      total: requirements.length,
      allSatisfied: requirements.every(({ satisfied }) => satisfied),
    };
  }
}

function requirementOf(orgId: string, row: Used): ConnectionRequirement {
  const { toolId, slug, toolName, instanceId, authMode, scopesOverride, status, granted } = row;
  const service = serviceOf(row);
  const authType = service && authMode !== 'api_key' ? 'oauth2' : 'api_key';
  const asked = scopesOverride && scopesOverride.length > 0 ? scopesOverride : (service?.scopes ?? []);
  const scopes = authType === 'oauth2' ? [...asked] : [];
  const isConnected = status === 'connected';
  const missing = isConnected && granted ? missingScopes(scopes, granted) : [];
  return {
    orgId,
    toolId,
    toolSlug: slug,
    toolName,
    toolInstanceId: instanceId,
    authType,
    scopes,
    status: status ?? 'not_connected',
    missingScopes: missing,
    satisfied: isConnected && missing.length === 0,
  };
}
