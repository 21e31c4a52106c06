import pg from 'pg';
import { MARK, type MarkedRows, type ReadStatement, type RunRead } from './plain-read.ts';

interface ResultColumn {
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
/** Results with fewer rows do not share texts: it would cost more than it saves. */
const FEW_ROWS = 20;
/** A column with this many different texts does not share them any more. */
const FEW_TEXTS = 16;

/**
 * A parser of one column of texts that returns equal ones as the same string: types, directions, the tenant. The fewer
 * objects a large result has, the less the garbage collector copies while it is used.
 */
function sharedTexts(): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    if (known.size >= FEW_TEXTS) return text;
    const same = known.get(text);
    if (same === undefined) known.set(text, text);
    return same ?? text;
  };
}

const described = new WeakMap<pg.Connection, Described>();

/**
 * A read that is prepared by name, for `query` of the driver. The driver asks the server to describe the columns with
 * every execution, and reads the description: a tenth of the cost of one row. This asks only with the first execution
 * on each connection. PostgreSQL itself refuses a prepared statement whose columns have changed since (`0A000`). A
 * pooler that prepares statements itself may hide that: names and number of the columns come from the text, only a
 * changed type would be read in its old form until the connection ends.
 */
class PreparedRead extends pg.Query {
  readonly #types: pg.CustomTypesConfig;
  readonly #rows: object[] = [];
  readonly #marks: unknown[] = [];
  #connection: pg.Connection | null = null;
  #shape: RowShape | null = null;
  #failure: Error | null = null;
  /** The parsers after {@link FEW_ROWS}. */
  #sharing: RowShape['parsers'] | null = null;

  constructor({ name, text, values, types }: ReadStatement) {
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

  handleRowDescription({ fields }: { fields: readonly ResultColumn[] }): void {
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
    const { names, blank, mark } = this.#shape;
    const parsers = this.#rows.length < FEW_ROWS ? this.#shape.parsers : this.#sharingParsers(this.#shape);
    const row: Record<string, unknown> = { ...blank };
    try {
      for (let at = 0; at < fields.length; at++) {
        const text = fields[at];
        if (typeof text !== 'string') continue;
        const value = parsers[at]!(text);
        if (at === mark) this.#marks.push(value);
        else row[names[at]!] = value;
      }
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error('A column could not be parsed.', { cause: error });
    }
    this.#rows.push(row);
  }

  #sharingParsers({ types, parsers }: RowShape): RowShape['parsers'] {
    this.#sharing ??= parsers.map((parser, at) => (types[at] === TEXT ? sharedTexts() : parser));
    return this.#sharing;
  }

  handleCommandComplete(): void {
    // the driver's own would read the command and the number of rows
  }

  handleReadyForQuery(): void {
    if (this.#failure) this.callback?.(this.#failure);
    else this.callback?.(null, { rows: this.#rows, marks: this.#marks });
  }
}

/**
 * Runs a read so that its columns are described once a connection. The driver returns what the query calls back with,
 * and its types know nothing of queries of other classes.
 */
export const preparedRead: RunRead = <Row, Mark>(pool: pg.Pool, statement: ReadStatement) =>
  pool.query(new PreparedRead(statement) as unknown as pg.QueryConfig) as unknown as Promise<MarkedRows<Row, Mark>>;

const quietly = (connection: pg.Connection): pg.Connection =>
  Object.create(connection, { describe: { value: () => undefined } }) as pg.Connection;

function shapeOf(fields: readonly ResultColumn[], types: pg.CustomTypesConfig): RowShape {
  const parserOf = types.getTypeParser as (oid: number, format: 'text') => (text: string) => unknown;
  return {
    names: fields.map(({ name }) => name),
    types: fields.map(({ dataTypeID }) => dataTypeID),
    parsers: fields.map(({ dataTypeID }) => parserOf(dataTypeID, 'text')),
    blank: Object.fromEntries(fields.flatMap(({ name }) => (name === MARK ? [] : [[name, null]]))),
    mark: fields.findIndex(({ name }) => name === MARK),
  };
}

const isShapeOf = ({ names, types }: RowShape, fields: readonly ResultColumn[]): boolean =>
  names.length === fields.length &&
  fields.every(({ name, dataTypeID }, at) => name === names[at] && dataTypeID === types[at]);
