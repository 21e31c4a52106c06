import { type Columns, type NewRow, type Row, type Table, type TableName, tableOf } from './tables.ts';

/** A row that is written together with the rest of its change, and known afterwards. */
export class Written<T> {
  #row: { value: T } | null = null;

  /** @throws Error before it is written */
  get row(): T {
    if (!this.#row) throw new Error('A row was read before it was written.');
    return this.#row.value;
  }

  settle(row: T): void {
    this.#row = { value: row };
  }
}

/** A part of a statement: its writes or locks on one table. */
export interface Write {
  /** Identifies its text: writes of one shape differ only in their values. */
  shape: string;
  /** Its SQL with parameters from `$first` on, applied only if the condition `when` is true. */
  text(first: number, when: string | null): string;
  values: readonly unknown[];
  /** What it does. Locks come before all writes, and no statement changes a row twice. */
  does: 'lock' | 'insert' | 'update' | 'delete' | 'other' | 'record';
  table: TableName | null;
  /** The error when it finds no row; absent if none is required. */
  orElse?: (() => Error) | undefined;
  /** Receives the row that it wrote, as the values of its table's properties. */
  settle?: ((values: readonly unknown[]) => void) | undefined;
}

/** A text with the values of its parameters. Texts come from code, so their number is bounded. */
export interface Statement {
  text: string;
  values: unknown[];
}

const texts = new WeakMap<TemplateStringsArray, string>();

/** SQL with values as its parameters. */
export function statement(strings: TemplateStringsArray, ...values: unknown[]): Statement {
  let text = texts.get(strings);
  if (text === undefined) {
    text = strings.reduce((sql, part, index) => `${sql}$${index}${part}`);
    texts.set(strings, text);
  }
  return { text, values };
}

/** A hand-written statement. It is sent on its own, with only the records of the change. */
export function write({ text, values }: Statement): Write {
  return { shape: text, text: () => text, values, does: 'other', table: null };
}

/** Inserts one row. */
export function insert<Name extends TableName>(
  name: Name,
  row: NewRow<Name>,
  { into }: Pick<SelectedRows<Name>, 'into'> = {},
): Write {
  const table = tableOf(name);
  const given = givenOf(table, row);
  const columns = given.columns.join(', ');
  const tail = into ? ` returning ${table.selected}` : '';
  return {
    shape: `insert ${name} ${columns}${tail}`,
    text: (first, when) => {
      const values = given.columns.map((_, index) => `$${first + index}`).join(', ');
      const source = when ? `select ${values} where ${when}` : `values (${values})`;
      return `insert into ${name} as t (${columns}) ${source}${tail}`;
    },
    values: given.values,
    does: 'insert',
    table: name,
    settle: settling(table, into),
  };
}

/** Rows selected by their values. */
export interface SelectedRows<Name extends TableName> {
  where: Columns<Name>;
  orElse?: (() => Error) | undefined;
  into?: Written<Row<Name>> | undefined;
}

/** Updates the selected rows. Without anything to set, they are only locked. */
export function update<Name extends TableName>(
  name: Name,
  set: Columns<Name>,
  { where, orElse, into }: SelectedRows<Name>,
): Write {
  const table = tableOf(name);
  const given = givenOf(table, set);
  const found = conditionOf(table, where);
  const returned = into ? table.selected : '1';
  const touch = table.touched ? [`${table.touched} = clock_timestamp()`] : [];
  return {
    shape: `update ${name} ${given.columns.join()} ${found.shape} ${returned}`,
    text: (first, when) => {
      const condition = [found.text(first + given.values.length), ...(when ? [when] : [])].join(' and ');
      if (given.columns.length === 0) return `select ${returned} from ${name} t where ${condition} for no key update`;
      const sets = [...given.columns.map((column, index) => `${column} = $${first + index}`), ...touch].join(', ');
      return `update ${name} t set ${sets} where ${condition} returning ${returned}`;
    },
    values: [...given.values, ...found.values],
    does: 'update',
    table: name,
    orElse,
    settle: settling(table, into),
  };
}

/** Removes the selected rows. */
export function remove<Name extends TableName>(name: Name, { where, orElse }: Omit<SelectedRows<Name>, 'into'>): Write {
  const found = conditionOf(tableOf(name), where);
  return {
    shape: `delete ${name} ${found.shape}`,
    text: (first, when) =>
      `delete from ${name} t where ${[found.text(first), ...(when ? [when] : [])].join(' and ')} returning 1`,
    values: found.values,
    does: 'delete',
    table: name,
    orElse,
  };
}

function givenOf(table: Table, row: object): { columns: string[]; values: unknown[] } {
  const columns: string[] = [];
  const values: unknown[] = [];
  for (const [property, value] of Object.entries(row) as [string, unknown][]) {
    if (value === undefined) continue;
    columns.push(columnOf(table, property));
    values.push(value !== null && table.json.has(property) ? JSON.stringify(value) : value);
  }
  return { columns, values };
}

/** @throws Error for a selection without values: it would match all rows */
export function conditionOf(
  table: Table,
  where: object,
): { shape: string; text: (first: number) => string; values: unknown[] } {
  const { columns, values } = givenOf(table, where);
  if (columns.length === 0) throw new Error(`Nothing says which rows of ${table.name} are meant.`);
  const given = values.filter((value) => value !== null);
  const conditions = columns.map((column, index) => ({ column, isNull: values[index] === null }));
  const text = (first: number) => {
    let next = first;
    return conditions.map(({ column, isNull }) => `t.${column} ${isNull ? 'is null' : `= $${next++}`}`).join(' and ');
  };
  return { shape: text(1), text, values: given };
}

function columnOf(table: Table, property: string): string {
  const column = table.columns[property];
  if (!column) throw new Error(`${table.name} has no column for '${property}'.`);
  return column;
}

function settling<T>({ properties }: Table, into: Written<T> | undefined): Write['settle'] {
  if (!into) return undefined;
  return (values) => {
    const row: Record<string, unknown> = {};
    for (const [index, property] of properties.entries()) row[property] = values[index];
    into.settle(row as T);
  };
}
