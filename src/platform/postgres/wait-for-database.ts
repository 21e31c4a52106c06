import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../logger.ts';

/** How long a connection may take to open. */
export const CONNECT_TIMEOUT_MS = 5_000;

export const IS_REPLICA = 'It follows another server, and takes no changes.';

/** The database is starting or shutting down: a retry makes sense. */
const AWAY = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', '57P01', '57P02', '57P03']);

/**
 * Waits until the database takes connections: services and their databases are often started together.
 * @throws Error with the reason, after the timeout, or at once when waiting would not help
 */
export async function waitForDatabase(url: string, logger: Logger, timeoutSeconds = 30): Promise<void> {
  const deadline = Date.now() + timeoutSeconds * 1_000;
  for (;;) {
    const problem = await tryConnection(url);
    if (!problem) return;
    if (!AWAY.has(problem.code) || Date.now() > deadline)
      throw new Error(`The database does not answer: ${problem.reason}`);
    logger.warn({ reason: problem.reason }, 'the database does not answer yet');
    await delay(1_000);
  }
}

async function tryConnection(url: string): Promise<{ code: string; reason: string } | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  try {
    await client.connect();
    const { rows } = await client.query<{ isReplica: boolean }>('select pg_is_in_recovery() as "isReplica"');
    // in the middle of a failover
    return rows[0]!.isReplica ? { code: '57P03', reason: IS_REPLICA } : undefined;
  } catch (error) {
    // `localhost` resolves to two addresses: the error is then an aggregate without a message
    const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
    if (!(cause instanceof Error)) throw error;
    // the driver's own timeout has no code
    const code = cause.message === 'timeout expired' ? 'ETIMEDOUT' : '';
    return { code: 'code' in cause ? String(cause.code) : code, reason: cause.message };
  } finally {
    await client.end();
  }
}
