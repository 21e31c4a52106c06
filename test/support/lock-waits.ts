import type pg from 'pg';

type Asked = Pick<pg.ClientBase, 'query'> | Pick<pg.Pool, 'query'>;

/**
 * How many sessions of a database wait for a lock. It may be asked within a transaction: there, PostgreSQL would list
 * the sessions of its first look again and again, and none that was opened since.
 */
export async function lockWaits(client: Asked): Promise<number> {
  await client.query('select pg_stat_clear_snapshot()');
  const { rows } = await client.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`,
  );
  return rows[0]!.n;
}
