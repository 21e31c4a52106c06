import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../../src/platform/postgres/database.ts';
import type { Transaction } from '../../src/platform/postgres/transaction.ts';

/** The transaction that what runs was begun in. What goes on after its end, such as a timer, is not inside any more. */
const inTransaction = new AsyncLocalStorage<{ isOpen: boolean }>();

/** Looks at the database from outside, while a test holds a transaction of its own. */
export const fromOutside = <T>(work: () => T): T => inTransaction.exit(work);

/**
 * The same database, but what asks the pool for a second connection while its own transaction holds one fails. Under
 * load both would wait for ever.
 */
export function withSingleConnections(database: Database): Database {
  const { pool } = database;
  for (const name of ['query', 'connect'] as const) {
    const original = pool[name].bind(pool) as (...args: unknown[]) => unknown;
    Object.defineProperty(pool, name, {
      configurable: true,
      writable: true,
      value: (...args: unknown[]) => {
        if (inTransaction.getStore()?.isOpen)
          throw new Error(`The pool is asked inside a transaction: ${textOf(args[0])}`);
        return original(...args);
      },
    });
  }
  const prisma = new Proxy(database.prisma, {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver);
      if (key !== '$transaction') return value;
      return (work: unknown, options: unknown) => {
        const marked = typeof work === 'function' ? (...args: unknown[]) => inside(() => work(...args)) : work;
        return (value as (...args: unknown[]) => unknown).call(target, marked, options);
      };
    },
  });
  const transaction: Database['transaction'] = (work) =>
    database.transaction((own) => inside(() => work(outside(own))));
  return { ...database, prisma, transaction };
}

async function inside<T>(work: () => T | Promise<T>): Promise<T> {
  const transaction = { isOpen: true };
  try {
    return await inTransaction.run(transaction, work);
  } finally {
    transaction.isOpen = false;
  }
}

/** A transaction that takes its own connection from the pool, and nothing else. */
function outside(own: Transaction): Transaction {
  return new Proxy(own, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => inTransaction.exit(() => value.apply(target, args) as unknown);
    },
  });
}

function textOf(query: unknown): string {
  if (typeof query === 'string') return query;
  return (query as { text?: string } | undefined)?.text ?? 'a connection';
}
