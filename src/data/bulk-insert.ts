import { type NewRow, type TableName, tableOf } from './tables.ts';
import type { Statement, Write } from './writes.ts';

/**
 * One prepared text that inserts any number of rows, with one array per column: the planning cost does not grow with
 * the rows.
 */
export interface BulkInsert<Row> {
  text: string;
  /** The parameters of the text for some rows. */
  parameters(rows: readonly Row[]): unknown[][];
  /**
   * The same as a part of a change, for at least one row. A single row is written as plain values, which costs half.
   */
  write(rows: readonly Row[]): Write;
}

/** @param columns PostgreSQL type by column; names of table, columns and types come from code only */
export function bulkInsert<Column extends string>(
  table: string,
  columns: Readonly<Record<Column, string>>,
): BulkInsert<Record<Column, unknown>> {
  const names = Object.keys(columns) as Column[];
  const into = `insert into ${table} (${names.join(', ')}) select`;
  const listed = (suffix: '' | '[]', first: number) =>
    names.map((name, index) => `$${first + index}::${columns[name]}${suffix}`).join(', ');
  const many = (first: number) => `${into} * from unnest(${listed('[]', first)})`;
  const parameters = (rows: readonly Record<Column, unknown>[]) => names.map((name) => rows.map((row) => row[name]));
  return {
    text: many(1),
    parameters,
    write: (rows) => {
      const [only] = rows.length === 1 ? rows : [];
      return {
        shape: `record ${table} ${only ? 'one' : 'many'}`,
        text: (first, when) => `${only ? `${into} ${listed('', first)}` : many(first)}${when ? ` where ${when}` : ''}`,
        values: only ? names.map((name) => only[name]) : parameters(rows),
        does: 'record',
        table: null,
      };
    },
  };
}

/**
 * The same for rows of a table as they are given to it. A value of `undefined` is written as null.
 * @param types PostgreSQL type by property: of all properties that the rows have
 */
export function bulkInsertOf<Name extends TableName, Property extends keyof NewRow<Name> & string>(
  name: Name,
  types: Readonly<Record<Property, string>>,
): (rows: readonly NewRow<Name>[]) => Statement {
  const { columns, json } = tableOf(name);
  const properties = Object.keys(types) as Property[];
  const { text } = bulkInsert<string>(name, Object.fromEntries(properties.map((one) => [columns[one]!, types[one]])));
  const stored = (row: NewRow<Name>, property: Property): unknown => {
    const value: unknown = row[property] ?? null;
    return value !== null && json.has(property) ? JSON.stringify(value) : value;
  };
  return (rows) => ({ text, values: properties.map((property) => rows.map((row) => stored(row, property))) });
}
