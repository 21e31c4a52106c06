import { createHash } from 'node:crypto';
import type { Sql } from './sql.ts';

const DATABASE = `select oid::text, has_function_privilege('pg_catalog.pg_control_system()', 'execute') as "mayAsk"
  from pg_database where datname = current_database()`;
// a text of its own: PostgreSQL checks the right to a function even where a condition says that it is not called
const CLUSTER = 'select system_identifier::text as cluster from pg_catalog.pg_control_system()';

/**
 * What tells this database from one that was restored from it, whose transactions count anew: without it, a position
 * from before a restore would look like one that the new database has reached. All nodes over one database have the
 * same, and a standby that takes over keeps it. A role that may not ask for the cluster tells databases of one cluster
 * apart, and those of others mostly.
 */
export async function readEpoch(sql: Pick<Sql, 'read'>): Promise<string> {
  const [database] = await sql.read<{ oid: string; mayAsk: boolean }>(DATABASE, []);
  const { oid, mayAsk } = database!;
  const [asked] = mayAsk ? await sql.read<{ cluster: string }>(CLUSTER, []) : [];
  const text = `${asked?.cluster ?? ''}/${oid}`;
  return createHash('sha256').update(text).digest('hex').slice(0, 6);
}
