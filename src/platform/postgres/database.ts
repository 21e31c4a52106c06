import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../../generated/prisma/client.ts';
import type { Logger } from '../logger.ts';
import { recordStatements } from './statement-span.ts';
import { Transaction } from './transaction.ts';
import { CONNECT_TIMEOUT_MS } from './wait-for-database.ts';

// As a statement and not as connection parameters, because PgBouncer refuses connections with parameters that it does
// not know. PostgreSQL supports `transaction_timeout` since version 17.
// A word of a search is found if two fifths of its trigrams are: that allows two letters that were swapped, which the
// default of three fifths does not.
// Compiling a statement costs more than it saves where each takes milliseconds.
const SESSION_LIMITS = `set jit = off; set statement_timeout = '30s'; set lock_timeout = '10s';
  set idle_in_transaction_session_timeout = '30s'; set pg_trgm.word_similarity_threshold = 0.4;
  select set_config(name, '60s', false) from pg_settings where name = 'transaction_timeout'`;

/** Access to the database: Prisma, and for hand-written SQL the connections below it. */
export interface Database {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly prisma: PrismaClient;
  /** Runs work in its own transaction. Anything that it has not committed at its end is rolled back. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Waits for running statements, then closes all connections. */
  close(): Promise<void>;
}

/** The database and its connection limit. */
export interface DatabaseOptions {
  url: string;
  poolSize: number;
  logger: Logger;
  /** Shown in `pg_stat_activity`. */
  applicationName?: string;
}

/**
 * Opens the shared pool. It does not connect yet: if the database is unreachable, the first statement fails. Statements
 * end after 30 s, waits for a lock after 10 s, transactions that do nothing after 30 s and all others after 60 s,
 * because live events wait for them; waits for a free connection end after 5 s. Migrations use a separate connection
 * without these limits.
 */
export function openDatabase({
  url,
  poolSize,
  logger,
  applicationName = 'platform-management-api',
}: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 60_000,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it, which its types do not know
    onConnect: async (client) => {
      client.on('error', ignoreConnectionError);
      await client.query(SESSION_LIMITS);
    },
    keepAlive: true,
    // the statements of a change are pipelined, without waiting for the previous one
    pipeline: true,
  });
  // an idle connection broke: the pool removes it itself, but without a listener the process would end
  pool.on('error', (error) => {
    if (pool.ending) return; // the server was quicker to end a connection that was to end anyway
    // the pool adds the connection, which holds the text of every statement that it has prepared
    Object.defineProperty(error, 'client', { enumerable: false });
    logger.warn({ err: error }, 'an idle database connection broke');
  });
  recordStatements(pool);
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });
  return {
    url,
    pool,
    prisma,
    transaction: async (work) => {
      const transaction = new Transaction(pool);
      try {
        return await work(transaction);
      } finally {
        await transaction.end();
      }
    },
    close: async () => {
      await prisma.$disconnect();
      await pool.end();
    },
  };
}

/**
 * A connection that breaks while in use may emit more than one error, and an error event without a listener would end
 * the process. Its running statements and the next one fail, and these report the fault.
 */
const ignoreConnectionError = (): void => undefined;
