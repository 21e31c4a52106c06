import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import { Reads } from '../../data/reads.ts';
import { noCache } from '../../data/request-cache.ts';
import { type WorkspaceMember as MemberRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';
import { joinOrganization, lockOrganization } from '../organizations/membership.ts';
import { type EndedMembership, Memberships, type ShownUser, shownMembers } from '../organizations/memberships.ts';

/** A membership with the user's fields for lists. */
export type WorkspaceMember = MemberRow & ShownUser;

/** The members of a workspace and their roles. */
export class WorkspaceMemberService {
  readonly reads: Reads<WorkspaceMember, WorkspacePlace>;
  readonly #deps: ServiceDeps;
  readonly #members: Memberships;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#members = new Memberships(deps, 'workspace_member');
    this.reads = new Reads(deps, {
      ...shownMembers('workspace_member', Object.values(Prisma.WorkspaceMemberScalarFieldEnum)),
      below: ['orgId', 'workspaceId'],
    });
  }

  /**
   * Adds a user. Somebody from outside the organization becomes a member of it too: a guest, with the role `viewer`, if
   * the workspace adds them as a viewer (docs/decisions/0028).
   * @throws RESOURCE_ALREADY_EXISTS
   */
  async add(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    userId: string,
    role: Role = 'member',
  ): Promise<WorkspaceMember> {
    const { orgId, workspaceId } = place;
    const addedBy = caller.principal.userId;
    await this.#deps.changes
      .run(caller, async (tx) => {
        await lockOrganization(tx, orgId, 'share');
        await this.#members.lock(tx, place);
        await this.#members.mayGrant(tx, caller, place, role, 'create');
        const inOrganization = role === 'viewer' ? 'viewer' : 'member';
        const newMember = { orgId, userId, role: inOrganization, addedBy, isUnasked: true } as const;
        await joinOrganization(tx, this.#deps.access, newMember);
        tx.insert('workspace_members', { id: newId('workspace_member'), orgId, workspaceId, userId, role, addedBy });
        this.#members.record(tx, 'create', place, userId, { role });
      })
      .catch((error: unknown) => {
        throw brokenUnique(error) ? alreadyExists('workspace_member', 'user_id', userId, userId) : error;
      });
    return this.reads.get(noCache, place, userId);
  }

  /** @throws FORBIDDEN for a role above the caller's own, RESOURCE_CONFLICT `last_owner` */
  async changeRole(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    userId: string,
    role: Role,
  ): Promise<WorkspaceMember> {
    await this.#members.changeRole(caller, place, userId, role);
    return this.reads.get(noCache, place, userId);
  }

  /** Removes a member. Members may always remove themselves, except the last owner. */
  async remove(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    userId: string,
  ): Promise<EndedMembership<WorkspacePlace>> {
    return this.#members.remove(caller, place, userId);
  }
}
