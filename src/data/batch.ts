import type { Write } from './writes.ts';

/**
 * The pending writes of a change, grouped into statements. Parts of one statement see the rows as they were before it
 * and run in no particular order, so a write that depends on an earlier one goes into the next statement.
 */
export class Batch {
  #statements: Write[][] = [];

  get isEmpty(): boolean {
    return this.#statements.length === 0;
  }

  add(write: Write): void {
    const last = this.#statements.at(-1);
    if (last && goTogether(last, write)) last.push(write);
    else this.#statements.push([write]);
  }

  /** The statements, in their order; the batch is empty afterwards. */
  take(): Write[][] {
    const statements = this.#statements;
    this.#statements = [];
    return statements;
  }
}

function goTogether(before: readonly Write[], write: Write): boolean {
  if (write.does === 'record') return true;
  const endsStatement = ({ does }: Write) => does === 'delete' || does === 'other';
  if (before.some(endsStatement) || (write.settle && before.some(({ settle }) => settle))) return false;
  switch (write.does) {
    case 'lock':
      return before.every(({ does }) => does === 'lock');
    case 'insert':
      return before.every(({ does, table }) => does === 'insert' || table !== write.table);
    case 'update':
      return !write.orElse || before.every(({ does, orElse }) => does === 'lock' || !orElse)
        ? before.every(({ table }) => table !== write.table)
        : false;
    case 'delete':
      // removing a row may cascade to other rows
      return before.every(({ does }) => does === 'lock');
    case 'other':
      return false;
  }
}
