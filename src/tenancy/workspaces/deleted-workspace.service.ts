import { rolesWith } from '../../access/permissions.ts';
import { isFromOrganization } from '../../access/role-grants.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import type { CallerContext } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { Prisma, type Workspace } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { forbidden, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { lockOrganization } from '../organizations/membership.ts';
import { RESTORABLE, RESTORABLE_DAYS, restorableUntil } from './long-deleted.ts';

type StoredDeleted = Workspace & { deletedAt: Date };

/** A workspace that can be restored, as callers see it. */
export type DeletedWorkspace = StoredDeleted & { restorableUntil: Date };

const deleted: ReadsOptions<DeletedWorkspace, OrganizationPlace, PageArgs, StoredDeleted> = {
  kind: 'workspace',
  name: 'deleted_workspaces',
  from: 'workspaces',
  columns: columnsOf(Object.values(Prisma.WorkspaceScalarFieldEnum)),
  below: ['orgId'],
  complete: async (_context, rows) => rows.map((row) => ({ ...row, restorableUntil: restorableUntil(row.deletedAt) })),
  always: ['t.deleted_at is not null', RESTORABLE],
};

const OWNERS = rolesWith('workspace:delete')
  .map((role) => `'${role}'`)
  .join(', ');

/** Workspaces that were deleted less than 30 days ago. Whoever may delete one may restore it (docs/decisions/0043). */
export class DeletedWorkspaceService {
  /** All of an organization, for its administrators. */
  readonly all: Reads<DeletedWorkspace, OrganizationPlace, PageArgs, StoredDeleted>;
  /** Those that the caller owned. */
  readonly own: Reads<DeletedWorkspace, OrganizationPlace, PageArgs, StoredDeleted>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.all = new Reads(deps, deleted);
    this.own = new Reads(deps, {
      ...deleted,
      name: 'own_deleted_workspaces',
      from: 'workspace_members m join workspaces t on t.id = m.workspace_id and t.org_id = m.org_id',
      below: { orgId: 'm.org_id' },
      mine: 'm.user_id between $me and $me',
      listed: [`m.role in (${OWNERS})`],
      index: { key: 'm.workspace_id', lead: 'm.user_id', order: 'asc' },
    });
  }

  /**
   * The workspaces of an organization that the caller may restore, newest first.
   * @throws FORBIDDEN `workspace:delete` if the caller owns none, deleted or not
   */
  async list(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    args: PageArgs,
  ): Promise<Page<DeletedWorkspace>> {
    const { role } = place.asked;
    if (role !== null && isFromOrganization(role, 'workspace:delete')) return this.all.list(context, place, args);
    const page = await this.own.list(context, place, args);
    if (page.nodes.length > 0) return page;
    const may = await this.#deps.access.rightsSomewhere(context.caller, place.orgId);
    if (!may('workspace:delete')) throw forbidden('workspace:delete');
    return page;
  }

  /**
   * Restores a workspace with everything in it. One that is not deleted stays unchanged. If nobody with an active
   * account owns it any more, the caller does.
   * @throws FORBIDDEN, whether it exists or not; RESOURCE_NOT_FOUND, also 30 days after the deletion
   */
  async restore(caller: Caller, { orgId }: Checked<OrganizationPlace>, id: string): Promise<Workspace> {
    const { access, changes } = this.#deps;
    // the one check that also passes after the deletion
    if (!(await access.permits(caller, 'workspace:delete', { orgId, workspaceId: id })))
      throw forbidden('workspace:delete');
    return changes.run(caller, async (tx) => {
      await lockOrganization(tx, orgId, 'share');
      const workspace = await lockRestorable(tx, orgId, id);
      await tx.expectVersion({ table: 'workspaces', key: { id } });
      if (!workspace.deletedAt) return workspace;
      const isOwned = await hasOwner(tx, caller, workspace);
      recordChange(tx, 'restore', 'workspace', { id, orgId, workspaceId: id });
      // nobody can follow it yet: those who follow the organization are told by an event of its own
      emitChange(tx, 'restored', 'workspace', { id, orgId });
      tx.afterCommit(() => access.facts.workspaceChanged(orgId, id));
      const set = { deletedAt: null, deletedBy: null, isActive: true, bucketStatus: 'pending' };
      const ownerId = isOwned ? undefined : caller.principal.userId;
      return tx.change('workspaces', { id }, { ...set, ownerId }, () => notFound('workspace', id));
    });
  }
}

/** Locks a workspace that can be restored, or is not deleted. @throws RESOURCE_NOT_FOUND */
async function lockRestorable(tx: Tx, orgId: string, id: string): Promise<Workspace> {
  const [workspace] = await tx.lockAll(
    'workspaces',
    statement`t.id = ${id} and t.org_id = ${orgId}
      and coalesce(t.deleted_at > now() - make_interval(days => ${RESTORABLE_DAYS}::int), true)`,
    'no key update',
  );
  if (!workspace) throw notFound('workspace', id);
  return workspace;
}

/**
 * Makes the caller an owner of a workspace unless somebody with an active account is: owners of a deleted one may leave
 * and their accounts may end. @returns whether somebody was
 */
async function hasOwner(tx: Tx, caller: Caller, { id: workspaceId, orgId }: Workspace): Promise<boolean> {
  const { userId } = caller.principal;
  const owners = await tx.query<{ userId: string }>(statement`select m.user_id as "userId" from workspace_members m
    where m.workspace_id = ${workspaceId} and m.role = 'owner'`);
  const ids = new Set(owners.map((owner) => owner.userId));
  // a concurrent end of an account waits, or has already happened
  const active = await tx.lockAll(
    'users',
    statement`t.id = any(${[...ids, userId]}::text[]) and t.is_active and t.deactivated_at is null`,
    'key share',
  );
  if (active.some((user) => ids.has(user.id))) return true;
  if (!active.some((user) => user.id === userId)) throw forbidden('organization:access');
  tx.write(statement`insert into workspace_members (id, org_id, workspace_id, user_id, role, added_by)
    values (${newId('workspace_member')}, ${orgId}, ${workspaceId}, ${userId}, 'owner', ${userId})
    on conflict (workspace_id, user_id) do update set role = 'owner', updated_at = now()`);
  return false;
}
