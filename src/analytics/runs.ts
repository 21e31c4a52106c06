import { addSpans, startOf } from '../activity/time-spans.ts';
import type { Sql } from '../data/sql.ts';
import type { Step, WholeSpans } from './points.ts';

/** How many runs began in the last 90 days. Those that still run are part of the total alone. */
export interface ExecutionMetrics {
  total: number;
  success: number;
  failed: number;
  /** Of the runs that have ended: 0 to 1. 0 without any. */
  successRate: number;
}

/** Runs of this many days are told, in UTC, the current one included. */
const TOLD_DAYS = 90;

/** Removes the sums of days that are not told any more. */
export const RETENTION_OF_RUNS = `delete from execution_sums where start < now() - interval '${TOLD_DAYS + 1} days'`;

/** The start of the first day whose runs are told. */
const firstDayOfRuns = (): Date => addSpans('day', startOf('day', new Date()), 1 - TOLD_DAYS);

const BEGUN = `select start, sum(n)::float8 as n from execution_sums
  where org_id = $1 and scope_id = $2 and span = $3 and start >= $4 and start < $5 group by start`;

/**
 * How many runs began in each span, by the time of its start: none before the days that are told.
 * @param scopeId of what they belong to
 */
export async function readExecutions(
  sql: Sql,
  orgId: string,
  scopeId: string,
  step: Step,
  { since, until }: WholeSpans,
): Promise<Map<number, number>> {
  const first = firstDayOfRuns();
  const from = since < first ? first : since;
  const rows = await sql.read<{ start: Date; n: number }>(BEGUN, [orgId, scopeId, step, from, until]);
  return new Map(rows.map(({ start, n }) => [start.getTime(), n]));
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
