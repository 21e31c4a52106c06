import { effectiveRole } from '../access/access.ts';
import type { Actor } from '../access/caller.ts';
import { alreadyExists, forbidden, notFound } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import type { Permission } from '../core/resources.ts';
import { atLeast, type Role } from '../core/roles.ts';
import { brokenUnique, type PrismaTx } from '../data/changes.ts';
import { NestedList } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, type PageSource, readPage } from '../data/pages.ts';
import { recordChange } from '../data/record-change.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type WorkspaceMember as MemberRow, Prisma } from '../generated/prisma/client.ts';
import { ensureNotLastOwner } from '../organizations/last-owner.ts';
import { IS_KEPT, joinOrganization, shareAccount, shareOrganization } from '../organizations/membership.ts';
import { lockWorkspace } from './workspace.service.ts';

/** A membership with what lists show of its user. */
export interface WorkspaceMember extends MemberRow {
  username: string;
  email: string;
  fullName: string | null;
  avatarUrl: string | null;
}

/** The members of a workspace, oldest first. */
const source: PageSource<WorkspaceMember> = {
  from: 'workspace_members t join users u on u.id = t.user_id',
  columns: {
    ...columnsOf(Object.values(Prisma.WorkspaceMemberScalarFieldEnum)),
    ...columnsOf(['username', 'email', 'fullName', 'avatarUrl'], 'u'),
  },
  key: 't.id',
  order: 'asc',
  where: ['t.workspace_id = $1', 't.org_id = $2', IS_KEPT],
};

const oneSource: PageSource<WorkspaceMember> = { ...source, where: [...source.where, 't.user_id = $3'] };
const anywhere: PageSource<WorkspaceMember> = { ...source, where: ['t.id = $1', IS_KEPT] };

interface Target {
  orgId: string;
  workspaceId: string;
  userId: string;
}

/** Who belongs to a workspace, and as what. */
export class WorkspaceMemberService {
  readonly #deps: ServiceDeps;
  readonly #list: NestedList<WorkspaceMember>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#list = new NestedList(deps, 'workspace_members', source);
  }

  async list({
    orgId,
    workspaceId,
    ...args
  }: PageArgs & { orgId: string; workspaceId: string }): Promise<Page<WorkspaceMember>> {
    return this.#list.page([workspaceId, orgId], args);
  }

  /** The same list below a workspace of a list. */
  async nested(
    memory: RequestCache,
    { orgId, id }: { orgId: string; id: string },
    args: PageArgs,
  ): Promise<Page<WorkspaceMember>> {
    return this.#list.nested(memory, [id, orgId], args);
  }

  /** A membership by its own id, of any workspace: whoever asks has to check. */
  async findAnywhere(id: string): Promise<WorkspaceMember | null> {
    const { rows } = await readPage(this.#deps.sql, anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get({ orgId, workspaceId, userId }: Target): Promise<WorkspaceMember> {
    const { rows } = await readPage(this.#deps.sql, oneSource, {
      values: [workspaceId, orgId, userId],
      after: null,
      limit: 1,
    });
    if (!rows[0]) throw notFound('workspace_member', userId);
    return rows[0];
  }

  /** Adds a user, who also becomes a member of the organization if need be. @throws RESOURCE_ALREADY_EXISTS */
  async add(actor: Actor, { orgId, workspaceId, userId }: Target, role: Role = 'member'): Promise<WorkspaceMember> {
    await this.#deps.changes
      .runWithPrisma(actor, async (tx) => {
        await shareOrganization(tx, orgId);
        await lockWorkspace(tx, orgId, workspaceId);
        await this.#mayGrant(tx, actor, { orgId, workspaceId }, role, 'workspace_member:create');
        await joinOrganization(tx, this.#deps.access, {
          orgId,
          userId,
          role: 'member',
          addedBy: actor.principal.userId,
        });
        await tx.db.workspaceMember.create({
          data: { id: newId('workspace_member'), orgId, workspaceId, userId, role, addedBy: actor.principal.userId },
        });
        this.#record(tx, 'create', { orgId, workspaceId, userId }, { role });
      })
      .catch((error: unknown) => {
        throw brokenUnique(error) ? alreadyExists('workspace_member', 'user_id', userId, userId) : error;
      });
    return this.get({ orgId, workspaceId, userId });
  }

  /** @throws FORBIDDEN for a role above one's own, RESOURCE_CONFLICT `last_owner` */
  async changeRole(actor: Actor, target: Target, role: Role): Promise<WorkspaceMember> {
    const { workspaceId, userId } = target;
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      // a new owner must neither leave the organization nor be deactivated meanwhile
      if (role === 'owner') await shareOrganization(tx, target.orgId);
      const before = await this.#lockMember(tx, target);
      await this.#mayGrant(tx, actor, target, before, 'workspace_member:update');
      await this.#mayGrant(tx, actor, target, role, 'workspace_member:update');
      if (role === 'owner') await shareAccount(tx, userId);
      else if (before === 'owner') await ensureNotLastOwner(tx, userId, { workspaceId }, 'workspace_member');
      const { count } = await tx.db.workspaceMember.updateMany({ where: { workspaceId, userId }, data: { role } });
      if (count === 0) throw notFound('workspace_member', userId);
      this.#record(tx, 'update', target, { before: { role: before }, after: { role } });
    });
    return this.get(target);
  }

  /** Removes a member; leaving oneself is always allowed, unless one is the last owner. */
  async remove(actor: Actor, target: Target): Promise<void> {
    const { orgId, workspaceId, userId } = target;
    const isSelf = userId === actor.principal.userId;
    if (isSelf) await this.#deps.access.requireToken(actor, 'workspace_member:delete', { orgId, workspaceId });
    else await this.#deps.access.requireWorkspace(actor, orgId, workspaceId, 'workspace_member:delete');
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      const role = await this.#lockMember(tx, target);
      if (!isSelf) await this.#mayGrant(tx, actor, target, role, 'workspace_member:delete');
      if (role === 'owner') await ensureNotLastOwner(tx, userId, { workspaceId }, 'workspace_member');
      // who leaves the organization at the same moment takes the row along
      const { count } = await tx.db.workspaceMember.deleteMany({ where: { workspaceId, userId } });
      if (count === 0) throw notFound('workspace_member', userId);
      this.#record(tx, 'delete', target, { role });
    });
  }

  /**
   * Nobody hands out, changes or takes away a role above their own. Reads within the transaction: it holds a connection already, and to
   * wait for a second one while others wait for the lock would stand the whole pool still.
   */
  async #mayGrant(
    tx: PrismaTx,
    { principal: { userId } }: Actor,
    { orgId, workspaceId }: Omit<Target, 'userId'>,
    role: Role,
    permission: Permission,
  ): Promise<void> {
    const inOrganization = await tx.db.organizationMember.findUnique({ where: { orgId_userId: { orgId, userId } } });
    const inWorkspace = await tx.db.workspaceMember.findUnique({
      where: { workspaceId_userId: { workspaceId, userId } },
    });
    const own =
      inOrganization && effectiveRole(inOrganization.role as Role, (inWorkspace?.role as Role | undefined) ?? null);
    if (!own || !atLeast(own, role))
      throw forbidden(permission, `You cannot grant, change or remove the role '${role}': it is above your own.`);
  }

  /** The member's role, with the workspace held: owners cannot demote each other at the same time. */
  async #lockMember(tx: PrismaTx, { orgId, workspaceId, userId }: Target): Promise<Role> {
    await lockWorkspace(tx, orgId, workspaceId);
    await tx.expectVersion({ table: 'workspace_members', key: { workspaceId, userId } });
    const member = await tx.db.workspaceMember.findUnique({
      where: { workspaceId_userId: { workspaceId, userId }, user: { deactivatedAt: null } },
    });
    if (member?.orgId !== orgId) throw notFound('workspace_member', userId);
    return member.role as Role;
  }

  #record(
    tx: PrismaTx,
    verb: 'create' | 'update' | 'delete',
    { userId: id, ...place }: Target,
    metadata: Record<string, unknown>,
  ): void {
    const { orgId, workspaceId } = place;
    recordChange(tx, verb, 'workspace_member', { id, ...place }, metadata);
    tx.afterCommit(() => this.#deps.access.workspaceChanged(orgId, workspaceId, id));
  }
}
