import type { Positions } from './cursors.ts';
import type { Slice } from './paging.ts';

/** The arguments of a list. */
export interface PageArgs {
  /** Maximum number of rows on the page. */
  first: number;
  /** Position of the row to continue after. */
  after?: string | null;
  /** Whether the total is asked for too: the statement of the page then counts. */
  counted?: boolean;
}

/** A page of a list. The total is computed only when it is asked for. */
export interface Page<Row> {
  nodes: Row[];
  hasNextPage: boolean;
  hasPreviousPage: boolean;
  /** From a service, the position of the row; from a field, its cursor. */
  cursorOf(row: Row): string;
  total(): Promise<number> | number;
}

/** An empty page, for callers who may not see somebody else's list. */
export const emptyPage: Page<never> = {
  nodes: [],
  hasNextPage: false,
  hasPreviousPage: false,
  cursorOf: () => '',
  total: () => 0,
};

/** A page of the rows that were read, with their positions and the total. */
export function pageOf<Row extends { id: string }>(
  positions: Positions,
  page: Slice<Row>,
  after: string | null | undefined,
  total: () => Promise<number> | number,
  keyOf: (row: Row) => string = (row) => row.id,
): Page<Row> {
  return {
    nodes: page.rows,
    hasNextPage: page.hasMore,
    hasPreviousPage: Boolean(after),
    cursorOf: (row) => positions.of(keyOf(row)),
    total,
  };
}
