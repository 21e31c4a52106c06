import type { IdKind } from '../kernel/resources.ts';
import type { RequestCache } from './request-cache.ts';

interface Identified {
  id: string;
}

/**
 * The plain case of what a {@link Reads} returns: the rows `t` of one source below a parent, newest first. All SQL in
 * it comes from code.
 */
interface PlainReadsOptions<Place, Args, Stored extends Identified> {
  /** The resource word, for the error when a row is missing. */
  kind: IdKind;
  /** Name of the list, also in cursors. Default: the table. */
  name?: string;
  /** A table; or a table expression in which its rows are `t`: `workspace_members t join users u on …`. */
  from: string;
  /** Everything that is read: an expression for each property of the row. */
  columns: Readonly<Record<keyof Stored & string, string>>;
  /** The identifiers of the parent, tenant first: properties that have a column of `t`, or the column of each. */
  below: readonly (keyof Place & string)[] | Readonly<Record<keyof Place & string, string>>;
  /** Conditions that every row of the resource meets, such as not being deleted. */
  always?: readonly string[];
  /**
   * More conditions of the list, with `$1` and so on for the identifiers of the parent. Rows that they exclude can
   * still be read by id.
   */
  listed?: readonly string[];
  /** The conditions of a list, each with a `?` for its value. A value of `null` or `undefined` adds no condition. */
  filters?: (args: Args) => Readonly<Record<string, unknown>>;
  /** What a list needs beyond its statement, such as that a filter names something that is there. @throws if not */
  demands?: (place: Place, args: Args) => Promise<void>;
  /** Newest first unless it is `asc`. */
  order?: 'asc' | 'desc';
}

/** A row is known by something else than its id. */
interface KnownOtherwise<Stored extends Identified> {
  /** The property that identifies the row within its parent. Default: its id. */
  by?: keyof Stored & string;
  /** A word that is accepted in place of the id, for the row with this value of a column: `default`. */
  alias?: { word: string; column: string };
}

/** A list is read by another index than that of its parent and the ids. */
interface ListIndex<Row extends Identified> {
  /** The sort column, if it is not the id of `t`. */
  key?: string;
  /** Its value in a row, if that is not the row's id. */
  keyOf?: (row: Row) => string;
  /**
   * The column before the key in the index; a list has one value of it. Default: the last of `below`. The condition on
   * it is a range and it is part of the order, which keeps PostgreSQL on that index. For a tenant that has nearly all
   * rows of a table, it would otherwise walk the key alone, past the newer rows of all other tenants.
   */
  lead?: string;
  /** The order of the index, if it is not that of the list. */
  order?: 'asc' | 'desc';
}

/** A list is counted by something cheaper than its statement, unless it is filtered. */
type ListCount =
  /** Name of the stored count, for a table that grows without bound. */
  | { kept: string }
  /** Name of the stored count of the parent, if that is a workspace or an app. */
  | { ofPlace: string }
  /** A shorter `from` that is enough to count the rows. */
  | { from: string };

/**
 * Rows of no tenant that are also in the list of each parent, in the same order, and are found there. They are not
 * found by their id alone.
 */
interface SharedRows<Place, Stored extends Identified> {
  /** Where they come from. */
  from: string;
  /** The columns that identify the parent. */
  below: Readonly<Record<keyof Place & string, string>>;
  /** The columns that differ. */
  columns: Partial<Readonly<Record<keyof Stored & string, string>>>;
}

/** The rows that a {@link Reads} returns: the plain case, and what is different about it. */
export interface ReadsOptions<Row extends Identified, Place, Args, Stored extends Identified = Row>
  extends PlainReadsOptions<Place, Args, Stored> {
  /**
   * Adds to the rows what follows from something else, such as a kind of parent that many of them share. Gets all rows
   * of a statement at once.
   */
  complete?: (context: RequestCache, rows: readonly Stored[]) => Promise<Row[]>;
  /** A condition with `$me`, the caller's user id: it limits the list to the caller's own rows. */
  mine?: string;
  known?: KnownOtherwise<Stored>;
  index?: ListIndex<Row>;
  count?: ListCount;
  also?: SharedRows<Place, Stored>;
}
