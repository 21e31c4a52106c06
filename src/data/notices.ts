import { systemCaller } from '../kernel/system-caller.ts';
import { scheduled, type Task } from '../kernel/tasks.ts';
import { inBatches } from './batches.ts';
import type { Changes } from './changes.ts';
import type { Tx } from './tx.ts';

const BATCH = 100;

/** How notices about rows are sent when they are due. */
export interface NoticesOptions<Due extends { id: string }> {
  changes: Changes;
  /** The name of the task, and of the service as the actor. */
  name: string;
  everySeconds: number;
  /** The rows with a notice due, until the transaction has sent it: `select t.id, … from … t … order by …`. */
  due: string;
  /** The row in it to lock. */
  of: string;
  /** Marks the row as notified, and sends the notice. */
  tell: (tx: Tx, row: Due) => Promise<void>;
}

/**
 * Sends notices about rows when they are due, once each. Nodes that look at the same time share the work: each row is
 * locked by the node that sends its notice.
 */
export class Notices<Due extends { id: string }> {
  readonly tasks: readonly Task[];
  readonly #options: NoticesOptions<Due>;

  constructor(options: NoticesOptions<Due>) {
    this.#options = options;
    this.tasks = [scheduled(options.name, options, () => this.send())];
  }

  /** Sends all notices that are due. @returns the number of rows told of */
  async send(): Promise<number> {
    const { changes, name, due, of, tell } = this.#options;
    const text = `${due} limit ${BATCH} for update of ${of} skip locked`;
    // Another node may have told of a row after this statement began. PostgreSQL then looks again at conditions on the
    // row itself, but not at what a subquery found: it gives the row, though it is not due. The next statement sees it
    // as it is.
    const stillDue = `select * from (${due}) due where due.id = any($1)`;
    let count = 0;
    await inBatches(BATCH, async () => {
      const batch = await changes.run(systemCaller(name), async (tx) => {
        const locked = await tx.query<Due>({ text, values: [] });
        if (locked.length === 0) return { locked, rows: [] };
        const rows = await tx.query<Due>({ text: stillDue, values: [locked.map(({ id }) => id)] });
        for (const row of rows) await tell(tx, row);
        return { locked, rows };
      });
      count += batch.rows.length;
      // however few of a full batch are still due, others may wait behind it
      return batch.locked.length;
    });
    return count;
  }
}
