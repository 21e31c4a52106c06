import { columnsOf, type PageSource } from '../data/pages.ts';
import type { LogicalModel as ModelRow } from '../generated/prisma/client.ts';
import { Prisma } from '../generated/prisma/client.ts';

/** A target with its health (spec, Logical model `targets[]`). */
export interface ModelTarget {
  orgId: string;
  providerAccountId: string;
  modelName: string;
  weight: number;
  priority: number;
  enabled: boolean;
  consecutiveFailures: number;
  /** ISO 8601 in UTC, as answers show it. */
  lastFailure: string | null;
  lastSuccess: string | null;
  temperatureOverride: number | null;
  maxTokensOverride: number | null;
}

/** What a model demands of the accounts that serve it; all keys are always there. */
export interface ModelConstraints {
  dataResidency: string[];
  requireAuditLog: boolean;
  /** A decimal number as text, so that no cent is lost. */
  maxCostPer1kTokens: string | null;
  maxLatencyMs: number | null;
  allowCaching: boolean | null;
  cacheTtlSeconds: number | null;
}

/** A model as it is shown: its status is derived from its targets unless it was set by hand (defaults §8). */
export interface LogicalModel extends Omit<ModelRow, 'statusByHand' | 'constraints' | 'capabilities' | 'tags'> {
  capabilities: Record<string, boolean>;
  tags: Record<string, string>;
  constraints: ModelConstraints;
  status: string;
  statusReason: string | null;
  targets: ModelTarget[];
  healthyTargetsCount: number;
  totalTargetsCount: number;
}

/** So many failures in a row make a target unhealthy (defaults §8). */
export const FAILURES_ALLOWED = 3;

const time = (column: string) => `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const failing = `m.consecutive_failures >= ${FAILURES_ALLOWED}`;
const away = `not (a.enabled and a.status = 'active')`;

/** The targets of `t` in one value, and how many of them are healthy: in the same statement as the row, however many rows there are. */
const targets = `lateral (select count(*)::int as total,
    count(*) filter (where m.enabled and not (${away}) and not (${failing}))::int as healthy,
    count(*) filter (where not m.enabled)::int as disabled,
    count(*) filter (where m.enabled and ${away})::int as away,
    count(*) filter (where m.enabled and not (${away}) and ${failing})::int as failing,
    coalesce(json_agg(json_build_object('orgId', t.org_id, 'providerAccountId', m.provider_account_id, 'modelName', m.model_name,
      'weight', m.weight, 'priority', m.priority, 'enabled', m.enabled, 'consecutiveFailures', m.consecutive_failures,
      'lastFailure', ${time('m.last_failure')}, 'lastSuccess', ${time('m.last_success')},
      'temperatureOverride', m.temperature_override, 'maxTokensOverride', m.max_tokens_override) order by m.position), '[]') as targets
  from model_targets m join provider_accounts a on a.id = m.provider_account_id where m.model_id = t.id) g`;

/** Rows `t` of models with `g`, what their targets give. */
export const MODELS = `logical_models t cross join ${targets}`;

/** The status that is shown: it is filtered by the same words. */
export const STATUS = `case when t.status_by_hand is not null then t.status_by_hand when g.healthy = g.total then 'active'
  when g.healthy = 0 then 'unavailable' else 'degraded' end`;

const REASON = `case when t.status_by_hand is not null then format('Set to %s by an administrator.', t.status_by_hand)
  when g.healthy < g.total then format('%s of %s targets %s healthy: %s.', g.healthy, g.total, case when g.healthy = 1 then 'is' else 'are' end,
    concat_ws(', ', case when g.disabled > 0 then g.disabled || ' disabled' end,
      case when g.away > 0 then g.away || ' at an account that is not active' end,
      case when g.failing > 0 then g.failing || ' failing' end)) end`;

const { statusByHand: _shown, ...columns } = columnsOf(Object.values(Prisma.LogicalModelScalarFieldEnum));

/** The models of an organization, newest first. */
export const modelsSource: PageSource<LogicalModel> = {
  from: MODELS,
  columns: {
    ...columns,
    status: STATUS,
    statusReason: REASON,
    targets: 'g.targets',
    healthyTargetsCount: 'g.healthy',
    totalTargetsCount: 'g.total',
  },
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1'],
};
