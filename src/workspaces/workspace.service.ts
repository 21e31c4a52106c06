import type { Actor } from '../access/caller.ts';
import type { Workspace } from '../generated/prisma/client.ts';
import type { Connection } from '../graphql/connections.ts';
import { forbidden, notFound } from '../graphql/errors.ts';
import type { PageArgs, RequestMemory } from '../graphql/nested-connection.ts';
import type { Tx } from '../infra/change.ts';
import { newId } from '../infra/ids.ts';
import { shareMember } from '../organizations/membership.ts';
import type { ServiceDeps } from '../services.ts';
import { WorkspaceReads } from './workspace.reads.ts';

export interface CreateWorkspace {
  organizationId: string;
  name: string;
  description?: string | null;
  region?: string | null;
  subscriptionPlanId?: string | null;
  tags?: string[] | null;
}

export interface UpdateWorkspace {
  name?: string | null;
  description?: string | null;
  isActive?: boolean | null;
  tags?: string[] | null;
}

/** Workspaces: the rules. Permissions are declared on the fields and asked before these run. */
export class WorkspaceService {
  readonly reads: WorkspaceReads;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new WorkspaceReads(deps);
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(orgId: string, id: string): Promise<Workspace> {
    const workspace = await this.reads.find(orgId, id);
    if (!workspace) throw notFound('workspace', id);
    return workspace;
  }

  /** The same, read together with all that are asked for in this request. @throws RESOURCE_NOT_FOUND */
  async nestedOne(memory: RequestMemory, orgId: string, id: string): Promise<Workspace> {
    const workspace = await this.reads.nested(memory, orgId, id);
    if (!workspace) throw notFound('workspace', id);
    return workspace;
  }

  /** The workspaces that the actor may read. */
  async list(
    actor: Actor,
    args: { orgId: string; first: number; after?: string | null },
  ): Promise<Connection<Workspace>> {
    return this.reads.page(actor, await this.#deps.access.organizationRole(actor, args.orgId), args.orgId, args);
  }

  /** The same list below an organization of a list. */
  async nested(actor: Actor, memory: RequestMemory, orgId: string, args: PageArgs): Promise<Connection<Workspace>> {
    return this.reads.page(actor, await this.#deps.access.organizationRole(actor, orgId), orgId, args, memory);
  }

  async create(actor: Actor, orgId: string, input: CreateWorkspace): Promise<Workspace> {
    const ownerId = actor.principal.userId;
    return this.#deps.changes.run(actor, async (tx) => {
      // whoever removes the owner or deletes the account waits, or was first: a workspace without an owner is nobody's
      if (!(await shareMember(tx, orgId, ownerId))) throw forbidden('organization:access');
      return insertWorkspace(tx, { ...input, orgId, ownerId });
    });
  }

  /** Changes what is given; what is left out stays. */
  async update(actor: Actor, orgId: string, id: string, input: UpdateWorkspace): Promise<Workspace> {
    return this.#deps.changes.run(actor, async (tx) => {
      await lockWorkspace(tx, orgId, id);
      await tx.expectVersion({ table: 'workspaces', key: { id } });
      const workspace = await tx.db.workspace.update({
        where: { id },
        data: {
          name: input.name ?? undefined,
          description: input.description,
          isActive: input.isActive ?? undefined,
          tags: input.tags ?? undefined,
        },
      });
      tx.audit({
        action: 'update',
        resourceType: 'workspace',
        resourceId: id,
        orgId,
        workspaceId: id,
        metadata: { fields: Object.keys(input) },
      });
      tx.emit({ type: 'workspace.updated', orgId, workspaceId: id, resourceType: 'workspace', resourceId: id });
      return workspace;
    });
  }

  /** Soft: kept for 30 days, with its children unreachable at once. */
  async delete(actor: Actor, orgId: string, id: string): Promise<{ message: string }> {
    await this.#deps.changes.run(actor, async (tx) => {
      await lockWorkspace(tx, orgId, id);
      await tx.expectVersion({ table: 'workspaces', key: { id } });
      await tx.db.workspace.update({
        where: { id },
        data: { deletedAt: new Date(), isActive: false, bucketStatus: 'deleting' },
      });
      await tx.db.user.updateMany({ where: { defaultWorkspaceId: id }, data: { defaultWorkspaceId: null } });
      tx.audit({ action: 'delete', resourceType: 'workspace', resourceId: id, orgId, workspaceId: id });
      tx.emit({ type: 'workspace.deleted', orgId, workspaceId: id, resourceType: 'workspace', resourceId: id });
      tx.afterCommit(() => this.#deps.access.workspaceChanged(orgId, id));
    });
    return { message: 'Workspace deleted successfully' };
  }
}

/** Holds the workspace until the transaction ends. @throws RESOURCE_NOT_FOUND when it is not there or deleted */
export async function lockWorkspace(tx: Tx, orgId: string, id: string): Promise<void> {
  const rows = await tx.db.$queryRaw<
    unknown[]
  >`select 1 from workspaces where org_id = ${orgId} and id = ${id} and deleted_at is null for update`;
  if (rows.length === 0) throw notFound('workspace', id);
}

/**
 * A new workspace with its owner's membership and its `default` namespace. Its bucket is `pending`: a background task makes it.
 */
export async function insertWorkspace(
  tx: Tx,
  input: Omit<CreateWorkspace, 'organizationId'> & { orgId: string; ownerId: string },
): Promise<Workspace> {
  const { orgId, ownerId } = input;
  const id = newId('workspace');
  const workspace = await tx.db.workspace.create({
    data: {
      id,
      orgId,
      name: input.name,
      description: input.description ?? null,
      ownerId,
      region: input.region ?? undefined,
      subscriptionPlanId: input.subscriptionPlanId ?? undefined,
      storageBucket: id.toLowerCase(),
      tags: input.tags ?? [],
    },
  });
  await tx.db.workspaceMember.create({
    data: { id: newId('workspace_member'), orgId, workspaceId: id, userId: ownerId, role: 'owner', addedBy: ownerId },
  });
  await tx.db.namespace.create({
    data: { id: newId('namespace'), orgId, workspaceId: id, name: 'Default', slug: 'default', createdBy: ownerId },
  });
  tx.audit({ action: 'create', resourceType: 'workspace', resourceId: id, orgId, workspaceId: id });
  tx.emit({ type: 'workspace.created', orgId, workspaceId: id, resourceType: 'workspace', resourceId: id });
  return workspace;
}
