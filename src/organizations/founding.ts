import type { Access } from '../access/access.ts';
import type { Organization } from '../generated/prisma/client.ts';
import type { Tx } from '../infra/change.ts';
import { newId } from '../infra/ids.ts';
import { insertWorkspace } from '../workspaces/workspace.service.ts';
import { joinOrganization } from './membership.ts';

/** A new organization with a default workspace; its founder owns both. */
export async function foundOrganization(
  tx: Tx,
  access: Access,
  { founderId, name, description = null }: { founderId: string; name: string; description?: string | null },
): Promise<{ organization: Organization; workspaceId: string }> {
  const id = newId('organization');
  const organization = await tx.db.organization.create({ data: { id, name, description, createdBy: founderId } });
  tx.emit({ type: 'organization.created', orgId: id, resourceType: 'organization', resourceId: id });
  await joinOrganization(tx, access, { orgId: id, userId: founderId, role: 'owner', addedBy: founderId });
  const workspace = await insertWorkspace(tx, { orgId: id, ownerId: founderId, name: 'Default workspace' });
  tx.audit({ action: 'create', resourceType: 'organization', resourceId: id, orgId: id });
  return { organization, workspaceId: workspace.id };
}
