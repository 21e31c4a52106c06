import { type Columns, type Row, type TableName, tableOf } from './tables.ts';
import { conditionOf, type Statement } from './writes.ts';

/** Runs queries: a change, or the pool outside of one. */
export interface QueryRunner {
  query<R extends object>(statement: Statement): Promise<R[]>;
}

/** The row that has these values; `null` when there is none. */
export async function findRow<Name extends TableName>(
  db: QueryRunner,
  name: Name,
  where: Columns<Name>,
): Promise<Row<Name> | null> {
  const [row] = await db.query<Row<Name>>(selectOf(name, where));
  return row ?? null;
}

/** The rows `t` that match a condition. */
export async function findRows<Name extends TableName>(
  db: QueryRunner,
  name: Name,
  { text, values }: Statement,
): Promise<Row<Name>[]> {
  return db.query<Row<Name>>({ text: `select ${tableOf(name).named} from ${name} t where ${text}`, values });
}

/** Reads the rows that have these values. */
export function selectOf<Name extends TableName>(name: Name, where: Columns<Name>): Statement {
  const table = tableOf(name);
  const { text, values } = conditionOf(table, where);
  return { text: `select ${table.named} from ${name} t where ${text(1)}`, values };
}
