import { columnsOf, jsonOf, selectList, words } from '../../data/paging.ts';
import type { Sql } from '../../data/sql.ts';
import type {
  ProviderAccount as AccountRow,
  ModelEntitlement as EntitlementRow,
  LogicalModel as ModelRow,
  ModelTarget as TargetRow,
} from '../../generated/prisma/client.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import type { WorkspaceLimits } from '../model-entitlements/workspace-limits.ts';
import { ofThisMonth, type QuotaPolicy } from '../provider-accounts/provider-account.reads.ts';
import type { ModelConstraints } from './logical-model.reads.ts';

const ofTarget = columnsOf(
  words(
    'providerAccountId modelName weight priority enabled consecutiveFailures averageLatencyMs costPer1kTokens',
    'temperatureOverride maxTokensOverride',
  ),
  'm',
);
const ofAccount = columnsOf(
  words('providerType region dataResidency routingMode bridgeId bridgeEndpointName credentialsRef baseUrl'),
  'a',
);
const ofModel = columnsOf(
  words(
    'logicalModelId modelType enabled statusByHand fallbackChain constraints defaultTemperature defaultTopP',
    'defaultMaxTokens',
  ),
);
const ofEntitlement = columnsOf(words('id enabled allowedStepTypes allowedEndpoints allowedPurposes'), 'e');

/** A target with everything that decides whether it may be tried. */
export interface RoutedTarget
  extends Pick<TargetRow, keyof typeof ofTarget>,
    Pick<AccountRow, keyof typeof ofAccount>,
    Omit<QuotaPolicy, 'usagePeriod'> {
  /** Seconds since the last failure; `null`: never. */
  failedAgo: number | null;
  /** Seconds since a report last gave its latency and its cost. */
  latencyAgo: number | null;
  costAgo: number | null;
  accountEnabled: boolean;
  accountStatus: string;
  /** Seconds since a report last changed the account's health; `null`: never. */
  accountCheckedAgo: number | null;
}

interface Used {
  requests: number;
  tokens: number;
}

/** The workspace's grant of a model, and its usage in the current periods. */
export interface RoutedEntitlement extends Pick<EntitlementRow, keyof typeof ofEntitlement> {
  limits: WorkspaceLimits;
  usage: { month?: Used; day?: Used; minute?: Used };
}

export interface RoutedModel extends Omit<Pick<ModelRow, keyof typeof ofModel>, 'constraints'> {
  constraints: ModelConstraints;
  targets: RoutedTarget[];
  /** `null` if the workspace has none. */
  entitlement: RoutedEntitlement | null;
  /** The time by the clock of the database, to which all ages refer. */
  now: Date;
}

/** The name of a window's period at `clock`: `2026-11`, `2026-11-21`, `2026-11-21T10:31`. */
export const periodAt = (clock: string, window: string) =>
  `to_char(${clock} at time zone 'utc',
    case ${window} when 'month' then 'YYYY-MM' when 'day' then 'YYYY-MM-DD' else 'YYYY-MM-DD"T"HH24:MI' end)`;

const ago = (column: string) => `extract(epoch from statement_timestamp() - ${column})::float8`;

const target = jsonOf({
  ...ofTarget,
  ...ofAccount,
  failedAgo: ago('m.last_failure'),
  latencyAgo: ago('m.latency_at'),
  costAgo: ago('m.cost_at'),
  accountEnabled: 'a.enabled',
  accountStatus: 'a.status',
  accountCheckedAgo: ago('a.last_health_check'),
  maxTokensPerMonth: 'a.max_tokens_per_month',
  maxRequestsPerMonth: 'a.max_requests_per_month',
  currentMonthTokens: ofThisMonth('a', 'current_month_tokens'),
  currentMonthRequests: ofThisMonth('a', 'current_month_requests'),
});

const used = jsonOf(columnsOf(words('requests tokens'), 'u'));
const USAGE = `(select coalesce(json_object_agg(u."window", ${used}), '{}')
  from model_usage u where u.entitlement_id = e.id and u.period = ${periodAt('statement_timestamp()', 'u."window"')})`;

const ROUTED = `select ${selectList(ofModel)}, statement_timestamp() as now,
    (select coalesce(json_agg(${target} order by m.position), '[]')
      from model_targets m join provider_accounts a on a.id = m.provider_account_id
      where m.model_id = t.id) as targets,
    (select ${jsonOf({ ...ofEntitlement, limits: 'e.workspace_limits', usage: USAGE })}
      from model_entitlements e
      where e.workspace_id = $2 and e.logical_model_id = t.logical_model_id) as entitlement
  from logical_models t where t.org_id = $1 and t.logical_model_id = any($3::text[])`;

/**
 * Reads models of an organization with everything that decides about routing to them for a workspace, by identifier and
 * in one statement.
 */
export async function readRoutedModels(
  sql: Sql,
  { orgId, workspaceId }: WorkspacePlace,
  logicalModelIds: readonly string[],
): Promise<Map<string, RoutedModel>> {
  const rows = await sql.read<RoutedModel>(ROUTED, [orgId, workspaceId, logicalModelIds]);
  return new Map(rows.map((model) => [model.logicalModelId, model]));
}
