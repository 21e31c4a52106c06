import type { Sql } from '../../data/sql.ts';
import type { ScimQuery } from './scim-query.ts';
import { type Attributes, conditionOf, orderBy } from './scim-sql.ts';

/** A page of a directory, and how many there are. */
export interface ScimPage<Row> {
  total: number;
  startIndex: number;
  rows: Row[];
}

/**
 * Reads a page in at most two statements, whatever its size.
 * @param most rows in a page
 */
export async function readList<Row extends object>(
  sql: Sql,
  { from, columns, attributes, most }: { from: string; columns: string; attributes: Attributes; most: number },
  orgId: string,
  query: ScimQuery,
): Promise<ScimPage<Row>> {
  const values: unknown[] = [orgId];
  const filter = query.filter === null ? '' : ` and ${conditionOf(query.filter, attributes, values)}`;
  const where = `s.org_id = $1${filter}`;
  const order = orderBy(query.sortBy, query.sortOrder, attributes, 's.id');
  const { startIndex } = query;
  const limit = Math.min(query.count ?? most, most);
  // there are as many texts as filters and orders
  const isChosen = query.filter !== null || query.sortBy !== null;
  const read = <Read extends object>(text: string, given: unknown[]) =>
    isChosen ? sql.readUnnamed<Read>(text, given) : sql.read<Read>(text, given);
  const [counted] = await read<{ total: number }>(`select count(*)::int as total from ${from} where ${where}`, values);
  const total = counted?.total ?? 0;
  if (limit === 0 || startIndex > total) return { total, startIndex, rows: [] };
  const text = `select ${columns} from ${from} where ${where} order by ${order}
    limit $${values.length + 1} offset $${values.length + 2}`;
  return { total, startIndex, rows: await read<Row>(text, [...values, limit, startIndex - 1]) };
}
