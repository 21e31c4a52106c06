import type { Write } from './writes.ts';

/**
 * The writes of a change that wait to be sent, as the statements that they will be. Parts of one statement see the rows
 * as they were before it and come in no order, so what depends on what went before goes into the next one.
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
      // what is removed takes other rows along
      return before.every(({ does }) => does === 'lock');
    case 'other':
      return false;
  }
}
