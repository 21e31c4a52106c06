import { inBatches } from '../../data/batches.ts';
import type { Sql } from '../../data/sql.ts';
import type { Owner } from '../../kernel/owner.ts';
import { RETENTION_OF_COUNTS } from './kept-counts.ts';
import { RETENTION_OF_RUNS } from './runs.ts';

/** Sums that one statement removes. */
const BATCH = 10_000;

// those of an organization that ends for good go before it, while its row still says so
const OF_ENDED = `delete from execution_sums where (org_id, scope_id, span, start, slot) in (
  select s.org_id, s.scope_id, s.span, s.start, s.slot from organizations o
  join execution_sums s on s.org_id = o.id where o.deleted_at < now() - interval '30 days' limit ${BATCH})`;

/** Removes the counts of places that are gone, and the sums of runs that are not told any more. */
export class HistoryRetention implements Owner {
  readonly retention = [RETENTION_OF_RUNS, ...RETENTION_OF_COUNTS];
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Removes the sums of runs of organizations that end for good. @returns how many */
  async removeParts(): Promise<number> {
    return inBatches(BATCH, () => this.#sql.write(OF_ENDED, []));
  }
}
