import type { FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Actor } from '../access/caller.ts';
import type { Permission } from '../access/permissions.ts';
import { type Gate, permissionOf, type Requirement } from '../graphql/access-plugin.ts';
import { Context } from '../graphql/context.ts';
import { forbidden, notFound } from '../graphql/errors.ts';
import type { Services } from '../services.ts';

/** Passes when the caller may still do what a façade request asks for. @throws as the operation itself would */
export type ReplayGate = (request: FastifyRequest) => Promise<void>;

interface Path {
  org_id?: string;
  workspace_id?: string;
  namespace_id?: string;
  environment_id?: string;
  app_id?: string;
}

/**
 * What is asked before a stored answer is given again: what the operation's root field asks of its caller, about the places in the path. Where
 * the field leaves it to its service, that permission is asked in the workspace of the path or of its app, or else anywhere in the
 * organization: rows and bodies, which the service would look at, may have changed since.
 */
export function replayGate(schema: GraphQLSchema, services: Services): ReplayGate {
  const fields = { ...schema.getQueryType()?.getFields(), ...schema.getMutationType()?.getFields() };
  return async ({ caller, params, routeOptions }) => {
    const { access, gate } = (fields[routeOptions.config.rootField ?? '']?.extensions ?? {}) as {
      access?: Requirement;
      gate?: Gate | null;
    };
    const path = params as Path;
    await gate?.(
      new Context(caller, services),
      {},
      {
        orgId: path.org_id,
        workspaceId: path.workspace_id,
        namespaceId: path.namespace_id,
        environmentId: path.environment_id,
        appId: path.app_id,
      },
    );
    const left = typeof access === 'object' && 'service' in access && access.service ? permissionOf(access) : null;
    if (left) await askService(services, caller as Actor, left, path);
  };
}

async function askService(services: Services, actor: Actor, permission: Permission, path: Path): Promise<void> {
  const { access, apps } = services;
  const orgId = path.org_id ?? actor.principal.orgId;
  if (!orgId) throw forbidden(permission);
  const { app_id: appId } = path;
  const app = appId ? await apps.reads.findAnywhere(appId) : null;
  if (appId && app?.orgId !== orgId) throw notFound('app', appId);
  const workspaceId = path.workspace_id ?? app?.workspaceId;
  if (workspaceId) await access.requireWorkspace(actor, orgId, workspaceId, permission, { appId });
  else if (!(await access.rightsSomewhere(actor, orgId))(permission)) throw forbidden(permission);
}
