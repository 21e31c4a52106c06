import type { Access } from '../access/access.ts';
import type { Role } from '../access/permissions.ts';
import type { Tx } from '../infra/change.ts';
import { newId } from '../infra/ids.ts';

/** Makes a user a member of an organization; one who is a member already keeps the role. @returns whether it was new */
export async function joinOrganization(
  tx: Tx,
  access: Access,
  { orgId, userId, role, addedBy }: { orgId: string; userId: string; role: Role; addedBy: string | null },
): Promise<boolean> {
  const { count } = await tx.db.organizationMember.createMany({
    data: [{ id: newId('organization_member'), orgId, userId, role, addedBy }],
    skipDuplicates: true,
  });
  if (count === 0) return false;
  tx.audit({ action: 'create', resourceType: 'organization_member', resourceId: userId, orgId, userId: addedBy, metadata: { role } });
  tx.emit({ type: 'organization_member.created', orgId, resourceType: 'organization_member', resourceId: userId });
  tx.afterCommit(() => access.organizationChanged(orgId, userId));
  return true;
}
