import type { RoutedReads } from '../../data/sql.ts';
import type { StepLength } from '../../kernel/time-zone.ts';
import { areOfUtc, type Borders, type Calendar, endOf, partsOf } from './points.ts';

/** How many runs began in the last 90 days. Those that still run are part of the total alone. */
export interface ExecutionMetrics {
  total: number;
  success: number;
  failed: number;
  /** Of the runs that have ended: 0 to 1. 0 without any. */
  successRate: number;
}

/** Runs of this many days are told, the current one included. */
const TOLD_DAYS = 90;

const DAY_MS = 86_400_000;

/** Removes the sums of days that are not told any more. */
export const RETENTION_OF_RUNS = `delete from execution_sums where start < now() - interval '${TOLD_DAYS + 1} days'`;

/** The start of the first day that is told: counted from noon, because days may have 23 or 25 hours. */
export function firstDayTold(calendar: Calendar): Date {
  const today = calendar.startOf('day', new Date());
  return calendar.startOf('day', new Date(today.getTime() + DAY_MS / 2 - (TOLD_DAYS - 1) * DAY_MS));
}

/** What runs add up to: how many there are, or the model tokens that they used. */
export type RunMetric = 'executions' | 'tokens';
const columns: Readonly<Record<RunMetric, string>> = { executions: 'n', tokens: 'tokens' };

const ofUtc = (metric: RunMetric) => `select start, sum(${columns[metric]})::float8 as n from execution_sums
  where org_id = $1 and scope_id = $2 and span = $3 and start >= $4 and start < $5 group by start`;

/** `offset 0`: PostgreSQL looks each part up by its index. */
const ofParts = (metric: RunMetric) => `select g.at as start, sum(e.n)::float8 as n
  from jsonb_to_recordset($3::jsonb) as g(at timestamptz, span text, since timestamptz, until timestamptz)
  cross join lateral (select s.${columns[metric]} as n from execution_sums s where s.org_id = $1 and s.scope_id = $2
    and s.span = g.span and s.start >= g.since and s.start < g.until offset 0) e
  group by 1`;

/**
 * What the runs that began in each span add up to, by the time of its start: none before the days that are told.
 * @param scopeId of what they belong to
 */
export async function readRuns(
  sql: RoutedReads,
  { orgId, scopeId }: { orgId: string; scopeId: string },
  metric: RunMetric,
  { calendar, step, borders }: { calendar: Calendar; step: StepLength; borders: Borders },
): Promise<Map<number, number>> {
  // of the month in which they begin, these days are told
  const first = calendar.startOf(step, firstDayTold(calendar));
  const rows =
    step !== 'month' && areOfUtc(step, borders)
      ? await sql.read<Sum>(ofUtc(metric), [
          orgId,
          scopeId,
          step,
          borders[0] < first ? first : borders[0],
          endOf(borders),
        ])
      : await sql.read<Sum>(ofParts(metric), [
          orgId,
          scopeId,
          JSON.stringify(partsOf(step, borders, 'quarter').filter(({ at }) => at >= first)),
        ]);
  return new Map(rows.map(({ start, n }) => [start.getTime(), n]));
}

interface Sum {
  start: Date;
  n: number;
}

/** The counters of the runs of a scope, both given as expressions. */
export const countersOfRuns = (orgId: string, scopeId: string): string => `select c.counter, c.n from (
    select coalesce(sum(n), 0)::float8 as n, coalesce(sum(success), 0)::float8 as success,
      coalesce(sum(failed), 0)::float8 as failed
    from execution_sums where org_id = ${orgId} and scope_id = ${scopeId} and span = 'day'
      and start >= date_trunc('day', now(), 'UTC') - interval '${TOLD_DAYS - 1} days'
  ) s cross join lateral (values ('runs', s.n), ('runs.success', s.success), ('runs.failed', s.failed)) c(counter, n)`;

/** The numbers of runs. */
export function executionsOf(counts: { of(counter: string): number }): ExecutionMetrics {
  const success = counts.of('runs.success');
  const failed = counts.of('runs.failed');
  const ended = success + failed;
  return { total: counts.of('runs'), success, failed, successRate: ended === 0 ? 0 : success / ended };
}
