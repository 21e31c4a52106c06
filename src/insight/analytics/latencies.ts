import type { ReadRunner } from '../../data/sql.ts';
import type { StepLength } from '../../kernel/time-zone.ts';
import { columnOf } from '../activity/activity-scope.ts';
import { LATEST } from '../activity/activity-sums.ts';
import { type Borders, type Calendar, endOf, partsOf } from './points.ts';
import { firstDayTold } from './runs.ts';

/** Which part of the operations took at most as long. */
export const percentiles = { latency_p50: 0.5, latency_p95: 0.95, latency_p99: 0.99 } as const;
export type LatencyMetric = keyof typeof percentiles;

/** Places whose latencies are kept. */
export type LatencyKind = 'organization' | 'workspace' | 'app';

/** Removes the latencies of days that are not told any more. */
export const RETENTION_OF_LATENCIES = `delete from activity_latencies where start < now() - interval '91 days'`;

/** Each bucket is so many times as wide as the one before; `latency_bucket` in the database says the same. */
const WIDTH = 1.1;

/** What is nearest to everything in a bucket: at most 5 % from it. */
const middleOf = (bucket: number): number => (bucket === 0 ? 0 : (2 * WIDTH ** (bucket - 1)) / (WIDTH + 1));

interface InBucket {
  /** The start of the point that it is part of. */
  start: Date;
  bucket: number;
  requests: number;
}

/** The kept histograms, and the records that are not in them yet: of one snapshot, so that each counts once. */
const textOf = (kind: LatencyKind): string => `with parts as materialized (
    select g.* from jsonb_to_recordset($4::jsonb) as g(at timestamptz, span text, since timestamptz, until timestamptz))
  select p.at as start, p.bucket, sum(p.requests)::float8 as requests from (
    select k.at, e.* from parts k cross join lateral (
      select l.bucket, l.requests from activity_latencies l where l.org_id = $1 and l.scope = $2 and l.span = k.span
        and l.start >= k.since and l.start < k.until offset 0) e
    union all
    select k.at, latency_bucket(t.duration_ms), 1 from activity_fold f cross join lateral (${LATEST}) t
    join parts k on t.timestamp >= k.since and t.timestamp < k.until
    where t.org_id = $1 and ${columnOf(kind)} = $3
  ) p group by 1, 2 order by 1, 2`;

/**
 * How long at most the given part of the operations of each span took, by the time of its start: by the nearest rank,
 * and at most 5 % from what it was. None before the days that are told.
 */
export async function readLatencies(
  reads: ReadRunner,
  { orgId, kind, id }: { orgId: string; kind: LatencyKind; id: string },
  metric: LatencyMetric,
  { calendar, step, borders }: { calendar: Calendar; step: StepLength; borders: Borders },
): Promise<Map<number, number>> {
  // of the month in which they begin, these days are told
  const first = calendar.startOf(step, firstDayTold(calendar));
  if (endOf(borders) <= first) return new Map();
  const rows = await reads.read<InBucket>(textOf(kind), [
    orgId,
    kind === 'organization' ? kind : `${kind} ${id}`,
    id,
    JSON.stringify(partsOf(step, borders, 'quarter').filter(({ at }) => at >= first)),
  ]);
  const spans = new Map<number, InBucket[]>();
  for (const row of rows) {
    const start = row.start.getTime();
    const buckets = spans.get(start);
    if (buckets) buckets.push(row);
    else spans.set(start, [row]);
  }
  return new Map([...spans].map(([start, buckets]) => [start, percentileOf(buckets, percentiles[metric])]));
}

/** The value of the nearest rank. @param buckets lowest first */
function percentileOf(buckets: readonly InBucket[], part: number): number {
  const all = buckets.reduce((sum, { requests }) => sum + requests, 0);
  let left = Math.ceil(all * part);
  for (const { bucket, requests } of buckets) {
    left -= requests;
    if (left <= 0) return middleOf(bucket);
  }
  return 0;
}
