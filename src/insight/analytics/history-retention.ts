import { inBatches } from '../../data/batches.ts';
import type { Sql } from '../../data/sql.ts';
import type { Owner } from '../../kernel/owner.ts';
import { RETENTION_OF_COUNTS } from './kept-counts.ts';
import { RETENTION_OF_LATENCIES } from './latencies.ts';
import { RETENTION_OF_RUNS } from './runs.ts';
import { OF_ENDED_SAMPLES, RETENTION_OF_SAMPLES } from './storage-samples.ts';
import { RETENTION_OF_USES } from './top-resources.ts';

/** Sums that one statement removes. */
const BATCH = 10_000;

// those of an organization that ends for good go before it, while its row still says so
const OF_ENDED = `delete from execution_sums where (org_id, scope_id, span, start, slot) in (
  select s.org_id, s.scope_id, s.span, s.start, s.slot from organizations o
  join execution_sums s on s.org_id = o.id where o.deleted_at < now() - interval '30 days' limit ${BATCH})`;

/** Removes the counts of places that are gone, and what happened so long ago that it is not told any more. */
export class HistoryRetention implements Owner {
  readonly retention = [
    RETENTION_OF_RUNS,
    RETENTION_OF_LATENCIES,
    RETENTION_OF_USES,
    ...RETENTION_OF_SAMPLES,
    ...RETENTION_OF_COUNTS,
  ];
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Removes the sums of runs, and what was stored, of organizations that end for good. @returns how many */
  async removeParts(): Promise<number> {
    const samples = await inBatches(BATCH, () => this.#sql.write(OF_ENDED_SAMPLES(BATCH), []));
    return samples + (await inBatches(BATCH, () => this.#sql.write(OF_ENDED, [])));
  }
}
