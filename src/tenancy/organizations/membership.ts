import type { Access } from '../../access/access.ts';
import type { LockStrength } from '../../data/locks.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Organization, User } from '../../generated/prisma/client.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';

/**
 * Locks an organization: with `share` against removals and deletion, with `no key update` against joins too.
 * @throws RESOURCE_NOT_FOUND when it does not exist or is deleted
 */
export async function lockOrganization(tx: Tx, id: string, strength: LockStrength): Promise<Organization> {
  return tx.lock('organizations', { id, deletedAt: null }, strength, () => notFound('organization', id));
}

/**
 * Locks an account before it becomes a member or an owner. A concurrent deletion or suspension waits, or has already
 * happened.
 * @throws RESOURCE_NOT_FOUND when it does not exist or is deleted
 */
export async function lockAccount(tx: Tx, id: string): Promise<User> {
  return tx.lock('users', { id, deactivatedAt: null }, 'key share', () => notFound('user', id));
}

/**
 * Locks an organization and a live member of it against removals and deletion.
 * @param orElse the error when there is no such member
 */
export function demandMember(tx: Tx, orgId: string, userId: string, orElse: () => Error): void {
  tx.demand('organizations', { id: orgId, deletedAt: null }, 'share', orElse);
  tx.demand('organization_members', { orgId, userId }, 'key share', orElse);
  tx.demand('users', { id: userId, isActive: true, deactivatedAt: null }, 'key share', orElse);
}

/**
 * The condition for lists of members, over their `users u`: a deleted account is not a member of anything, a suspended
 * one is.
 */
export const IS_KEPT = 'u.deactivated_at is null';

interface NewMember {
  orgId: string;
  userId: string;
  role: Role;
  addedBy: string | null;
  /** Somebody else adds the user, who has not agreed: the others do not see the address until the user comes. */
  isUnasked?: boolean;
}

/**
 * Makes a user a member of an organization. An existing member keeps the role. Locks the organization, so nobody
 * removes the member meanwhile, and the account. A change of the address that waits for its link ends.
 * @returns whether the membership is new
 * @throws RESOURCE_NOT_FOUND when the organization or the account does not exist or is deleted
 */
export async function joinOrganization(
  tx: Tx,
  access: Access,
  { orgId, userId, role, addedBy, isUnasked = false }: NewMember,
): Promise<boolean> {
  await lockOrganization(tx, orgId, 'share');
  const { isActive } = await lockAccount(tx, userId);
  if (!isActive) throw notFound('user', userId);
  const made = await tx.query(statement`insert into organization_members (id, org_id, user_id, role, added_by, used_at)
    values (${newId('organization_member')}, ${orgId}, ${userId}, ${role}, ${addedBy},
      ${isUnasked ? null : new Date()})
    on conflict do nothing returning id`);
  if (made.length === 0) return false;
  // an address that was asked for before is none that the organization has seen: its link would change a member
  tx.remove('email_tokens', { userId, purpose: 'change_email', usedAt: null });
  // a user who registers with an invitation is not signed in yet: the record names who added them
  tx.audit({
    action: 'create',
    resourceType: 'organization_member',
    resourceId: userId,
    orgId,
    userId: addedBy,
    metadata: { role },
  });
  emitChange(tx, 'created', 'organization_member', { id: userId, orgId }, { role });
  tx.afterCommit(() => access.facts.organizationChanged(orgId, userId));
  return true;
}
