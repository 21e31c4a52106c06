import { emptyPage } from '../../data/page.ts';
import { builder } from '../../graphql/builder.ts';
import { nodeKinds } from '../../graphql/node.ts';
import { pageArgs } from '../../graphql/page-type.ts';
import { placeOfRow } from '../../kernel/place.ts';
import { declarationOf, type IdKind } from '../../kernel/resources.ts';
import { ActivityConnection, kindArgs, timeArgs } from './activity.graph.ts';
import type { ActivityPlace } from './activity.service.ts';

/** A row of a resource; that of an organization names none. */
interface ResourceRow {
  id: string;
  orgId?: string;
  workspaceId?: string | null;
  [column: string]: unknown;
}

/** A user has a history in each organization: `userActivity` gives it. */
const elsewhere: ReadonlySet<IdKind> = new Set<IdKind>(['user']);

/**
 * Resources whose records name them by a field that is unique only among those of their kind in their place, so that a
 * record is theirs by its kind and place, too.
 */
const namedBy = new Map<IdKind, string>(
  (['organization_member', 'workspace_member', 'model', 'execution'] as const).map((kind) => [
    kind,
    declarationOf(kind).knownBy!,
  ]),
);

/** The records of a place are those of everything in it; those of another resource are about itself. */
function recordsOf(kind: IdKind, row: ResourceRow): ActivityPlace {
  const { id, orgId = id, workspaceId } = row;
  if (kind === 'organization') return { orgId };
  if (kind === 'workspace' || kind === 'app') return { orgId, [kind]: id };
  const name = namedBy.get(kind);
  if (!name) return { orgId, resource: id };
  return { orgId, resource: String(row[name]), ...(workspaceId && { workspace: workspaceId }) };
}

/*
 * Every resource has its history, wherever it is: this module is loaded after all of them.
 */
for (const [kind, { type }] of nodeKinds()) {
  if (elsewhere.has(kind)) continue;
  builder.objectField(type, 'activity', (t) =>
    t.field({
      type: ActivityConnection,
      description:
        'The activity records about this resource, newest first. For a place, the records about everything in it. ' +
        "Callers without the permission for everybody's records get their own.",
      authorize: { service: 'activity:read' },
      args: { ...timeArgs(), ...kindArgs(), ...pageArgs() },
      resolve: async (parent, args, context) => {
        const row = parent as ResourceRow;
        const place = recordsOf(kind, row);
        const { access, activityLog } = context.services;
        const workspaceId = kind === 'workspace' ? row.id : row.workspaceId;
        const where = placeOfRow(row);
        const { grant } = await (workspaceId
          ? access.requireWorkspace(context.caller, place.orgId, workspaceId, 'activity:read', where)
          : access.requireOrganization(context.caller, place.orgId, 'activity:read', where));
        if (!namedBy.has(kind)) return activityLog.list(context, place, grant, args);
        if (args.resourceType && args.resourceType !== kind) return emptyPage;
        return activityLog.list(context, place, grant, { ...args, resourceType: kind });
      },
    }),
  );
}
