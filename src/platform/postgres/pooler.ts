import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { LACKING_LIMITS, LIMITS_OF_ROLE } from './session-limits.ts';
import { CONNECT_TIMEOUT_MS } from './wait-for-database.ts';

/** A pooler that cannot be used as it is set up; the message says what to do. */
export class PoolerError extends Error {
  override readonly name = 'PoolerError';
}

// what the driver's types leave out
interface WithProcess {
  readonly processID: number | null;
}

/** As many as a pooler may have kept open from before. */
const SESSIONS_AT_MOST = 50;
/** The advisory lock of nodes that start at once: PostgreSQL refuses to alter one role twice at a time. */
const ROLE_LOCK = 72_707_370;

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'pooler check',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // a broken connection fails its statement, which says so
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * Whether a pooler stands before the database and may give each transaction another session: it then tells a number of
 * its own where the server tells that of its process.
 */
export const isPooled = (url: string): Promise<boolean> =>
  withClient(url, async (client) => {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return rows[0]!.pid !== (client as unknown as WithProcess).processID;
  });

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code);

/** A statement of that name is there already, or is not there. */
const LOST = /^(42P05|26000)$/;
const ROUNDS = 3;

/**
 * Sees that a pooler keeps transactions and prepared statements.
 *
 * It is tried with clients that prepare different statements by the same name and meet each other's sessions: each
 * has its own statement only where the pooler tells them apart.
 * @param setting has the URL
 * @throws PoolerError that says in a sentence what the pooler loses and what to do
 */
export async function refuseUnfitPooler(url: string, setting = 'DATABASE_URL'): Promise<void> {
  const name = `probe_${randomBytes(6).toString('hex')}`;
  const ask = async (client: pg.Client, number: number): Promise<void> => {
    await client.query('begin');
    const { rows } = await client.query<{ number: number }>({ name, text: `select ${number} as number` });
    await client.query('commit');
    if (rows[0]?.number !== number) throw new PoolerError(losesStatements(setting));
  };
  try {
    await withClient(url, (first) =>
      withClient(url, async (second) => {
        for (let round = 0; round < ROUNDS; round++) {
          await ask(first, 1);
          await ask(second, 2);
        }
      }),
    );
  } catch (error) {
    if (LOST.test(codeOf(error))) throw new PoolerError(losesStatements(setting), { cause: error });
    if (/statement pooling mode/.test(String(error)))
      throw new PoolerError(
        `The pooler of ${setting} allows no transactions: set its pool_mode to transaction, or let ${setting} ` +
          'lead to the database itself.',
        { cause: error },
      );
    throw error;
  }
}

const losesStatements = (setting: string): string =>
  `The pooler of ${setting} loses prepared statements: use PgBouncer 1.21 or newer with max_prepared_statements ` +
  `above 0 (Debian 12 has 1.18, Debian 13 has 1.24), or let ${setting} lead to the database itself.`;

/**
 * Refuses to start with a pooler before a replica that is not fit. A replica that is away does not hold up a start:
 * its pooler is tried before the first read.
 * @throws PoolerError
 */
export async function refuseUnfitReplicaPoolers(urls: readonly string[]): Promise<void> {
  const outcomes = await Promise.allSettled(
    urls.map(async (url) => {
      if (await isPooled(url)) await refuseUnfitPooler(url, READ_URLS);
    }),
  );
  for (const outcome of outcomes)
    if (outcome.status === 'rejected' && outcome.reason instanceof PoolerError) throw outcome.reason;
}

/** The setting that has the addresses of replicas. */
export const READ_URLS = 'DATABASE_READ_URLS';

/**
 * Sees that a pooler before a replica is fit and that the session which it gives has the limits. They are settings of
 * the role on the primary, which the replica gets a moment later: a session that began before is ended.
 * @throws PoolerError when it is not fit, or not yet
 */
export async function fitReplicaPooler(url: string, primaryUrl: string): Promise<void> {
  await refuseUnfitPooler(url, READ_URLS);
  await keepLimits(primaryUrl);
  const lacking = await withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(LACKING_LIMITS);
    if (rows.length > 0) await endSession(client);
    return rows;
  });
  if (lacking.length > 0)
    throw new PoolerError(
      `A pooler of ${READ_URLS} gives sessions without the settings of the role of DATABASE_URL: it is tried again. ` +
        'If that goes on, let it sign in with this role, and take what overrides them out of its connect_query.',
    );
}

/**
 * Sees that each session that the pooler gives has the limits, which it makes settings of the role in this database
 * where they are not. The database has been migrated before.
 * @throws PoolerError when the pooler overrides them
 */
export async function keepLimits(url: string): Promise<void> {
  for (let session = 0; session < SESSIONS_AT_MOST; session++) {
    const lacking = await withClient(url, async (client) => {
      const { rows } = await client.query<{ name: string }>(LACKING_LIMITS);
      if (rows.length > 0 && session === 0) await setForRole(client);
      // this one began before the role had them: the pooler opens another in its place
      if (rows.length > 0) await endSession(client);
      return rows;
    });
    if (lacking.length === 0) return;
  }
  throw new PoolerError(
    'The pooler of DATABASE_URL gives sessions without the settings of their role in this database (see ' +
      'docs/operate/scale-out.md): take what overrides them out of its connect_query, and say RECONNECT in its ' +
      'console.',
  );
}

async function setForRole(client: pg.Client): Promise<void> {
  await client.query('begin');
  await client.query('select pg_advisory_xact_lock($1)', [ROLE_LOCK]);
  // loads the extension: before that, only a superuser may name its settings
  await client.query(`select word_similarity('a', 'a')`);
  const { rows } = await client.query<{ text: string }>(LIMITS_OF_ROLE);
  for (const { text } of rows) await client.query(text);
  await client.query('commit');
}

/** Ends the session that the pooler gives us now, so nobody else has it. */
async function endSession(client: pg.Client): Promise<void> {
  try {
    await client.query('select pg_terminate_backend(pg_backend_pid())');
  } catch (error) {
    if (!/^(57P01|08...)$/.test(codeOf(error)) && !/Connection terminated/.test(String(error))) throw error;
  }
}
