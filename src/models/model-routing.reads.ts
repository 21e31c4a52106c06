import type { Sql } from '../data/sql.ts';
import type { WorkspaceLimits } from '../model-entitlements/workspace-limits.ts';
import { ofThisMonth } from '../provider-accounts/provider-account.source.ts';
import type { ModelConstraints } from './logical-model.source.ts';

/** A target with everything that decides whether it may be tried. */
export interface RoutedTarget {
  providerAccountId: string;
  modelName: string;
  weight: number;
  priority: number;
  enabled: boolean;
  consecutiveFailures: number;
  /** Seconds since it last failed; `null`: never. */
  failedAgo: number | null;
  /** What reports told of it lately, and how many seconds ago. */
  averageLatencyMs: number | null;
  latencyAgo: number | null;
  costPer1kTokens: number | null;
  costAgo: number | null;
  temperatureOverride: number | null;
  maxTokensOverride: number | null;
  providerType: string;
  region: string | null;
  dataResidency: string | null;
  routingMode: string;
  bridgeId: string | null;
  bridgeEndpointName: string | null;
  accountEnabled: boolean;
  accountStatus: string;
  /** Seconds since a report last told of the account's health; `null`: never. */
  accountCheckedAgo: number | null;
  maxTokensPerMonth: number | null;
  maxRequestsPerMonth: number | null;
  currentMonthTokens: number;
  currentMonthRequests: number;
}

interface Used {
  requests: number;
  tokens: number;
}

/** What the workspace was granted of a model, and what it used in the running periods. */
export interface RoutedEntitlement {
  id: string;
  enabled: boolean;
  limits: WorkspaceLimits;
  allowedStepTypes: string[];
  allowedEndpoints: string[];
  allowedPurposes: string[];
  usage: { month?: Used; day?: Used; minute?: Used };
}

export interface RoutedModel {
  logicalModelId: string;
  enabled: boolean;
  statusByHand: string | null;
  fallbackChain: string[];
  constraints: ModelConstraints;
  defaultTemperature: number | null;
  defaultTopP: number | null;
  defaultMaxTokens: number | null;
  targets: RoutedTarget[];
  /** `null`: the workspace has none. */
  entitlement: RoutedEntitlement | null;
  /** The database's clock, by which all of this was judged. */
  now: Date;
}

/** What names the period of a window that is running at `clock`: `2026-11`, `2026-11-21`, `2026-11-21T10:31`. */
export const periodAt = (clock: string, window: string) =>
  `to_char(${clock} at time zone 'utc', case ${window} when 'month' then 'YYYY-MM' when 'day' then 'YYYY-MM-DD' else 'YYYY-MM-DD"T"HH24:MI' end)`;

const ago = (column: string) => `extract(epoch from statement_timestamp() - ${column})::float8`;

const ROUTED = `select t.logical_model_id as "logicalModelId", t.enabled, t.status_by_hand as "statusByHand", t.fallback_chain as "fallbackChain",
    t.constraints, t.default_temperature as "defaultTemperature", t.default_top_p as "defaultTopP", t.default_max_tokens as "defaultMaxTokens",
    statement_timestamp() as now,
    (select coalesce(json_agg(json_build_object('providerAccountId', m.provider_account_id, 'modelName', m.model_name, 'weight', m.weight,
        'priority', m.priority, 'enabled', m.enabled, 'consecutiveFailures', m.consecutive_failures, 'failedAgo', ${ago('m.last_failure')},
        'averageLatencyMs', m.average_latency_ms, 'latencyAgo', ${ago('m.latency_at')}, 'costPer1kTokens', m.cost_per_1k_tokens,
        'costAgo', ${ago('m.cost_at')}, 'temperatureOverride', m.temperature_override, 'maxTokensOverride', m.max_tokens_override, 'providerType', a.provider_type,
        'region', a.region, 'dataResidency', a.data_residency, 'routingMode', a.routing_mode, 'bridgeId', a.bridge_id,
        'bridgeEndpointName', a.bridge_endpoint_name, 'accountEnabled', a.enabled, 'accountStatus', a.status,
        'accountCheckedAgo', ${ago('a.last_health_check')}, 'maxTokensPerMonth', a.max_tokens_per_month,
        'maxRequestsPerMonth', a.max_requests_per_month, 'currentMonthTokens', ${ofThisMonth('a', 'current_month_tokens')},
        'currentMonthRequests', ${ofThisMonth('a', 'current_month_requests')}) order by m.position), '[]')
      from model_targets m join provider_accounts a on a.id = m.provider_account_id where m.model_id = t.id) as targets,
    (select json_build_object('id', e.id, 'enabled', e.enabled, 'limits', e.workspace_limits, 'allowedStepTypes', e.allowed_step_types,
        'allowedEndpoints', e.allowed_endpoints, 'allowedPurposes', e.allowed_purposes,
        'usage', (select coalesce(json_object_agg(u."window", json_build_object('requests', u.requests, 'tokens', u.tokens)), '{}')
          from model_usage u where u.entitlement_id = e.id and u.period = ${periodAt('statement_timestamp()', 'u."window"')}))
      from model_entitlements e where e.workspace_id = $2 and e.logical_model_id = t.logical_model_id) as entitlement
  from logical_models t where t.org_id = $1 and t.logical_model_id = any($3::text[])`;

/** Models of an organization with what decides about routing to them for a workspace, by their identifiers, in one statement. */
export async function readRoutedModels(
  sql: Sql,
  { orgId, workspaceId }: { orgId: string; workspaceId: string },
  logicalModelIds: readonly string[],
): Promise<Map<string, RoutedModel>> {
  const rows = await sql.read<RoutedModel>(ROUTED, [orgId, workspaceId, logicalModelIds]);
  return new Map(rows.map((model) => [model.logicalModelId, model]));
}
