import type { Owner } from '../../core/owner.ts';
import type { Sql } from '../../data/sql.ts';

/** Removes rows past their retention, as their owners declare it. @returns the number of rows removed or emptied */
export async function enforceRetention(sql: Sql, owners: readonly Owner[]): Promise<number> {
  for (const owner of owners) await owner.endElsewhere?.();
  for (const owner of owners) await owner.removeFiles?.();
  for (const owner of owners) await owner.removeParts?.();
  let rows = 0;
  for (const rule of owners.flatMap(({ retention }) => retention ?? [])) rows += await sql.write(rule, []);
  return rows;
}
