import type { ObjectRef } from '@pothos/core';
import { recordable } from '../data/activity.ts';
import { isRefusal } from '../kernel/errors.ts';
import { kindOfId } from '../kernel/ids.ts';
import type { IdKind } from '../kernel/resources.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';

type Types = typeof builder.$inferSchemaTypes;
interface Identified {
  id: string;
}

/**
 * Finds a row if the caller may read it, with the permission of the type's own query. It looks in the organization of
 * the referencing row, or by id alone.
 */
export type NodeLoader<Row> = (context: Context, id: string, orgId?: string) => Promise<Row | null>;

interface NodeKind {
  type: ObjectRef<Types, Identified>;
  load: NodeLoader<Identified>;
}

const registered = new Map<IdKind, NodeKind>();

/**
 * Makes a type reachable through `node(id)` and through the reference fields beside ids of its kind. Each resource's
 * `.graph.ts` calls it for its own types.
 */
export function registerNode<Row extends Identified>(
  kind: IdKind,
  type: ObjectRef<Types, Row, Row>,
  load: NodeLoader<Row>,
): void {
  if (registered.has(kind)) throw new Error(`Two types want to be the node of '${kind}'.`);
  registered.set(kind, { type: type as ObjectRef<Types, Identified>, load });
}

/** Whether the objects of a kind are nodes. */
export const isNodeKind = (kind: IdKind): boolean => registered.has(kind);

/** All types that are nodes, by their kind. */
export const nodeKinds = (): ReadonlyMap<IdKind, NodeKind> => registered;

/** @throws Error for a kind without a node */
export function nodeKindOf(kind: IdKind): NodeKind {
  const found = registered.get(kind);
  if (!found) throw new Error(`No type is the node of '${kind}'.`);
  return found;
}

export const Node = builder.interfaceRef<{ id: string }>('Node').implement({
  description: 'An object with an identifier that is unique in the whole service.',
  fields: (t) => ({ id: t.exposeID('id', { description: 'Identifier. Its prefix tells the type of the object.' }) }),
  resolveType: ({ id }) => registered.get(kindOfId(id)!)?.type.name,
});

builder.queryFields((t) => ({
  node: t.field({
    type: Node,
    nullable: true,
    description: 'Any object by its identifier. `null` if there is no such object or the caller may not see it.',
    authorize: 'signedIn',
    activity: { action: 'read', resourceType: 'node', byResolver: true },
    args: { id: t.arg.id({ required: true, description: 'The identifier.' }) },
    resolve: async (_root, { id }, context) => {
      const kind = kindOfId(id);
      const entry = kind && registered.get(kind);
      const row = entry ? await visible(entry.load(context, id)) : null;
      const { orgId, workspaceId } = (row ?? {}) as { orgId?: string; workspaceId?: string };
      context.services.activity.record(
        context.anyCaller,
        {
          action: 'read',
          resourceType: kind ?? 'node',
          field: 'node',
          // what is not there for the caller has no history
          resourceId: row ? id : null,
          metadata: row ? {} : { asked: recordable(id) },
          orgId: orgId ?? context.caller.principal.orgId,
          workspaceId,
        },
        { statusCode: context.anyCaller.request.successStatus },
      );
      return row;
    },
  }),
}));

/** A node that the caller may read, found in an organization; `null` for all others. */
export const visibleNode = (context: Context, kind: IdKind, id: string, orgId: string): Promise<Identified | null> =>
  visible(nodeKindOf(kind).load(context, id, orgId));

/** The same for an id of any kind; `null`, too, for what is no node. */
export function visibleResource(context: Context, id: string, orgId: string): Promise<Identified | null> | null {
  const kind = kindOfId(id);
  return kind && registered.has(kind) ? visibleNode(context, kind, id, orgId) : null;
}

/** Hidden and missing objects give the same answer: `null`. */
async function visible<Row>(row: Promise<Row | null>): Promise<Row | null> {
  try {
    return await row;
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}
