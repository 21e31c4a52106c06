import type { PageArgs } from '../../data/page.ts';
import { columnsOf, jsonOf, words } from '../../data/paging.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import type { LogicalModel as ModelRow, ModelTarget as TargetRow } from '../../generated/prisma/client.ts';
import type { OrganizationPlace } from '../../kernel/checked-place.ts';

const ofTarget = columnsOf(
  words(
    'providerAccountId modelName weight priority enabled consecutiveFailures temperatureOverride maxTokensOverride',
    'averageLatencyMs costPer1kTokens',
  ),
  'm',
);

/** A target with its health (spec, Logical model `targets[]`). */
export interface ModelTarget extends Pick<TargetRow, keyof typeof ofTarget> {
  orgId: string;
  /** ISO 8601 in UTC, as answers show it. */
  lastFailure: string | null;
  lastSuccess: string | null;
}

/** What a model requires of the accounts that serve it. All keys are always present. */
export interface ModelConstraints {
  dataResidency: string[];
  requireAuditLog: boolean;
  /** A decimal number as text, for exact amounts. */
  maxCostPer1kTokens: string | null;
  maxLatencyMs: number | null;
  allowCaching: boolean | null;
  cacheTtlSeconds: number | null;
}

const ofModel = columnsOf(
  words(
    'id orgId logicalModelId name description modelType capabilities defaultTemperature defaultTopP defaultMaxTokens',
    'fallbackChain constraints enabled tags createdBy createdAt updatedAt resourceVersion',
  ),
);

/** A model as callers see it. Its status is derived from its targets unless it was set by hand (defaults §8). */
export interface LogicalModel extends Omit<Pick<ModelRow, keyof typeof ofModel>, 'constraints'> {
  capabilities: Record<string, boolean>;
  tags: Record<string, string>;
  constraints: ModelConstraints;
  status: string;
  statusReason: string | null;
  targets: ModelTarget[];
  healthyTargetsCount: number;
  totalTargetsCount: number;
}

export interface ModelFilters {
  modelType?: string | null;
  /** The visible status, derived or set by hand. */
  status?: string | null;
  /** Only enabled models, healthy or not (defaults §8). */
  enabledOnly?: boolean | null;
}

/** Number of failures in a row that make a target unhealthy (defaults §8). */
export const FAILURES_ALLOWED = 3;

const time = (column: string) => `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const failing = `m.consecutive_failures >= ${FAILURES_ALLOWED}`;
const away = `not (a.enabled and a.status = 'active')`;

const target = jsonOf({
  ...ofTarget,
  orgId: 't.org_id',
  lastFailure: time('m.last_failure'),
  lastSuccess: time('m.last_success'),
});

/**
 * The targets of `t` as one value, and how many of them are healthy. Read in the same statement as the row, however
 * many rows there are.
 */
const targets = `lateral (select count(*)::int as total,
    count(*) filter (where m.enabled and not (${away}) and not (${failing}))::int as healthy,
    count(*) filter (where not m.enabled)::int as disabled,
    count(*) filter (where m.enabled and ${away})::int as away,
    count(*) filter (where m.enabled and not (${away}) and ${failing})::int as failing,
    coalesce(json_agg(${target} order by m.position), '[]') as targets
  from model_targets m join provider_accounts a on a.id = m.provider_account_id where m.model_id = t.id) g`;

/** Rows `t` of models, with `g`, the values derived from their targets. */
export const MODELS = `logical_models t cross join ${targets}`;

/** The visible status. Filters use the same expression. */
export const STATUS = `case when t.status_by_hand is not null then t.status_by_hand
  when g.healthy = g.total then 'active'
  when g.healthy = 0 then 'unavailable' else 'degraded' end`;

const REASON = `case when t.status_by_hand is not null then format('Set to %s by an administrator.', t.status_by_hand)
  when g.healthy < g.total then format('%s of %s targets %s healthy: %s.', g.healthy, g.total,
    case when g.healthy = 1 then 'is' else 'are' end,
    concat_ws(', ', case when g.disabled > 0 then g.disabled || ' disabled' end,
      case when g.away > 0 then g.away || ' at an account that is not active' end,
      case when g.failing > 0 then g.failing || ' failing' end)) end`;

/** The models of an organization. Each is identified by the identifier that its organization gave it. */
export const models: ReadsOptions<LogicalModel, OrganizationPlace, PageArgs & ModelFilters> = {
  kind: 'model',
  name: 'logical_models',
  from: MODELS,
  // Counting needs no targets.
  count: { from: 'logical_models t' },
  below: ['orgId'],
  known: { by: 'logicalModelId' },
  columns: {
    ...ofModel,
    status: STATUS,
    statusReason: REASON,
    targets: 'g.targets',
    healthyTargetsCount: 'g.healthy',
    totalTargetsCount: 'g.total',
  },
  filters: ({ modelType, status, enabledOnly }) => ({
    't.model_type = ?': modelType,
    [`${STATUS} = ?`]: status,
    't.enabled = ?': enabledOnly || undefined,
  }),
};
