import { type Tables, tables } from '../generated/tables.ts';

/** A table of the Prisma schema. */
export type TableName = keyof Tables;
/** A row as Prisma reads it. */
export type Row<Name extends TableName> = Tables[Name]['row'];
/**
 * The values of a new row: at least every column that is not nullable and has no default. `undefined` uses the default.
 */
export type NewRow<Name extends TableName> = Tables[Name]['given'];
/** Values of some columns: what an update sets, or the condition on rows. `undefined` omits a column. */
export type Columns<Name extends TableName> = Partial<Tables[Name]['given']>;

/** What statements need to know about a table. */
export interface Table {
  name: TableName;
  /** Its columns, by property. */
  columns: Readonly<Record<string, string>>;
  /** Its properties, in the order of `selected`. */
  properties: readonly string[];
  /** Properties that contain JSON. */
  json: ReadonlySet<string>;
  /** Properties that are never `null`. */
  required: ReadonlySet<string>;
  /** The column with the time of the last change. */
  touched: string | null;
  /** Its columns, of a row `t`. */
  selected: string;
  /** The same, named as its properties. */
  named: string;
}

/** The tables, in the order of the Prisma schema. */
export const tableNames = Object.keys(tables) as TableName[];

/** The table with the name of a resource, which is its plural; `null` when there is none. */
export function tableNamed(word: string): TableName | null {
  const name = `${word}s`.replace(/ys$/, 'ies');
  return Object.hasOwn(tables, name) ? (name as TableName) : null;
}

const known = new Map<TableName, Table>();

/** The description of a table, built on first use. */
export function tableOf(name: TableName): Table {
  const found = known.get(name);
  if (found) return found;
  const { columns, json, required, touched } = tables[name];
  const selected = Object.values(columns).map((column) => `t.${column}`);
  const named = Object.entries(columns).map(([property, column]) => `t.${column} as "${property}"`);
  const table = {
    name,
    columns,
    properties: Object.keys(columns),
    json: new Set<string>(json),
    required: new Set<string>(required),
    touched,
    selected: selected.join(', '),
    named: named.join(', '),
  };
  known.set(name, table);
  return table;
}
