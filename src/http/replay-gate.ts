import type { FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { noCache } from '../data/request-cache.ts';
import { Context, type Services } from '../graphql/context.ts';
import { inside } from '../graphql/row-places.ts';
import type { Caller } from '../kernel/caller.ts';
import { forbidden, notFound } from '../kernel/errors.ts';
import { kindOfId } from '../kernel/ids.ts';
import type { Place } from '../kernel/place.ts';
import type { FreeWord, Permission, PlaceKind } from '../kernel/resources.ts';
import { authorizeRootField, type NamedArguments } from './root-field.ts';

/**
 * Passes if the caller may still do what a façade request asks for.
 * @throws as the operation itself would
 */
export type ReplayGate = (request: FastifyRequest) => Promise<void>;

/**
 * The check before a stored response is sent again: the authorization of the operation's root field, for the places
 * that its path names. If the field leaves the check to its service, that permission is checked in the workspace that
 * the path or body names, or in the workspace of the app, namespace, environment or secret there; otherwise in the
 * organization.
 */
export function replayGate(schema: GraphQLSchema, services: Services): ReplayGate {
  return async (request) => {
    const context = new Context(request.caller, services);
    const { named, left } = await authorizeRootField(schema, context, request);
    if (left) await askService(services, context.caller, left, { ...placeInBody(request.body), ...named });
  };
}

interface ReplayedRow {
  orgId: string;
  workspaceId?: string | null;
}

/** The body of a repeated request is the same as that of the first one. */
function placeInBody(body: unknown): NamedArguments {
  const { workspace_id, namespace_id, environment_id } = (body ?? {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  return { workspaceId: text(workspace_id), namespaceId: text(namespace_id), environmentId: text(environment_id) };
}

async function askService(
  services: Services,
  caller: Caller,
  permission: Permission,
  named: NamedArguments,
): Promise<void> {
  const { access } = services;
  const orgId = named.orgId ?? caller.principal.orgId;
  if (!orgId) throw forbidden(permission);
  const askRow = named.id && rowAskers.get(kindOfId(named.id));
  if (askRow) return askRow(services, caller, orgId, named.id!, permission);
  const workspaceId = named.workspaceId ?? (await workspaceOf(services, orgId, named));
  if (workspaceId) await access.requireWorkspace(caller, orgId, workspaceId, permission, named);
  else await access.requireOrganization(caller, orgId, permission, named);
}

type AskRow = (services: Services, caller: Caller, orgId: string, id: string, permission: Permission) => Promise<void>;

/** How to check a permission for resources that may be in any kind of place: by their row. */
const ofFreeRows: Readonly<Record<FreeWord, AskRow>> = {
  secret: async ({ secretReads }, caller, orgId, id, permission) => {
    await secretReads.getDeletedToo(caller, inside.organization({ id: orgId }), id, permission);
  },
  notification: async ({ notifications }, caller, _orgId, id) => {
    await notifications.get(caller, id);
  },
  // records are only written by the service
  activity: (_services, _caller, _orgId, id) => Promise.reject(notFound('activity', id)),
};
const rowAskers: ReadonlyMap<string | null, AskRow> = new Map(Object.entries(ofFreeRows));

/** The parts of a workspace that a request may name, and how to find their rows. */
const placesBelow: Readonly<
  Record<keyof Place, [kind: PlaceKind, find: (services: Services, id: string) => Promise<ReplayedRow | null>]>
> = {
  appId: ['app', ({ apps }, id) => apps.reads.findUnscoped(noCache, id)],
  environmentId: ['environment', ({ environments }, id) => environments.reads.findUnscoped(noCache, id)],
  namespaceId: ['namespace', ({ namespaces }, id) => namespaces.reads.findUnscoped(noCache, id)],
};

/**
 * The workspace of what the request names; `null` for what belongs to the organization as a whole.
 * @throws RESOURCE_NOT_FOUND
 */
async function workspaceOf(services: Services, orgId: string, named: NamedArguments): Promise<string | null> {
  for (const [argument, [kind, find]] of Object.entries(placesBelow)) {
    const id = named[argument];
    if (!id) continue;
    const row = await find(services, id);
    if (row?.orgId !== orgId) throw notFound(kind, id);
    return row.workspaceId ?? null;
  }
  return null;
}
