import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import type pg from 'pg';

/** SQL statements that were sent while something ran. */
export interface QueryLog {
  /**
   * Texts of the statements that `work` sent, in order, without those that background tasks send in between. It gets
   * the list, which grows.
   */
  during(work: (sent: readonly string[]) => Promise<unknown>): Promise<string[]>;
  /**
   * Only those that `work` itself sends, and the requests that it injects: whatever else the process does meanwhile is
   * not counted, however long it takes. What comes over a connection, or is done by a job, is nobody's work here.
   */
  by(work: () => Promise<unknown>): Promise<string[]>;
}

const BACKGROUND = new RegExp(
  [
    /^insert into activity/,
    /update (?:api_tokens t|sessions s) set last_used_at/,
    /^insert into nodes/,
    /from events e where/,
    /pg_snapshot_xmin|pg_current_snapshot/,
    /fold_activity/,
    /^select 1 from activity_fold/,
    /^insert into storage_samples/,
    /^set /,
    /resource_counts.*delete/,
    /where .*"?bucket_status"? = /,
    /\bjobs"?\./,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Files that share an app share its pool: its connections are listened to once. */
const logs = new WeakMap<pg.Pool, QueryLog>();

/**
 * Writes down every statement that goes through a pool, whoever sends it: hand-written SQL and Prisma share the pool.
 */
export function logQueries(pool: pg.Pool): QueryLog {
  const log = logs.get(pool) ?? listenTo(pool);
  logs.set(pool, log);
  return log;
}

/** Whose work runs. */
const working = new AsyncLocalStorage<string[]>();

/** Who waits for a connection goes on in its own context, not in that of whoever gives one back. */
function keepContext(pool: pg.Pool): void {
  type Callback = Parameters<pg.Pool['connect']>[0];
  const connect = pool.connect.bind(pool) as (callback?: Callback) => unknown;
  Object.defineProperty(pool, 'connect', {
    configurable: true,
    writable: true,
    value: (callback?: Callback) => (callback ? connect(AsyncResource.bind(callback)) : connect()),
  });
}

function listenTo(pool: pg.Pool): QueryLog {
  let current: string[] | null = null;
  const seen = new WeakSet<pg.PoolClient>();
  keepContext(pool);
  pool.on('acquire', (client) => {
    if (seen.has(client)) return;
    seen.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    Object.defineProperty(client, 'query', {
      value: (...args: unknown[]) => {
        const [first] = args;
        const text = typeof first === 'string' ? first : ((first as { text?: string }).text ?? '');
        const own = working.getStore();
        if ((current || own) && !BACKGROUND.test(text)) {
          current?.push(text);
          own?.push(text);
        }
        return query(...args);
      },
    });
  });
  return {
    async during(work) {
      const statements: string[] = (current = []);
      try {
        await work(statements);
      } finally {
        current = null;
      }
      return statements;
    },
    async by(work) {
      const statements: string[] = [];
      await working.run(statements, work);
      return [...statements]; // what comes after its end is not of it
    },
  };
}
