import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from '../../generated/prisma/client.ts';
import type { Logger } from '../logger.ts';
import { rememberStatements } from './pooled-statements.ts';
import { Replicas } from './replicas.ts';
import { SET_LIMITS } from './session-limits.ts';
import { recordStatements } from './statement-span.ts';
import { Transaction } from './transaction.ts';
import { refuseUnreplicated } from './unreplicated-commits.ts';
import { CONNECT_TIMEOUT_MS, IS_REPLICA } from './wait-for-database.ts';

/** Access to the database: Prisma, and for hand-written SQL the connections below it. */
export interface Database {
  /** Without a pooler. */
  readonly url: string;
  readonly pool: pg.Pool;
  /** The connections of jobs: those of `pool`, or a few that lead past a pooler. */
  readonly directPool: pg.Pool;
  /** Where reads may go instead; `null` without replicas. */
  readonly replicas: Replicas | null;
  readonly prisma: PrismaClient;
  /** Runs work in its own transaction. Anything that it has not committed at its end is rolled back. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** Waits for running statements, then closes all connections. */
  close(): Promise<void>;
}

/** Where the database is. */
export interface DatabasePlace {
  url: string;
  /**
   * Set where a pooler stands at `url`, which gives each transaction another session: the limits of sessions are then
   * settings of the role (`keepLimits`). Leads past it, or is `url`.
   */
  pooled?: { directUrl: string } | undefined;
}

/** The database and its connection limit. */
export interface DatabaseOptions extends DatabasePlace {
  /** Replicas of the database. */
  readUrls?: readonly string[] | undefined;
  poolSize: number;
  /** How long whoever needs a connection waits for one. Default: 5 s. */
  connectionWaitMs?: number;
  logger: Logger;
  /** Whether traces are recorded: each statement is then a part of what asks for it. */
  isTraced?: boolean | undefined;
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
  pooled,
  readUrls = [],
  poolSize,
  connectionWaitMs = CONNECT_TIMEOUT_MS,
  logger,
  isTraced = false,
  applicationName = 'platform-management-api',
}: DatabaseOptions): Database {
  const all = { connectionWaitMs, logger, isTraced, applicationName };
  const pool = openPool({ ...all, url, size: poolSize, ownsSessions: !pooled });
  const directUrl = pooled?.directUrl ?? url;
  const directPool =
    directUrl === url ? pool : openPool({ ...all, url: directUrl, size: DIRECT_CONNECTIONS, ownsSessions: true });
  const replicas =
    readUrls.length === 0
      ? null
      : new Replicas({
          urls: readUrls,
          primaryUrl: url,
          logger,
          openPool: (at, ownsSessions) => openPool({ ...all, url: at, size: poolSize, ownsSessions, isReplica: true }),
        });
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });
  return {
    url: directUrl,
    pool,
    directPool,
    replicas,
    prisma,
    transaction: (work) => inTransaction(pool, work),
    close: async () => {
      await replicas?.close();
      await prisma.$disconnect();
      await pool.end();
      if (directPool !== pool) await directPool.end();
    },
  };
}

/** Runs work in a transaction of its own: see {@link Database.transaction}. */
export async function inTransaction<T>(pool: pg.Pool, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  const transaction = new Transaction(pool);
  try {
    return await work(transaction);
  } finally {
    await transaction.end();
  }
}

/** As many as the queue of jobs uses at once. */
const DIRECT_CONNECTIONS = 4;

interface PoolOptions {
  url: string;
  size: number;
  connectionWaitMs: number;
  /** Whether a session is ours as long as its connection, so that it can be set up when it opens. */
  ownsSessions: boolean;
  /** Whether the server may be one that follows another. Default: it must take changes. */
  isReplica?: boolean;
  logger: Logger;
  isTraced: boolean;
  applicationName: string;
}

function openPool(options: PoolOptions): pg.Pool {
  const { url, size, connectionWaitMs, ownsSessions, isReplica = false, logger, isTraced, applicationName } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    application_name: applicationName,
    connectionTimeoutMillis: connectionWaitMs,
    idleTimeoutMillis: 60_000,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it, which its types do not know
    onConnect: async (client) => {
      client.on('error', ignoreConnectionError);
      refuseUnreplicated(client);
      if (ownsSessions) await setUp(client, isReplica);
      else rememberStatements(client);
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
  if (isTraced) recordStatements(pool);
  return pool;
}

/**
 * During a failover an address may lead to a server that still follows another: what it has may be old, and it takes no
 * changes.
 */
async function setUp(client: pg.ClientBase, mayBeReplica: boolean): Promise<void> {
  const { rows } = await client.query<{ isReplica: boolean }>(SET_LIMITS);
  if (!mayBeReplica && rows[0]!.isReplica) throw Object.assign(new Error(IS_REPLICA), { code: '57P03' });
}

/**
 * A connection that breaks while in use may emit more than one error, and an error event without a listener would end
 * the process. Its running statements and the next one fail, and these report the fault.
 */
const ignoreConnectionError = (): void => undefined;
