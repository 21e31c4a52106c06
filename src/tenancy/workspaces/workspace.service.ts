import { reachesEveryWorkspace } from '../../access/role-grants.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { LockStrength } from '../../data/locks.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import type { Written } from '../../data/writes.ts';
import { Prisma, type Workspace } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { forbidden, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';
import { demandMember } from '../organizations/membership.ts';
import { ROWS_AFTER } from './long-deleted.ts';

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
  language?: string | null;
  embeddingModelId?: string | null;
}

interface WorkspaceDeps extends ServiceDeps {
  /** Checks the embedding model of a workspace. @throws InputError */
  demandEmbeddingModel: (tx: Tx, orgId: string, logicalModelId: string) => Promise<void>;
}

const workspaces: ReadsOptions<Workspace, OrganizationPlace, PageArgs> = {
  kind: 'workspace',
  from: 'workspaces',
  columns: columnsOf(Object.values(Prisma.WorkspaceScalarFieldEnum)),
  below: ['orgId'],
  always: ['t.deleted_at is null'],
};

/** The rules for workspaces. Permissions are declared on the fields and checked before these methods run. */
export class WorkspaceService {
  /** A workspace stays as long as it has connections: these are revoked first. */
  readonly retention = [
    `delete from workspaces w where deleted_at < now() - ${ROWS_AFTER}
     and not exists (select 1 from connections c where c.workspace_id = w.id)`,
  ];
  /** All workspaces of an organization, for its administrators. */
  readonly reads: Reads<Workspace, OrganizationPlace>;
  /** The workspaces of an organization that the caller is a member of. */
  readonly own: Reads<Workspace, OrganizationPlace>;
  readonly #deps: WorkspaceDeps;

  constructor(deps: WorkspaceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, { ...workspaces, count: { kept: 'workspace' } });
    this.own = new Reads(deps, {
      ...workspaces,
      name: 'own_workspaces',
      from: 'workspace_members m join workspaces t on t.id = m.workspace_id and t.org_id = m.org_id',
      below: { orgId: 'm.org_id' },
      mine: 'm.user_id between $me and $me',
      index: { key: 'm.workspace_id', lead: 'm.user_id', order: 'asc' },
    });
  }

  /**
   * The workspaces of an organization that the caller may read, newest first.
   * @param role the caller's role in the organization
   */
  async list(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    role: Role | null,
    args: PageArgs,
  ): Promise<Page<Workspace>> {
    const reads = role !== null && reachesEveryWorkspace(role) ? this.reads : this.own;
    return reads.list(context, place, args);
  }

  async create(caller: Caller, orgId: string, input: CreateWorkspace): Promise<Workspace> {
    const ownerId = caller.principal.userId;
    return this.#deps.changes.run(caller, async (tx) => {
      // a concurrent removal of the owner or deletion of the account waits, or has already happened: no workspace is
      // left without an owner
      demandMember(tx, orgId, ownerId, () => forbidden('organization:access'));
      const id = newId('workspace');
      // nobody can follow the new workspace yet: those who follow the organization are told by an event of its own
      emitChange(tx, 'created', 'workspace', { id, orgId });
      return insertWorkspace(tx, { ...input, id, orgId, ownerId });
    });
  }

  /** Changes the given fields; omitted ones stay. @throws InputError for an embedding model that is none */
  async update(caller: Caller, orgId: string, id: string, input: UpdateWorkspace): Promise<Workspace> {
    return this.#deps.changes.run(caller, async (tx) => {
      await tx.expectVersion({ table: 'workspaces', key: { id } });
      if (input.embeddingModelId) await this.#deps.demandEmbeddingModel(tx, orgId, input.embeddingModelId);
      const set = {
        name: input.name ?? undefined,
        description: input.description,
        isActive: input.isActive ?? undefined,
        tags: input.tags ?? undefined,
        language: input.language,
        embeddingModelId: input.embeddingModelId,
      };
      recordChange(tx, 'update', 'workspace', { id, orgId, workspaceId: id }, { fields: Object.keys(input) });
      return tx.change('workspaces', { orgId, id, deletedAt: null }, set, () => notFound('workspace', id));
    });
  }

  /** A soft delete. The workspace can be restored for 30 days; everything in it becomes unreachable at once. */
  async delete(caller: Caller, orgId: string, id: string): Promise<Deleted<OrganizationPlace>> {
    await this.#deps.changes.run(caller, async (tx) => {
      tx.demand('workspaces', { id, orgId, deletedAt: null }, 'update', () => notFound('workspace', id));
      await tx.expectVersion({ table: 'workspaces', key: { id } });
      const gone = { deletedAt: new Date(), deletedBy: caller.principal.userId };
      tx.update('workspaces', { id }, { ...gone, isActive: false, bucketStatus: 'deleting' });
      tx.update('users', { defaultWorkspaceId: id }, { defaultWorkspaceId: null });
      recordChange(tx, 'delete', 'workspace', { id, orgId, workspaceId: id });
      tx.afterCommit(() => this.#deps.access.facts.workspaceChanged(orgId, id));
    });
    return { id, orgId };
  }
}

/**
 * Locks the workspace: exclusively with `update`, or together with others who add rows that refer to it.
 * @throws RESOURCE_NOT_FOUND when it does not exist or is deleted
 */
export async function lockWorkspace(
  tx: Tx,
  { orgId, workspaceId: id }: { orgId: string; workspaceId: string },
  strength: LockStrength = 'update',
): Promise<void> {
  await tx.lock('workspaces', { id, orgId, deletedAt: null }, strength, () => notFound('workspace', id));
}

/**
 * Inserts a workspace with its owner's membership and its `default` namespace. Its bucket is `pending`: a background
 * task creates it.
 */
export function insertWorkspace(
  tx: Tx,
  input: Omit<CreateWorkspace, 'organizationId'> & { id: string; orgId: string; ownerId: string },
): Written<Workspace> {
  const { id, orgId, ownerId } = input;
  const workspace = tx.create('workspaces', {
    id,
    orgId,
    name: input.name,
    description: input.description ?? null,
    ownerId,
    region: input.region ?? undefined,
    subscriptionPlanId: input.subscriptionPlanId ?? undefined,
    storageBucket: id.toLowerCase(),
    tags: input.tags ?? [],
  });
  tx.insert('workspace_members', {
    id: newId('workspace_member'),
    orgId,
    workspaceId: id,
    userId: ownerId,
    role: 'owner',
    addedBy: ownerId,
  });
  tx.insert('namespaces', {
    id: newId('namespace'),
    orgId,
    workspaceId: id,
    name: 'Default',
    slug: 'default',
    createdBy: ownerId,
  });
  recordChange(tx, 'create', 'workspace', { id, orgId, workspaceId: id });
  return workspace;
}
