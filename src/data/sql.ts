import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import pg from 'pg';
import type { MarkedRows, ReadStatement, RunRead } from '../platform/postgres/plain-read.ts';
import { preparedRead } from '../platform/postgres/prepared-read.ts';
import { type Query, Transaction } from '../platform/postgres/transaction.ts';

/**
 * Maximum number of prepared statements on each connection. Texts come from code, but callers choose which columns an
 * update sets, and every choice is a separate text. Texts beyond the limit run unprepared.
 */
const MAX_PREPARED = 1_000;

/** Before anything is made of more rows than these, which were parsed in one go, other requests have their turn. */
const MANY_ROWS = 200;

const names = new Map<string, string>();

/** A name for the prepared statement of a text; none beyond the limit. */
function nameOf(text: string): string | undefined {
  let name = names.get(text);
  if (name === undefined) {
    if (names.size >= MAX_PREPARED) return undefined;
    name = `s${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
    names.set(text, name);
  }
  return name;
}

const TURN = 'select pg_advisory_xact_lock(hashtextextended($1, 0))';

const TIMESTAMPTZ = 1184;
const parseTimestamptz = pg.types.getTypeParser(TIMESTAMPTZ) as (text: string) => Date;

const TEXT_ARRAY = 1009;
const parseTextArray = pg.types.getTypeParser(TEXT_ARRAY as never) as (text: string) => (string | null)[];

/** Parsers of what rows have most, by type: the driver's own take 6 % of the cost of a page for timestamps alone. */
const fastParsers = new Map<number, (text: string) => unknown>([
  [TIMESTAMPTZ, readTimestamptz],
  [TEXT_ARRAY, readTextArray],
]);

const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    fastParsers.get(oid) ?? pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser,
};

const INT8 = 20;
/** Whole rows as Prisma reads them: its 64-bit integers are `bigint`. */
const rowTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? BigInt : types.getTypeParser!(oid, format as 'text')) as typeof pg.types.getTypeParser,
};

const digit = (text: string, at: number): number => text.charCodeAt(at) - 48;
const twoDigits = (text: string, at: number): number => digit(text, at) * 10 + digit(text, at + 1);

let knownDay = '';
let knownMidnight = Number.NaN;

/**
 * `2026-11-21 06:46:00.379+00` as a date, at a quarter of the cost of `Date.parse`: rows of a page often share their
 * day. The driver parses every other form.
 */
function readTimestamptz(text: string): Date {
  if (text[4] !== '-' || !text.endsWith('+00')) return parseTimestamptz(text);
  const day = text.slice(0, 10);
  if (day !== knownDay) {
    knownMidnight = Date.parse(`${day}T00:00:00Z`);
    knownDay = day;
  }
  const seconds = (twoDigits(text, 11) * 60 + twoDigits(text, 14)) * 60 + twoDigits(text, 17);
  // PostgreSQL prints up to six digits of a fraction, and a date keeps three
  let ms = 0;
  for (let at = 20, unit = 100; unit >= 1 && at < text.length - '+00'.length; at += 1, unit /= 10)
    ms += digit(text, at) * unit;
  return new Date(knownMidnight + seconds * 1_000 + ms);
}

/**
 * `{one,two}` as texts. The driver reads every array character by character; here it does so only where something is
 * quoted, null or nested.
 */
function readTextArray(text: string): (string | null)[] {
  if (text === '{}') return [];
  const inner = text.slice(1, -1);
  return text[0] === '{' && !/["\\{]|null/i.test(inner) ? inner.split(',') : parseTextArray(text);
}

// the connection was closed (57P01..03, 08xxx), or a migration made the plan stale (0A000): the read can be repeated
// safely
const READ_AGAIN = /^(57P0[123]|08...|0A000)$/;

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

function isConnectionLoss(error: unknown): boolean {
  return (
    READ_AGAIN.test(codeOf(error)) || (error instanceof Error && error.message === 'Connection terminated unexpectedly')
  );
}

/** What runs the reads of a service. */
export interface ReadRunner {
  /** The rows of a read. */
  read<Row extends object>(text: string, values: unknown[]): Promise<Row[]>;
}

/** The reads of one request, wherever they go. */
export type RoutedReads = Pick<Sql, 'read' | 'readMarked'>;

/** Hand-written reads through the service's pool, prepared by name. */
export class Sql implements ReadRunner {
  readonly #pool: pg.Pool;
  readonly #run: RunRead;

  /** @param run how reads are run; tests compare the ways */
  constructor(pool: pg.Pool, run: RunRead = preparedRead) {
    this.#pool = pool;
    this.#run = run;
  }

  /** The rows of a read. Repeated once if its connection was lost, so never use it for a write. */
  async read<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    return (await this.readMarked<Row, never>(text, values)).rows;
  }

  /**
   * The same for a text whose shape callers choose, such as a filter: each shape would take one of the names of
   * prepared statements for ever.
   */
  async readUnnamed<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    return (await this.#readTwice<Row, never>({ name: undefined, text, values, types })).rows;
  }

  /** The same for a statement with a column {@link MARK}, which is never null. */
  async readMarked<Row extends object, Mark>(text: string, values: unknown[]): Promise<MarkedRows<Row, Mark>> {
    return this.#readTwice(this.#query(text, values));
  }

  /** The rows of a reading statement, with the signature of a change. */
  async query<Row extends object>({ text, values }: { text: string; values: unknown[] }): Promise<Row[]> {
    return this.read(text, values);
  }

  /** The rows that one statement changed, in its own transaction, which has committed when this resolves. */
  async change<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    return (await this.#pool.query<Row>(this.#query(text, values))).rows;
  }

  /**
   * The same, one at a time of those that name the same turn, on all nodes: it sees what the one before has committed.
   * A lock within the statement would not do: what a statement sees is decided before it waits.
   */
  async changeInTurn<Row extends object>(turn: string, text: string, values: unknown[]): Promise<Row[]> {
    const transaction = new Transaction(this.#pool);
    try {
      const [, changed] = await transaction.commit([this.#query(TURN, [turn]), this.#query(text, values)]);
      return changed!.rows as Row[];
    } finally {
      await transaction.end();
    }
  }

  /** One statement that writes, in its own transaction, with the number of rows it touched. */
  async write(text: string, values: unknown[]): Promise<number> {
    return (await this.#pool.query({ text, values })).rowCount ?? 0;
  }

  /** A statement for a transaction, whose 64-bit integers are `bigint` as Prisma reads them. */
  queryOf(text: string, values: unknown[], rowMode?: 'array'): Query {
    const name = nameOf(text);
    return rowMode ? { name, text, values, types: rowTypes, rowMode } : { name, text, values, types: rowTypes };
  }

  async #readTwice<Row extends object, Mark>(read: ReadStatement): Promise<MarkedRows<Row, Mark>> {
    try {
      return await this.#read(read);
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      return await this.#read(read);
    }
  }

  async #read<Row extends object, Mark>(read: ReadStatement): Promise<MarkedRows<Row, Mark>> {
    const found = await this.#run<Row, Mark>(this.#pool, read);
    if (found.rows.length > MANY_ROWS) await setImmediate();
    return found;
  }

  #query(text: string, values: unknown[]): ReadStatement {
    return { name: nameOf(text), text, values, types };
  }
}
