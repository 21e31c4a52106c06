/** One prepared text that inserts any number of rows, a column as an array each: what it costs to plan does not grow with the rows. */
export interface BulkInsert<Row> {
  text: string;
  /** The rows as the parameters of the text. */
  parameters(rows: readonly Row[]): unknown[][];
}

/** @param columns PostgreSQL type by column; names of table, columns and types come from code only */
export function bulkInsert<Column extends string>(
  table: string,
  columns: Readonly<Record<Column, string>>,
): BulkInsert<Record<Column, unknown>> {
  const names = Object.keys(columns) as Column[];
  const arrays = names.map((name, index) => `$${index + 1}::${columns[name]}[]`).join(', ');
  return {
    text: `insert into ${table} (${names.join(', ')}) select * from unnest(${arrays})`,
    parameters: (rows) => names.map((name) => rows.map((row) => row[name])),
  };
}
