import type pg from 'pg';

/** SQL statements that were sent while something ran. */
export interface QueryLog {
  /**
   * Texts of the statements that `work` sent, in order, without those that background tasks send in between. It gets
   * the list, which grows.
   */
  during(work: (sent: readonly string[]) => Promise<unknown>): Promise<string[]>;
}

const BACKGROUND = new RegExp(
  [
    /^insert into activity/,
    /update api_tokens t set last_used_at/,
    /from events e where/,
    /pg_snapshot_xmin|pg_current_snapshot/,
    /fold_activity/,
    /^select 1 from activity_fold/,
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

function listenTo(pool: pg.Pool): QueryLog {
  let current: string[] | null = null;
  const seen = new WeakSet<pg.PoolClient>();
  pool.on('acquire', (client) => {
    if (seen.has(client)) return;
    seen.add(client);
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    Object.defineProperty(client, 'query', {
      value: (...args: unknown[]) => {
        const [first] = args;
        const text = typeof first === 'string' ? first : ((first as { text?: string }).text ?? '');
        if (current && !BACKGROUND.test(text)) current.push(text);
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
  };
}
