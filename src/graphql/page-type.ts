import type { ObjectRef } from '@pothos/core';
import type { Page } from '../data/page.ts';
import type { Constraints } from '../kernel/constraints.ts';
import { startingNoun } from '../kernel/wording.ts';
import { builder } from './builder.ts';
import { bounds } from './inputs.ts';

const PageInfo = builder.objectRef<Page<unknown>>('PageInfo').implement({
  description: 'The position of a page in its list.',
  fields: (t) => ({
    hasNextPage: t.exposeBoolean('hasNextPage', { description: 'Whether there are rows after this page.' }),
    hasPreviousPage: t.exposeBoolean('hasPreviousPage', {
      description: 'Whether the page was requested with a cursor.',
    }),
    startCursor: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'Cursor of the first row. `null` on an empty page.',
      resolve: (page) => cursorAt(page, 0),
    }),
    endCursor: t.string({
      nullable: true,
      authorize: 'inherited',
      description: 'Pass it as `after` to fetch the next page. `null` on the last page.',
      resolve: (page) => (page.hasNextPage ? cursorAt(page, -1) : null),
    }),
  }),
});

function cursorAt(page: Page<unknown>, index: number): string | null {
  return page.nodes.length > 0 ? page.cursorOf(page.nodes.at(index)) : null;
}

/** Builds the connection type of an object type: `nodes`, `edges`, `pageInfo`, `totalCount`. */
export function pageType<Row extends object>(
  name: string,
  node: ObjectRef<typeof builder.$inferSchemaTypes, Row, Row>,
) {
  const Edge = builder.objectRef<{ row: Row; cursor: string }>(`${name}Edge`).implement({
    description: `${startingNoun(name)} and its cursor.`,
    extensions: { wrapsPage: true },
    fields: (t) => ({
      node: t.field({
        type: node,
        authorize: 'inherited',
        description: `The ${name}.`,
        resolve: (edge) => edge.row as never,
      }),
      cursor: t.exposeString('cursor', { description: 'Pass it as `after` to continue after this row.' }),
    }),
  });
  return builder.objectRef<Page<Row>>(`${name}Connection`).implement({
    description: `A page of ${name} objects (keyset pagination).`,
    extensions: { wrapsPage: true },
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
        description: 'The position of the page in the list.',
        resolve: (page) => page as Page<unknown>,
      }),
      totalCount: t.int({
        authorize: 'inherited',
        description: 'The number of rows that match the filters, on all pages.',
        resolve: (page) => page.total(),
      }),
    }),
  });
}

const LIMIT: Constraints = { min: 1, max: 200 };

/** Arguments of a list: `first` (default 50, 1 to 200, defaults §0.4) and `after`. */
export const pageArgs = (limit: Constraints = LIMIT, defaultValue = 50) =>
  ({
    first: builder.args((t) => ({
      first: t.int({
        required: true,
        defaultValue,
        constraints: limit,
        description: 'Maximum number of rows on the page.',
      }),
    })).first,
    after: builder.args((t) => ({
      after: t.string({
        description: 'Cursor of the row to continue after.',
        isCursor: true,
        constraints: bounds.cursor,
      }),
    })).after,
  }) as const;
