import type { Owner } from '../../core/owner.ts';
import type { Sql } from '../../data/sql.ts';

/** Removes what is past its time, as its owners declare it. @returns rows that were removed or emptied */
export async function enforceRetention(sql: Sql, owners: readonly Owner[]): Promise<number> {
  for (const owner of owners) await owner.removeFiles?.();
  let rows = 0;
  for (const rule of owners.flatMap(({ retention }) => retention ?? [])) rows += await sql.write(rule, []);
  return rows;
}
