import { systemCaller } from '../access/system-caller.ts';
import { scheduled, type Task } from '../core/tasks.ts';
import { inBatches } from './batches.ts';
import type { Changes, Tx } from './changes.ts';

const BATCH = 100;

/** What is told of rows when it is due. */
export interface NoticesOptions<Due extends object> {
  changes: Changes;
  /** Names the task, and the service as the one who tells. */
  name: string;
  everySeconds: number;
  /** The rows that something is due of, until the transaction has told it: `select … from … t … order by …`. */
  due: string;
  /** The row of that to be held. */
  of: string;
  /** Marks the row as told, and tells. */
  tell: (tx: Tx, row: Due) => Promise<void>;
}

/**
 * Tells of rows when it is due, once each: nodes that look at the same time share them, each row is held by the one
 * that tells of it.
 */
export class Notices<Due extends object> {
  readonly tasks: readonly Task[];
  readonly #options: NoticesOptions<Due>;

  constructor(options: NoticesOptions<Due>) {
    this.#options = options;
    this.tasks = [scheduled(options.name, options, () => this.send())];
  }

  /** Tells all that is due. @returns of how many rows */
  async send(): Promise<number> {
    const { changes, name, due, of, tell } = this.#options;
    const text = `${due} limit ${BATCH} for update of ${of} skip locked`;
    return inBatches(BATCH, () =>
      changes.run(systemCaller(name), async (tx) => {
        const rows = await tx.query<Due>({ text, values: [] });
        for (const row of rows) await tell(tx, row);
        return rows.length;
      }),
    );
  }
}
