import { isRefusal } from '../core/errors.ts';
import { kindOfId } from '../core/ids.ts';
import type { IdKind } from '../core/resources.ts';
import { builder } from './builder.ts';
import type { Context } from './context.ts';

/** Finds a row by its id alone, if the caller may read it: by the same permission as the type's own query. */
export type NodeLoader = (context: Context, id: string) => Promise<{ id: string } | null>;

const registered = new Map<IdKind, { typeName: string; load: NodeLoader }>();

/** Makes a type reachable through `node(id)`. Each resource's `.graph.ts` calls it for its own types. */
export function registerNode(kind: IdKind, type: { name: string }, load: NodeLoader): void {
  if (registered.has(kind)) throw new Error(`Two types want to be the node of '${kind}'.`);
  registered.set(kind, { typeName: type.name, load });
}

export const Node = builder.interfaceRef<{ id: string }>('Node').implement({
  description: 'Something with an identifier that is unique in the whole service.',
  fields: (t) => ({ id: t.exposeID('id', { description: 'Identifier; its prefix says what it is.' }) }),
  resolveType: ({ id }) => registered.get(kindOfId(id)!)?.typeName,
});

builder.queryFields((t) => ({
  node: t.field({
    type: Node,
    nullable: true,
    description: 'Anything by its identifier; null when there is no such thing, and when the caller may not see it.',
    authorize: 'signedIn',
    activity: false, // what was read is known only now: it is recorded below
    args: { id: t.arg.id({ required: true, description: 'The identifier.' }) },
    resolve: async (_root, { id }, context) => {
      const kind = kindOfId(id);
      const entry = kind && registered.get(kind);
      const row = entry ? await visible(entry.load(context, id)) : null;
      const { orgId, workspaceId } = (row ?? {}) as { orgId?: string; workspaceId?: string };
      context.services.activity.record(
        context.caller,
        {
          action: 'read',
          resourceType: kind ?? 'node',
          resourceId: id,
          orgId: orgId ?? context.actor.principal.orgId,
          workspaceId,
        },
        { statusCode: context.caller.request.successStatus },
      );
      return row;
    },
  }),
}));

/** Hidden and missing answer alike: nothing. */
async function visible<Row>(row: Promise<Row | null>): Promise<Row | null> {
  try {
    return await row;
  } catch (error) {
    if (isRefusal(error)) return null;
    throw error;
  }
}
