import type { QueryRunner } from './find-row.ts';
import type { LockableTable, RowLocks } from './locks.ts';
import { type Columns, type Row, tableOf } from './tables.ts';
import { conditionOf } from './writes.ts';

/** A table whose rows have a `resource_version`, which triggers raise. */
export type VersionedTable = {
  [Name in LockableTable]: Row<Name> extends { resourceVersion: number } ? Name : never;
}[LockableTable];

/** The row whose version is compared with the one that the caller expects. */
export interface VersionedRow<Name extends VersionedTable> {
  table: Name;
  /** The values that identify it. */
  key: Columns<Name>;
  /** SQL over the row `t`, if its version is more than its column. */
  version?: string;
}

/** The version of a row, which is locked until the transaction ends; `null` when there is no such row. */
export async function lockVersion<Name extends VersionedTable>(
  tx: QueryRunner & RowLocks,
  { table, key, version }: VersionedRow<Name>,
): Promise<number | null> {
  const row: { resourceVersion: number } | null = await tx.lock(table, key, 'no key update');
  if (!row || !version) return row?.resourceVersion ?? null;
  // what other tables add is read by a separate statement: the one that waited for the row would not see what was
  // written meanwhile
  const { text, values } = conditionOf(tableOf(table), key);
  const [sum] = await tx.query<{ version: number }>({
    text: `select ${version} as version from ${table} t where ${text(1)}`,
    values,
  });
  return sum?.version ?? null;
}
