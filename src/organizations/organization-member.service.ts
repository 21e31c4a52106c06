import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { revokeTokens } from '../api-tokens/api-token.revocation.ts';
import { alreadyExists, forbidden, notFound } from '../core/errors.ts';
import type { Permission } from '../core/resources.ts';
import { atLeast, type Role } from '../core/roles.ts';
import type { PrismaTx } from '../data/changes.ts';
import { NestedList } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, type PageSource, readPage } from '../data/pages.ts';
import { recordChange } from '../data/record-change.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type OrganizationMember as MemberRow, Prisma } from '../generated/prisma/client.ts';
import { ensureMayLeave, ensureNotLastOwner } from './last-owner.ts';
import { IS_KEPT, joinOrganization, shareAccount } from './membership.ts';
import { lockOrganization } from './organization.service.ts';

/** A membership with what lists show of its user. */
export interface OrganizationMember extends MemberRow {
  username: string;
  email: string;
  fullName: string | null;
  avatarUrl: string | null;
}

/** The members of an organization, oldest first. */
const source: PageSource<OrganizationMember> = {
  from: 'organization_members t join users u on u.id = t.user_id',
  columns: {
    ...columnsOf(Object.values(Prisma.OrganizationMemberScalarFieldEnum)),
    ...columnsOf(['username', 'email', 'fullName', 'avatarUrl'], 'u'),
  },
  key: 't.id',
  order: 'asc',
  where: ['t.org_id = $1', IS_KEPT],
};

const oneSource: PageSource<OrganizationMember> = { ...source, where: [...source.where, 't.user_id = $2'] };
const anywhere: PageSource<OrganizationMember> = { ...source, where: ['t.id = $1', IS_KEPT] };

interface Target {
  orgId: string;
  userId: string;
}

/** Who belongs to an organization, and as what. */
export class OrganizationMemberService {
  readonly #deps: ServiceDeps & { authentication: Authentication };
  readonly #list: NestedList<OrganizationMember>;

  constructor(deps: ServiceDeps & { authentication: Authentication }) {
    this.#deps = deps;
    this.#list = new NestedList(deps, 'organization_members', source);
  }

  async list({ orgId, ...args }: PageArgs & { orgId: string }): Promise<Page<OrganizationMember>> {
    return this.#list.page([orgId], args);
  }

  /** The same list below an organization of a list. */
  async nested(memory: RequestCache, orgId: string, args: PageArgs): Promise<Page<OrganizationMember>> {
    return this.#list.nested(memory, [orgId], args);
  }

  /** A membership by its own id, of any organization: whoever asks has to check. */
  async findAnywhere(id: string): Promise<OrganizationMember | null> {
    const { rows } = await readPage(this.#deps.sql, anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get({ orgId, userId }: Target): Promise<OrganizationMember> {
    const { rows } = await readPage(this.#deps.sql, oneSource, { values: [orgId, userId], after: null, limit: 1 });
    if (!rows[0]) throw notFound('organization_member', userId);
    return rows[0];
  }

  /** Adds a user who has an account. @throws RESOURCE_ALREADY_EXISTS */
  async add(actor: Actor, { orgId, userId }: Target, role: Role = 'member'): Promise<OrganizationMember> {
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      await lockOrganization(tx, orgId);
      await this.#mayGrant(tx, actor, orgId, role, 'organization_member:create');
      const isNew = await joinOrganization(tx, this.#deps.access, {
        orgId,
        userId,
        role,
        addedBy: actor.principal.userId,
      });
      if (!isNew) throw alreadyExists('organization_member', 'user_id', userId, userId);
    });
    return this.get({ orgId, userId });
  }

  /** @throws FORBIDDEN for a role above one's own, RESOURCE_CONFLICT `last_owner` */
  async changeRole(actor: Actor, target: Target, role: Role): Promise<OrganizationMember> {
    const { orgId, userId } = target;
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      const before = await this.#lockMember(tx, target);
      await this.#mayGrant(tx, actor, orgId, before, 'organization_member:update');
      await this.#mayGrant(tx, actor, orgId, role, 'organization_member:update');
      if (role === 'owner') await shareAccount(tx, userId);
      else if (before === 'owner')
        await ensureNotLastOwner(tx, userId, { orgId, withWorkspaces: false }, 'organization_member');
      await tx.db.organizationMember.update({ where: { orgId_userId: { orgId, userId } }, data: { role } });
      this.#record(tx, 'update', target, { before: { role: before }, after: { role } });
    });
    return this.get(target);
  }

  /**
   * Removes a member from the organization and all its workspaces; leaving oneself is always allowed, unless one is the last owner of the
   * organization or of a workspace. @throws RESOURCE_CONFLICT `last_owner`
   */
  async remove(actor: Actor, target: Target): Promise<void> {
    const { orgId, userId } = target;
    const isSelf = userId === actor.principal.userId;
    if (isSelf) await this.#deps.access.requireToken(actor, 'organization_member:delete', { orgId });
    else await this.#deps.access.requireOrganization(actor, orgId, 'organization_member:delete');
    await this.#deps.changes.runWithPrisma(actor, async (tx) => {
      const role = await this.#lockMember(tx, target);
      if (!isSelf) await this.#mayGrant(tx, actor, orgId, role, 'organization_member:delete');
      await ensureMayLeave(tx, target);
      await tx.db.organizationMember.delete({ where: { orgId_userId: { orgId, userId } } });
      // whoever leaves is nobody's to manage, also after coming back
      await tx.db.user.updateMany({ where: { id: userId, homeOrgId: orgId }, data: { homeOrgId: null } });
      await revokeTokens(tx, this.#deps.authentication, target, 'owner_left');
      this.#record(tx, 'delete', target, { role });
      await this.#leaveWorkspaces(tx, target);
    });
  }

  async #leaveWorkspaces(tx: PrismaTx, { orgId, userId }: Target): Promise<void> {
    const left = await tx.db.$queryRaw<{ workspaceId: string; role: string }[]>`
      delete from workspace_members where org_id = ${orgId} and user_id = ${userId} returning workspace_id as "workspaceId", role`;
    for (const { workspaceId, role } of left) {
      recordChange(tx, 'delete', 'workspace_member', { id: userId, orgId, workspaceId }, { role });
      tx.afterCommit(() => this.#deps.access.workspaceChanged(orgId, workspaceId, userId));
    }
  }

  /** Nobody hands out, changes or takes away a role above their own. Asks the rows, not the cache: the own role may just have changed. */
  async #mayGrant(tx: PrismaTx, actor: Actor, orgId: string, role: Role, permission: Permission): Promise<void> {
    const own = await tx.db.organizationMember.findUnique({
      where: { orgId_userId: { orgId, userId: actor.principal.userId } },
    });
    if (!own || !atLeast(own.role as Role, role))
      throw forbidden(permission, `You cannot grant, change or remove the role '${role}': it is above your own.`);
  }

  /** The member's role, with the organization held: owners cannot demote each other at the same time. */
  async #lockMember(tx: PrismaTx, { orgId, userId }: Target): Promise<Role> {
    await lockOrganization(tx, orgId);
    await tx.expectVersion({ table: 'organization_members', key: { orgId, userId } });
    const member = await tx.db.organizationMember.findUnique({
      where: { orgId_userId: { orgId, userId }, user: { deactivatedAt: null } },
    });
    if (!member) throw notFound('organization_member', userId);
    return member.role as Role;
  }

  #record(tx: PrismaTx, verb: 'update' | 'delete', { orgId, userId }: Target, metadata: Record<string, unknown>): void {
    recordChange(tx, verb, 'organization_member', { id: userId, orgId }, metadata);
    tx.afterCommit(() => this.#deps.access.organizationChanged(orgId, userId));
  }
}
