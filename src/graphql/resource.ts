import type { InputFieldMap, ObjectRef } from '@pothos/core';
import type { Page, PageArgs } from '../data/page.ts';
import type { ReadContext, RequestCache } from '../data/request-cache.ts';
import type { Checked } from '../kernel/checked-place.ts';
import type { IdKind, Permission } from '../kernel/resources.ts';
import { startingNoun } from '../kernel/wording.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { registerNode } from './node.ts';
import { pageArgs, pageType } from './page-type.ts';
import { type ParentKind, type ParentRow, type PlacedRow, parentKindOf } from './parent-kinds.ts';

type Types = typeof builder.$inferSchemaTypes;
/** The resources that have a read permission. */
type ReadableKind = { [Kind in IdKind]: `${Kind}:read` extends Permission ? Kind : never }[IdKind];

/** The interface of `Reads` for the rows of the type. */
interface ReadsOf<Row, Args extends PageArgs> {
  list(context: ReadContext, place: Checked<object>, args: Args): Promise<Page<Row>>;
  get(context: RequestCache, place: Checked<object>, id: string): Promise<Row>;
  find(context: RequestCache, place: Checked<object>, id: string): Promise<Row | null>;
  findInTenant(context: RequestCache, orgId: string, id: string): Promise<Row | null>;
  findUnscoped(context: RequestCache, id: string): Promise<Row | null>;
}

type ReadsIn<Row, Args extends PageArgs> = (services: Context['services']) => ReadsOf<Row, Args>;

/** Where rows are that have several parents: the place of their queries, and the list below each parent. */
interface Parents<Row, Args extends PageArgs> {
  place: ParentKind;
  lists: readonly { of: ObjectRef<Types, ParentRow>; reads: ReadsIn<Row, Args> }[];
}

interface Readable<Row, Args extends PageArgs> {
  kind: ReadableKind;
  /** What fields and descriptions call it, if not by the name of the type. */
  word?: string;
  /** The name of a list, if it is not that of the type with an `s`. */
  plural?: string;
  /** The parent type of the rows, or their parents. */
  below: ObjectRef<Types, ParentRow> | Parents<Row, Args>;
  reads: ReadsIn<Row, Args>;
  /** Arguments of the lists in addition to those of a page: the filters of the reads. */
  filters?: () => InputFieldMap & Record<Exclude<keyof Args, keyof PageArgs>, unknown>;
  /** Arguments of a page, if they are not the usual ones. */
  page?: () => ReturnType<typeof pageArgs>;
  /** The query of one row, and the argument that identifies it; `false` for none. */
  one?: false | { description?: string; arg?: string; argDescription?: string; organization?: string };
  /** The query of a list, and the arguments of its page if they differ from those of the list below the parent. */
  list?: { description?: string; page?: () => ReturnType<typeof pageArgs> };
  /** The list below the parent. */
  nested?: { name?: string; description?: string; nullable?: true };
}

/** `ModelEntitlement` -> `model entitlement` */
const nounOf = (name: string) => name.replaceAll(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase();

/**
 * Declares the reads of a type: its page, `node(id)`, the query of one row, that of a list and the list below the
 * parent. Each requires `<kind>:read` in the parent's place. @returns the type of a page
 */
export function readable<Row extends PlacedRow, Args extends PageArgs>(
  type: ObjectRef<Types, Row, Row>,
  { kind, word = type.name, below, page = pageArgs, one = {}, list = {}, nested = {}, ...options }: Readable<Row, Args>,
) {
  const node: ObjectRef<Types, PlacedRow> = type;
  const noun = nounOf(word);
  const field = word.charAt(0).toLowerCase() + word.slice(1);
  const permission = `${kind}:read` as const;
  const { plural = `${field}s` } = options;
  const several = 'lists' in below;
  const parent = several ? below.place : parentKindOf(below.name);
  const lists = several ? below.lists : [{ of: below, reads: options.reads }];
  const nounOfParent = several ? 'an app in a namespace' : startingNoun(nounOf(below.name)).toLowerCase();
  const reads = ({ services }: Context): ReadsOf<Row, PageArgs> => options.reads(services);
  const filters = () => options.filters?.();
  const pages = pageType(type.name, type);
  // rows directly in an organization are referenced by the identifier that they have there
  const within = (context: Context, orgId: string, id: string) =>
    !several && below.name === 'Organization'
      ? reads(context).find(context, parent.ofRow({ id: orgId }), id)
      : reads(context).findInTenant(context, orgId, id);

  registerNode(kind, type, async (context, id, orgId) => {
    const row = await (orgId ? within(context, orgId, id) : reads(context).findUnscoped(context, id));
    if (row) await parent.demand(context, permission, row);
    return row;
  });

  for (const { of, ...list } of lists) {
    const above = parentKindOf(of.name);
    const listed = ({ services }: Context): ReadsOf<Row, PageArgs> => list.reads(services);
    builder.objectField(of, nested.name ?? plural, (t) =>
      t.field({
        type: pages,
        nullable: nested.nullable ?? false,
        description: nested.description ?? `The ${nounOf(plural)}, newest first.`,
        authorize: above.authorize(permission),
        args: { ...filters(), ...page() },
        resolve: (row, args, context) => listed(context).list(context, above.ofRow(row), args),
      }),
    );
  }

  if (one) {
    const { arg = 'id', argDescription = `The ${noun}.` } = one;
    const idOf = (args: Readonly<Record<string, unknown>>) => String(args[arg]);
    builder.queryField(field, (t) =>
      t.field({
        type: node,
        description: one.description ?? `${startingNoun(noun)} by its identifier.`,
        authorize: parent.authorizeRoot(permission),
        args: {
          ...parent.args(one.organization),
          ...builder.args((of) => ({ [arg]: of.id({ required: true, description: argDescription }) })),
        },
        resolve: async (root, args, context) => {
          const row = await reads(context).get(context, parent.ofRoot(root), idOf(args));
          // the row may name a place that the arguments do not, such as the workspace of an invitation
          if (context.anyCaller.principal?.token) await parent.demand(context, permission, row);
          return row;
        },
      }),
    );
  }
  builder.queryField(plural, (t) =>
    t.field({
      type: pages,
      description: list.description ?? `The ${nounOf(plural)} of ${nounOfParent}, newest first.`,
      authorize: parent.authorizeRoot(permission),
      args: { ...parent.args(), ...filters(), ...(list.page ?? page)() },
      resolve: (root, args, context) => reads(context).list(context, parent.ofRoot(root), args),
    }),
  );
  return pages;
}
