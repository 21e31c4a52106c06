import type { ServiceDeps } from '../../access/service-deps.ts';
import { Reads } from '../../data/reads.ts';
import { emitChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { whileTaken } from '../../data/while-taken.ts';
import { statement } from '../../data/writes.ts';
import { type OrganizationMember as MemberRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, notFound } from '../../kernel/errors.ts';
import type { Role } from '../../kernel/roles.ts';
import type { Removals } from '../removals.ts';
import { demandMayLeave } from './last-owner.ts';
import { joinOrganization } from './membership.ts';
import { type EndedMembership, Memberships, type ShownUser, shownMembers } from './memberships.ts';

/** A membership with the user's fields for lists. */
export type OrganizationMember = MemberRow & ShownUser;

/** A role that ended with a membership. */
export interface EndedRole {
  /** `null` for that in the organization. */
  workspaceId: string | null;
  role: Role;
}

/** The members of an organization and their roles. */
export class OrganizationMemberService {
  readonly reads: Reads<OrganizationMember, OrganizationPlace>;
  readonly #deps: ServiceDeps & { removals: Removals };
  readonly #members: Memberships;

  constructor(deps: ServiceDeps & { removals: Removals }) {
    this.#deps = deps;
    this.#members = new Memberships(deps, 'organization_member');
    this.reads = new Reads(deps, {
      ...shownMembers('organization_member', Object.values(Prisma.OrganizationMemberScalarFieldEnum)),
      below: ['orgId'],
    });
  }

  /**
   * Adds a user who already has an account. The user need not agree, is told, and may leave.
   * @throws RESOURCE_ALREADY_EXISTS
   */
  async add(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    userId: string,
    role: Role = 'member',
  ): Promise<OrganizationMember> {
    const { orgId } = place;
    await this.#deps.changes.run(caller, async (tx) => {
      await this.#members.lock(tx, place);
      await this.#members.mayGrant(tx, caller, place, role, 'create');
      const addedBy = caller.principal.userId;
      const isNew = await joinOrganization(tx, this.#deps.access, {
        orgId,
        userId,
        role,
        addedBy,
        isUnasked: true,
      });
      if (!isNew) throw alreadyExists('organization_member', 'user_id', userId, userId);
    });
    return this.reads.get(noCache, place, userId);
  }

  /** @throws FORBIDDEN for a role above the caller's own, RESOURCE_CONFLICT `last_owner` */
  async changeRole(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    userId: string,
    role: Role,
  ): Promise<OrganizationMember> {
    await this.#members.changeRole(caller, place, userId, role);
    return this.reads.get(noCache, place, userId);
  }

  /**
   * Removes a member from the organization and all its workspaces. Members may always remove themselves, except the
   * last owner of the organization or of a workspace.
   * @throws RESOURCE_CONFLICT `last_owner`
   */
  async remove(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    userId: string,
  ): Promise<EndedMembership<OrganizationPlace>> {
    const remove = () =>
      this.#members.remove(caller, place, userId, (tx, record) =>
        this.#leave(tx, { orgId: place.orgId, userId }, record),
      );
    return whileTaken(remove);
  }

  /**
   * Removes a member within another change, of whoever decides about members elsewhere. The organization is locked.
   * @returns the roles that end, that in the organization first
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `last_owner`
   */
  async end(tx: Tx, { orgId, userId }: { orgId: string; userId: string }): Promise<EndedRole[]> {
    const roles = await tx.query<EndedRole>(statement`
      select null as "workspaceId", role from organization_members where org_id = ${orgId} and user_id = ${userId}
      union all select workspace_id, role from workspace_members where org_id = ${orgId} and user_id = ${userId}`);
    await demandMayLeave(tx, { orgId, userId });
    tx.remove('organization_members', { orgId, userId }, () => notFound('organization_member', userId));
    await this.#leave(tx, { orgId, userId }, () =>
      this.#members.record(tx, 'delete', { orgId }, userId, { role: roles[0]?.role }),
    );
    return roles;
  }

  /** What else ends with a membership. @param record records it, when the last record is its own */
  async #leave(tx: Tx, { orgId, userId }: { orgId: string; userId: string }, record: () => void): Promise<void> {
    // no organization manages the account of a member who left, also after they come back
    tx.update('users', { id: userId, homeOrgId: orgId }, { homeOrgId: null });
    await this.#deps.removals.ofMember(tx, { orgId, userId });
    const left = await this.#leaveWorkspaces(tx, orgId, userId);
    // the last record is that of the request; the first event is that of the cause
    record();
    for (const workspaceId of left) {
      const row = { id: userId, orgId, workspaceId };
      emitChange(tx, 'deleted', 'workspace_member', row, undefined, { isConsequence: true });
    }
  }

  /** Removes and records the memberships of a member in workspaces. @returns the workspaces */
  async #leaveWorkspaces(tx: Tx, orgId: string, userId: string): Promise<string[]> {
    const left = await tx.query<{ workspaceId: string; role: string }>(
      statement`delete from workspace_members where org_id = ${orgId} and user_id = ${userId}
        returning workspace_id as "workspaceId", role`,
    );
    for (const { workspaceId, role } of left) {
      const place = { orgId, workspaceId };
      tx.audit({
        action: 'delete',
        resourceType: 'workspace_member',
        resourceId: userId,
        ...place,
        metadata: { role },
      });
      tx.afterCommit(() => this.#deps.access.facts.workspaceChanged(orgId, workspaceId, userId));
    }
    return left.map(({ workspaceId }) => workspaceId);
  }
}
