import { effectiveRole } from '../../access/role-grants.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Facts } from '../../data/occasions.ts';
import { columnsOf } from '../../data/paging.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { User } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { forbidden, notFound } from '../../kernel/errors.ts';
import { atLeast, type Role } from '../../kernel/roles.ts';
import { lockWorkspace } from '../workspaces/workspace.service.ts';
import { demandMayLeave, demandNotLastOwner } from './last-owner.ts';
import { IS_KEPT, lockAccount, lockOrganization } from './membership.ts';
import { addressShown } from './shown-addresses.ts';

/** The fields of a user that lists of members show. */
export interface ShownUser extends Pick<User, 'username' | 'email' | 'fullName' | 'avatarUrl'> {
  /** Whether the organization shows the address to its members. */
  isAddressShown: boolean;
}

const IN_ORGANIZATION = ' left join organization_members m on m.org_id = t.org_id and m.user_id = t.user_id';

/** Reads members, oldest first, from a table `t` of memberships. */
export const shownMembers = <Kind extends MemberKind, Property extends string>(
  kind: Kind,
  properties: readonly Property[],
) =>
  ({
    kind,
    name: `${kind}s`,
    from: `${kind}s t join users u on u.id = t.user_id${kind === 'workspace_member' ? IN_ORGANIZATION : ''}`,
    columns: {
      ...columnsOf(properties),
      ...columnsOf(['username', 'email', 'fullName', 'avatarUrl'], 'u'),
      isAddressShown: addressShown(kind === 'workspace_member' ? 'm' : 't'),
    },
    known: { by: 'userId' },
    always: [IS_KEPT],
    order: 'asc',
  }) as const;

type MemberKind = 'organization_member' | 'workspace_member';

/** Where a user is a member: in an organization, or in one of its workspaces. */
interface MemberPlace extends OrganizationPlace {
  workspaceId?: string;
}

/** A membership that has ended. */
export type EndedMembership<Place extends object> = Deleted<Place & { userId: string }>;

/** The rules that memberships of organizations and of workspaces share. */
export class Memberships {
  readonly #deps: ServiceDeps;
  readonly #kind: MemberKind;

  constructor(deps: ServiceDeps, kind: MemberKind) {
    this.#deps = deps;
    this.#kind = kind;
  }

  /** @throws FORBIDDEN for a role above the caller's own, RESOURCE_CONFLICT `last_owner` */
  async changeRole(caller: Caller, place: MemberPlace, userId: string, role: Role): Promise<void> {
    const { orgId, workspaceId } = place;
    await this.#deps.changes.run(caller, async (tx) => {
      // a new owner must not leave the organization or be deactivated meanwhile
      if (role === 'owner' && workspaceId !== undefined) await lockOrganization(tx, orgId, 'share');
      const { role: before } = await this.#lockMember(tx, place, userId);
      await this.mayGrant(tx, caller, place, before, 'update');
      await this.mayGrant(tx, caller, place, role, 'update');
      if (role === 'owner') await lockAccount(tx, userId);
      else if (before === 'owner')
        await demandNotLastOwner(
          tx,
          userId,
          workspaceId ? { workspaceId } : { orgId, withWorkspaces: false },
          this.#kind,
        );
      tx.change(`${this.#kind}s`, { ...place, userId }, { role }, () => notFound(this.#kind, userId));
      this.record(tx, 'update', place, userId, { before: { role: before }, after: { role } }, { before, after: role });
    });
  }

  /**
   * Removes a member. Members may always remove themselves, except the last owner.
   * @param follow makes the changes that belong to the removal, and calls `record` at the right point among them
   * @returns the membership as it was
   * @throws RESOURCE_CONFLICT `last_owner`
   */
  async remove<Place extends MemberPlace>(
    caller: Caller,
    place: Place,
    userId: string,
    follow: (tx: Tx, record: () => void) => Promise<void> = async (_tx, record) => record(),
  ): Promise<EndedMembership<Place>> {
    const isSelf = userId === caller.principal.userId;
    await this.#demandRemoval(caller, place, isSelf);
    return this.#deps.changes.run(caller, async (tx) => {
      const { id, role } = await this.#lockMember(tx, place, userId);
      if (!isSelf) await this.mayGrant(tx, caller, place, role, 'delete');
      const { orgId, workspaceId } = place;
      if (workspaceId === undefined) await demandMayLeave(tx, { orgId, userId });
      else if (role === 'owner') await demandNotLastOwner(tx, userId, { workspaceId }, this.#kind);
      // leaving the organization at the same moment also deletes the row of the workspace
      tx.remove(`${this.#kind}s`, { ...place, userId }, () => notFound(this.#kind, userId));
      await follow(tx, () => this.record(tx, 'delete', place, userId, { role }));
      return { ...place, id, userId };
    });
  }

  /** Locks a place against other changes of its members, so that owners cannot demote each other at the same time. */
  async lock(tx: Tx, { orgId, workspaceId }: MemberPlace): Promise<void> {
    if (workspaceId === undefined) await lockOrganization(tx, orgId, 'no key update');
    else await lockWorkspace(tx, { orgId, workspaceId });
  }

  /**
   * Nobody grants, changes or removes a role above their own. Reads the rows, not the cache: the caller's own role may
   * just have changed. Reads within the transaction: waiting for a second connection while others wait for the lock
   * could block the whole pool.
   */
  async mayGrant(
    tx: Tx,
    { principal: { userId } }: Caller,
    { orgId, workspaceId }: MemberPlace,
    role: Role,
    verb: 'create' | 'update' | 'delete',
  ): Promise<void> {
    const [own] = await tx.query<{ inOrganization: Role; inWorkspace: Role | null }>(
      statement`select o.role as "inOrganization", w.role as "inWorkspace" from organization_members o
        left join workspace_members w
          on w.org_id = o.org_id and w.user_id = o.user_id and w.workspace_id = ${workspaceId ?? null}
        where o.org_id = ${orgId} and o.user_id = ${userId}`,
    );
    const highest = own && (workspaceId ? effectiveRole(own.inOrganization, own.inWorkspace) : own.inOrganization);
    if (!highest || !atLeast(highest, role))
      throw forbidden(
        `${this.#kind}:${verb}`,
        `You cannot grant, change or remove the role '${role}': it is above your own.`,
      );
  }

  record(
    tx: Tx,
    verb: 'create' | 'update' | 'delete',
    place: MemberPlace,
    userId: string,
    metadata: Record<string, unknown>,
    facts?: Facts,
  ): void {
    const { access } = this.#deps;
    const { orgId, workspaceId } = place;
    recordChange(tx, verb, this.#kind, { id: userId, ...place }, metadata, facts);
    tx.afterCommit(() =>
      workspaceId === undefined
        ? access.facts.organizationChanged(orgId, userId)
        : access.facts.workspaceChanged(orgId, workspaceId, userId),
    );
  }

  async #demandRemoval(caller: Caller, place: MemberPlace, isSelf: boolean): Promise<void> {
    const { access } = this.#deps;
    const { orgId, workspaceId } = place;
    const permission = `${this.#kind}:delete` as const;
    if (isSelf) await access.requireToken(caller, permission, place);
    else if (workspaceId === undefined) await access.requireOrganization(caller, orgId, permission);
    else await access.requireWorkspace(caller, orgId, workspaceId, permission);
  }

  /**
   * Locks the place and returns the membership.
   * @throws RESOURCE_NOT_FOUND
   */
  async #lockMember(tx: Tx, place: MemberPlace, userId: string): Promise<{ id: string; role: Role }> {
    await this.lock(tx, place);
    const table = `${this.#kind}s` as const;
    await tx.expectVersion({ table, key: { ...place, userId } });
    const { orgId, workspaceId } = place;
    const [member] = await tx.query<{ id: string; role: Role }>({
      text: `select t.id, t.role from ${table} t join users u on u.id = t.user_id
        where t.org_id = $1 and t.user_id = $2 and ${IS_KEPT}${workspaceId ? ' and t.workspace_id = $3' : ''}`,
      values: [orgId, userId, ...(workspaceId ? [workspaceId] : [])],
    });
    if (!member) throw notFound(this.#kind, userId);
    return member;
  }
}
