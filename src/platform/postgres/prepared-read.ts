import pg from 'pg';

interface Field {
  name: string;
  dataTypeID: number;
}

// what the driver's types leave out
declare module 'pg' {
  interface Connection {
    readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  }
  interface Query {
    text: string;
    name: string | undefined;
    values: unknown[];
    callback: ((error: Error | null, result?: MarkedRows) => void) | undefined;
    prepare(connection: Connection): void;
  }
}

/** Rows, and what the column {@link MARK} of each contains, if the statement has one. It is no property of the row. */
export interface MarkedRows<Row = object, Mark = unknown> {
  rows: Row[];
  marks: Mark[];
}

/** The column in which a statement tells something about its rows, such as the parent that a row was read for. */
export const MARK = '$mark';

/** How the rows of a statement are made: the columns, a parser for each, and an object with their names. */
interface RowShape {
  names: readonly string[];
  types: readonly number[];
  parsers: readonly ((text: string) => unknown)[];
  blank: Readonly<Record<string, null>>;
  /** Position of the column {@link MARK}; -1 for none. */
  mark: number;
}

/** The shape of each statement, by name, as last seen: connections share it as long as it stays the same. */
const latest = new Map<string, RowShape>();

/** What a connection has described, which stays true as long as its prepared statements. */
interface Described {
  shapes: Map<string, RowShape>;
  /** The connection, without a way to ask for a description. */
  quiet: pg.Connection;
}

const TEXT = 25;
/** Rows of which equal texts are kept only once: fewer are not worth looking. */
const FEW_ROWS = 20;
/** Different texts of a column, beyond which its texts are not compared any more. */
const FEW_TEXTS = 16;

/**
 * The texts of a column of many rows, each kept once as long as there are few different ones: types, directions, the
 * tenant. What lives while an answer is made is what the collector of the young generation copies.
 */
class SharedTexts {
  readonly #texts = new Map<string, string>();

  /** An equal text that was read before, or this one. */
  of(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size < FEW_TEXTS) this.#texts.set(text, text);
    return text;
  }

  get isWorthwhile(): boolean {
    return this.#texts.size < FEW_TEXTS;
  }
}

const described = new WeakMap<pg.Connection, Described>();

/**
 * A read that is prepared by name, for `query` of the driver. The driver asks the server to describe the columns with
 * every execution, and reads the description: a tenth of the cost of one row. This asks only with the first execution
 * on each connection. PostgreSQL itself refuses a prepared statement whose columns have changed since (`0A000`). A
 * pooler that prepares statements itself may hide that: names and number of the columns come from the text, only a
 * changed type would be read in its old form until the connection ends.
 */
export class PreparedRead extends pg.Query {
  readonly #types: pg.CustomTypesConfig;
  readonly #rows: object[] = [];
  readonly #marks: unknown[] = [];
  #connection: pg.Connection | null = null;
  #shape: RowShape | null = null;
  #failure: Error | null = null;
  /** Of each column of texts. */
  #shared: (SharedTexts | null)[] | null = null;

  /** Without a name, the server parses and describes it each time. */
  constructor(name: string | undefined, text: string, values: unknown[], types: pg.CustomTypesConfig) {
    super(text);
    this.name = name;
    this.values = values;
    this.#types = types;
  }

  /** Sends the statement; the driver calls it between corking and uncorking the connection. */
  override prepare(connection: pg.Connection): void {
    const { name } = this;
    this.#connection = connection;
    const isParsed = name !== undefined && connection.parsedStatements[name] !== undefined;
    const known = isParsed ? described.get(connection) : undefined;
    this.#shape = (name !== undefined && known?.shapes.get(name)) || null;
    super.prepare(known && this.#shape ? known.quiet : connection);
  }

  handleRowDescription({ fields }: { fields: readonly Field[] }): void {
    const { name } = this;
    const last = name === undefined ? undefined : latest.get(name);
    this.#shape = last && isShapeOf(last, fields) ? last : shapeOf(fields, this.#types);
    if (name === undefined || !this.#connection) return;
    latest.set(name, this.#shape);
    const known = described.get(this.#connection) ?? { shapes: new Map(), quiet: quietly(this.#connection) };
    known.shapes.set(name, this.#shape);
    described.set(this.#connection, known);
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    if (this.#failure || !this.#shape) return;
    const { names, parsers, blank, mark } = this.#shape;
    const row: Record<string, unknown> = { ...blank };
    const shared = this.#rows.length < FEW_ROWS ? null : this.#sharedOf(this.#shape);
    try {
      for (let at = 0; at < fields.length; at++) {
        const text = fields[at];
        if (typeof text !== 'string') continue;
        const texts = shared?.[at];
        const value = texts ? texts.of(text) : parsers[at]!(text);
        if (texts && !texts.isWorthwhile) shared[at] = null;
        if (at === mark) this.#marks.push(value);
        else row[names[at]!] = value;
      }
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error('A column could not be parsed.', { cause: error });
    }
    this.#rows.push(row);
  }

  #sharedOf({ types }: RowShape): (SharedTexts | null)[] {
    this.#shared ??= types.map((oid) => (oid === TEXT ? new SharedTexts() : null));
    return this.#shared;
  }

  handleCommandComplete(): void {
    // the driver's own would read the command and the number of rows
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure);
    else this.callback?.(null, { rows: this.#rows, marks: this.#marks });
  }
}

const quietly = (connection: pg.Connection): pg.Connection =>
  Object.create(connection, { describe: { value: () => undefined } }) as pg.Connection;

function shapeOf(fields: readonly Field[], types: pg.CustomTypesConfig): RowShape {
  const parserOf = types.getTypeParser as (oid: number, format: 'text') => (text: string) => unknown;
  return {
    names: fields.map(({ name }) => name),
    types: fields.map(({ dataTypeID }) => dataTypeID),
    parsers: fields.map(({ dataTypeID }) => parserOf(dataTypeID, 'text')),
    blank: Object.fromEntries(fields.flatMap(({ name }) => (name === MARK ? [] : [[name, null]]))),
    mark: fields.findIndex(({ name }) => name === MARK),
  };
}

const isShapeOf = ({ names, types }: RowShape, fields: readonly Field[]): boolean =>
  names.length === fields.length &&
  fields.every(({ name, dataTypeID }, at) => name === names[at] && dataTypeID === types[at]);
