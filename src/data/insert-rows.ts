import { type NewRow, type TableName, tableOf } from './tables.ts';
import type { Statement } from './writes.ts';

/**
 * Inserts any number of rows of one table with one text, which depends on the columns of the first row alone. Rows have
 * the same properties; `undefined` is written as null.
 */
export function insertRows<Name extends TableName>(name: Name, rows: readonly NewRow<Name>[]): Statement {
  const { columns } = tableOf(name);
  const properties = Object.keys(rows[0] ?? {});
  const named = properties.map((property) => columns[property]!);
  const values = rows.map((row) =>
    Object.fromEntries(properties.map((property, at) => [named[at], row[property as keyof NewRow<Name>] ?? null])),
  );
  return {
    text: `insert into ${name} (${named.join(', ')}) select ${named.map((column) => `r.${column}`).join(', ')}
      from jsonb_populate_recordset(null::${name}, $1::jsonb) r`,
    values: [JSON.stringify(values)],
  };
}
