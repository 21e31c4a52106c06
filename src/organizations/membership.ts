import type { Access } from '../access/access.ts';
import type { Role } from '../access/permissions.ts';
import { notFound } from '../graphql/errors.ts';
import type { Tx } from '../infra/change.ts';
import { newId } from '../infra/ids.ts';

/**
 * Makes a user a member of an organization; one who is a member already keeps the role. Holds the organization, so that nobody removes
 * the member meanwhile. @returns whether it was new @throws RESOURCE_NOT_FOUND when the organization is not there or deleted
 */
export async function joinOrganization(
  tx: Tx,
  access: Access,
  { orgId, userId, role, addedBy }: { orgId: string; userId: string; role: Role; addedBy: string | null },
): Promise<boolean> {
  const held = await tx.db.$queryRaw<
    unknown[]
  >`select 1 from organizations where id = ${orgId} and deleted_at is null for share`;
  if (held.length === 0) throw notFound('organization', orgId);
  const { count } = await tx.db.organizationMember.createMany({
    data: [{ id: newId('organization_member'), orgId, userId, role, addedBy }],
    skipDuplicates: true,
  });
  if (count === 0) return false;
  tx.audit({
    action: 'create',
    resourceType: 'organization_member',
    resourceId: userId,
    orgId,
    userId: addedBy,
    metadata: { role },
  });
  tx.emit({ type: 'organization_member.created', orgId, resourceType: 'organization_member', resourceId: userId });
  tx.afterCommit(() => access.organizationChanged(orgId, userId));
  return true;
}
