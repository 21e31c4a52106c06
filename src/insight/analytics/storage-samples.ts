import type { ServiceDeps } from '../../access/service-deps.ts';
import type { RoutedReads } from '../../data/sql.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import type { Borders } from './points.ts';

/** What places hold is looked at so often, which is how late a sample may be. */
const EVERY_SECONDS = 900;
const TOLD_DAYS = 400;

/** Rows of the counter of what artifacts hold. */
const BYTES = `c.counter = 'storage.bytes'`;

/** What has changed since the last look. Nothing of what is deleted: that ends. */
const SAMPLE = `insert into storage_samples (org_id, place_id, at, bytes)
  select k.org_id, k.place_id, now(), k.bytes
  from (select c.org_id, c.place_id, sum(c.n) as bytes from place_counts c where ${BYTES} group by 1, 2) k
  join organizations o on o.id = k.org_id and o.deleted_at is null
  where k.bytes <> coalesce((select s.bytes from storage_samples s
    where s.org_id = k.org_id and s.place_id = k.place_id order by s.at desc limit 1), 0)
  on conflict do nothing`;

const OLD = `interval '${TOLD_DAYS} days'`;

/** Removes samples of places that are gone, and those that a later one has replaced before the days that are told. */
export const RETENTION_OF_SAMPLES = [
  `delete from storage_samples s where s.at < now() - ${OLD} and exists (select from storage_samples n
    where n.org_id = s.org_id and n.place_id = s.place_id and n.at > s.at and n.at < now() - ${OLD})`,
  `delete from storage_samples s where not exists (select from workspaces w where w.id = s.place_id)
    and not exists (select from organizations o where o.id = s.place_id)`,
];

/** Removes samples of organizations that end for good, at most so many. */
export const OF_ENDED_SAMPLES = (most: number): string => `delete from storage_samples
  where (org_id, place_id, at) in (select s.org_id, s.place_id, s.at from organizations o
  join storage_samples s on s.org_id = o.id where o.deleted_at < now() - interval '30 days' limit ${most})`;

const AT_ENDS = `select g.at as start, case
    when g.at > now() then 0
    when g.until > now() then
      (select sum(c.n) from place_counts c where c.org_id = $1 and c.place_id = $2 and ${BYTES})
    else (select s.bytes from storage_samples s where s.org_id = $1 and s.place_id = $2 and s.at < g.until
      order by s.at desc limit 1) end::float8 as bytes
  from jsonb_to_recordset($3::jsonb) as g(at timestamptz, until timestamptz)`;

/**
 * What a place held at the end of each span, by the time of its start; now, in the current one. 0 before the first
 * sample.
 */
export async function readStorage(
  sql: RoutedReads,
  { orgId, id }: { orgId: string; id: string },
  borders: Borders,
): Promise<Map<number, number>> {
  const spans = borders.slice(0, -1).map((at, index) => ({ at, until: borders[index + 1] }));
  const rows = await sql.read<{ start: Date; bytes: number | null }>(AT_ENDS, [orgId, id, JSON.stringify(spans)]);
  return new Map(rows.map(({ start, bytes }) => [start.getTime(), bytes ?? 0]));
}

/** Looks again and again at what places hold. */
export class StorageSamples {
  readonly tasks: readonly Task[] = [scheduled('sample_storage', { everySeconds: EVERY_SECONDS }, () => this.sample())];
  readonly #deps: Pick<ServiceDeps, 'sql'>;

  constructor(deps: Pick<ServiceDeps, 'sql'>) {
    this.#deps = deps;
  }

  /** Adds a sample of each place that holds something else than before. @returns how many */
  sample(): Promise<number> {
    return this.#deps.sql.write(SAMPLE, []);
  }
}
