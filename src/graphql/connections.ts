import type { ObjectRef } from '@pothos/core';
import { builder } from './builder.ts';
import type { Constraints } from './constraints.ts';
import type { CursorScope, Cursors } from './cursor.ts';
import { startingNoun } from './wording.ts';

/** A page on its way to GraphQL. The total is computed only when it is selected. */
export interface Connection<Row> {
  nodes: Row[];
  hasNextPage: boolean;
  hasPreviousPage: boolean;
  cursorOf(row: Row): string;
  total(): Promise<number> | number;
}

const PageInfo = builder.objectRef<Connection<unknown>>('PageInfo').implement({
  description: 'Where a page stands in its list.',
  fields: (t) => ({
    hasNextPage: t.exposeBoolean('hasNextPage', { description: 'There are rows after this page.' }),
    hasPreviousPage: t.exposeBoolean('hasPreviousPage', { description: 'The page was asked for with a cursor.' }),
    startCursor: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'Cursor of the first row; null on an empty page.',
      resolve: (page) => cursorAt(page, 0),
    }),
    endCursor: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'Send it back as `after` to fetch the next page; null on the last page.',
      resolve: (page) => (page.hasNextPage ? cursorAt(page, -1) : null),
    }),
  }),
});

function cursorAt(page: Connection<unknown>, index: number): string | null {
  return page.nodes.length > 0 ? page.cursorOf(page.nodes.at(index)) : null;
}

/** The connection type of an object type: `nodes`, `edges`, `pageInfo`, `totalCount`. */
export function connectionType<Row extends object>(
  name: string,
  node: ObjectRef<typeof builder.$inferSchemaTypes, Row, Row>,
) {
  const Edge = builder.objectRef<{ row: Row; cursor: string }>(`${name}Edge`).implement({
    description: `${startingNoun(name)} and its cursor.`,
    fields: (t) => ({
      node: t.field({
        type: node,
        authorize: 'inherited',
        description: `The ${name}.`,
        resolve: (edge) => edge.row as never,
      }),
      cursor: t.exposeString('cursor', { description: 'Send it back as `after` to continue behind this row.' }),
    }),
  });
  return builder.objectRef<Connection<Row>>(`${name}Connection`).implement({
    description: `A page of ${name} objects, walked by key.`,
    fields: (t) => ({
      nodes: t.field({
        type: [node],
        authorize: 'inherited',
        description: 'The rows of the page.',
        resolve: (page) => page.nodes as never,
      }),
      edges: t.field({
        type: [Edge],
        authorize: 'inherited',
        description: 'The rows with their cursors.',
        resolve: (page) => page.nodes.map((row) => ({ row, cursor: page.cursorOf(row) })),
      }),
      pageInfo: t.field({
        type: PageInfo,
        authorize: 'inherited',
        description: 'Where the page stands.',
        resolve: (page) => page as Connection<unknown>,
      }),
      totalCount: t.int({
        authorize: 'inherited',
        description: 'How many rows the filters give in all pages.',
        resolve: (page) => page.total(),
      }),
    }),
  });
}

const LIMIT: Constraints = { min: 1, max: 200 };

/** Arguments of a list: `first` (50 unless told, 1 to 200, defaults §0.4) and `after`. */
export const pageArgs = (bounds: Constraints = LIMIT, defaultValue = 50) =>
  ({
    first: builder.args((t) => ({
      first: t.int({ required: true, defaultValue, constraints: bounds, description: 'Rows of the page.' }),
    })).first,
    after: builder.args((t) => ({
      after: t.string({
        description: 'Cursor of the row to continue after.',
        isCursor: true,
        constraints: { maxLength: 512 },
      }),
    })).after,
  }) as const;

/** A page of nothing, for those who may not see a list of somebody else's. */
export const emptyConnection: Connection<never> = {
  nodes: [],
  hasNextPage: false,
  hasPreviousPage: false,
  cursorOf: () => '',
  total: () => 0,
};

/** Puts a page that was read into the form of a connection. */
export function connection<Row extends { id: string }>(
  cursors: Cursors,
  scope: CursorScope,
  page: { rows: Row[]; hasMore: boolean },
  after: string | null | undefined,
  total: () => Promise<number> | number,
  keyOf: (row: Row) => string = (row) => row.id,
): Connection<Row> {
  return {
    nodes: page.rows,
    hasNextPage: page.hasMore,
    hasPreviousPage: Boolean(after),
    cursorOf: (row) => cursors.encode(scope, keyOf(row)),
    total,
  };
}
