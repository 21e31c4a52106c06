import { findRow, type QueryRunner } from '../../data/find-row.ts';
import type { OrganizationMember } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';
import { asRole, atLeast } from '../../kernel/roles.ts';

/**
 * Demands that a member has no role above the caller's own. Reads the row, not the cache: the caller's role may just
 * have changed. @throws FORBIDDEN with the permission
 */
export async function demandRankOver(
  db: QueryRunner,
  { principal: { userId } }: Caller,
  { orgId, role }: Pick<OrganizationMember, 'orgId' | 'role'>,
  permission: Permission,
): Promise<void> {
  const own = await findRow(db, 'organization_members', { orgId, userId });
  if (!own || !atLeast(asRole(own.role), asRole(role)))
    throw forbidden(permission, 'You cannot do this for a member whose role is above your own.');
}
