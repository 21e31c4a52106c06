import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import type { Logger } from './logger.ts';

// As a statement and not as parameters of the connection, because PgBouncer refuses to connect with parameters that it does not know.
const SESSION_LIMITS = `set statement_timeout = '30s'; set lock_timeout = '10s'; set idle_in_transaction_session_timeout = '30s'`;
const CONNECT_TIMEOUT_MS = 5_000;

/** Access to the database: Prisma, and for hand-written SQL the connections below it. */
export interface Database {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly prisma: PrismaClient;
  /** Waits for statements that run, then ends all connections. */
  close(): Promise<void>;
}

/** Which database, and how many connections to it at most. */
export interface DatabaseOptions {
  url: string;
  poolSize: number;
  logger: Logger;
  /** Shown in `pg_stat_activity`. */
  applicationName?: string;
}

/**
 * Opens the pool that everything shares. Connects to nothing yet: a database that is away is an error of the first statement.
 * Statements end after 30 s, waits for a lock after 10 s, transactions that do nothing after 30 s, waits for a free connection after 5 s.
 */
export function openDatabase({ url, poolSize, logger, applicationName = 'platform-management-api' }: DatabaseOptions): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: 60_000,
    onConnect: async (client) => {
      await client.query(SESSION_LIMITS);
    },
    keepAlive: true,
  });
  // a connection that breaks while idle: the pool drops it by itself, and without a listener the process would end
  pool.on('error', (error) => logger.warn({ err: error }, 'an idle database connection broke'));
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });
  return {
    url,
    pool,
    prisma,
    close: async () => {
      await prisma.$disconnect();
      await pool.end();
    },
  };
}
