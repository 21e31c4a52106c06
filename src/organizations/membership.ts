import type { Access } from '../access/access.ts';
import { notFound } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import type { Role } from '../core/roles.ts';
import type { Tx } from '../data/changes.ts';
import { emitChange } from '../data/record-change.ts';
import { statement } from '../data/writes.ts';

/** Holds an organization against removals and deletion, for changes of its members. @throws RESOURCE_NOT_FOUND when it is not there or deleted */
export async function shareOrganization(tx: Tx, orgId: string): Promise<void> {
  const held = await tx.query(
    statement`select 1 from organizations where id = ${orgId} and deleted_at is null for share`,
  );
  if (held.length === 0) throw notFound('organization', orgId);
}

/**
 * Holds an account before it becomes a member or an owner: whoever deletes or suspends it waits, or was first.
 * @throws RESOURCE_NOT_FOUND when it is not there or deleted
 */
export async function shareAccount(tx: Tx, userId: string): Promise<{ isActive: boolean }> {
  const [account] = await tx.query<{ isActive: boolean }>(
    statement`select is_active as "isActive" from users where id = ${userId} and deactivated_at is null for key share`,
  );
  if (!account) throw notFound('user', userId);
  return account;
}

/** Holds an organization, and in it a living member, against removals and deletion. @param orElse the error when there is no such member */
export function demandMember(tx: Tx, orgId: string, userId: string, orElse: () => Error): void {
  tx.demand(
    statement`select 1 from organizations o join organization_members m on m.org_id = o.id and m.user_id = ${userId}
      join users u on u.id = m.user_id and u.is_active and u.deactivated_at is null
      where o.id = ${orgId} and o.deleted_at is null for share of o for key share of m, u`,
    orElse,
  );
}

/** The condition of lists of members, over their `users u`: a deleted account is no member of anything, a suspended one is. */
export const IS_KEPT = 'u.deactivated_at is null';

/**
 * Makes a user a member of an organization; one who is a member already keeps the role. Holds the organization, so that nobody removes
 * the member meanwhile, and the account.
 * @returns whether it was new @throws RESOURCE_NOT_FOUND when the organization or the account is not there or deleted
 */
export async function joinOrganization(
  tx: Tx,
  access: Access,
  { orgId, userId, role, addedBy }: { orgId: string; userId: string; role: Role; addedBy: string | null },
): Promise<boolean> {
  await shareOrganization(tx, orgId);
  const { isActive } = await shareAccount(tx, userId);
  if (!isActive) throw notFound('user', userId);
  const made = await tx.query(statement`insert into organization_members (id, org_id, user_id, role, added_by)
    values (${newId('organization_member')}, ${orgId}, ${userId}, ${role}, ${addedBy}) on conflict do nothing returning id`);
  if (made.length === 0) return false;
  // whoever registers by an invitation is not signed in yet: the record says who added them
  tx.audit({
    action: 'create',
    resourceType: 'organization_member',
    resourceId: userId,
    orgId,
    userId: addedBy,
    metadata: { role },
  });
  emitChange(tx, 'created', 'organization_member', { id: userId, orgId });
  tx.afterCommit(() => access.organizationChanged(orgId, userId));
  return true;
}
