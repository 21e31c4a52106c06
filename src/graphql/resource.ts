import type { InputFieldMap, ObjectRef } from '@pothos/core';
import type { Checked } from '../access/checked-place.ts';
import type { IdKind, Permission } from '../core/resources.ts';
import { startingNoun } from '../core/wording.ts';
import type { Page, PageArgs } from '../data/page.ts';
import type { ReadContext, RequestCache } from '../data/request-cache.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';
import { registerNode } from './node.ts';
import { pageArgs, pageType } from './page-type.ts';
import { type ParentRow, type PlacedRow, parentKindOf } from './parent-kinds.ts';

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

interface Readable<Row, Args extends PageArgs> {
  kind: ReadableKind;
  /** The parent type of the rows. */
  below: ObjectRef<Types, ParentRow>;
  reads: (services: Context['services']) => ReadsOf<Row, Args>;
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
  { kind, below, page = pageArgs, one = {}, list = {}, nested = {}, ...options }: Readable<Row, Args>,
) {
  const node: ObjectRef<Types, PlacedRow> = type;
  const noun = nounOf(type.name);
  const field = type.name.charAt(0).toLowerCase() + type.name.slice(1);
  const permission = `${kind}:read` as const;
  const parent = parentKindOf(below.name);
  const reads = ({ services }: Context): ReadsOf<Row, PageArgs> => options.reads(services);
  const filters = () => options.filters?.();
  const pages = pageType(type.name, type);
  // rows directly in an organization are referenced by the identifier that they have there
  const within = (context: Context, orgId: string, id: string) =>
    below.name === 'Organization'
      ? reads(context).find(context, parent.ofRow({ id: orgId }), id)
      : reads(context).findInTenant(context, orgId, id);

  registerNode(kind, type, async (context, id, orgId) => {
    const row = await (orgId ? within(context, orgId, id) : reads(context).findUnscoped(context, id));
    if (row) await parent.demand(context, permission, row);
    return row;
  });

  builder.objectField(below, nested.name ?? `${field}s`, (t) =>
    t.field({
      type: pages,
      nullable: nested.nullable ?? false,
      description: nested.description ?? `The ${noun}s, newest first.`,
      authorize: parent.authorize(permission),
      args: { ...filters(), ...page() },
      resolve: (row, args, context) => reads(context).list(context, parent.ofRow(row), args),
    }),
  );

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
          if (context.caller.principal?.token) await parent.demand(context, permission, row);
          return row;
        },
      }),
    );
  }
  builder.queryField(`${field}s`, (t) =>
    t.field({
      type: pages,
      description:
        list.description ?? `The ${noun}s of ${startingNoun(nounOf(below.name)).toLowerCase()}, newest first.`,
      authorize: parent.authorizeRoot(permission),
      args: { ...parent.args(), ...filters(), ...(list.page ?? page)() },
      resolve: (root, args, context) => reads(context).list(context, parent.ofRoot(root), args),
    }),
  );
  return pages;
}
