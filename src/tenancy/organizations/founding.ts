import type { Access } from '../../access/access.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import type { Organization } from '../../generated/prisma/client.ts';
import { newId } from '../../kernel/ids.ts';
import { insertWorkspace } from '../workspaces/workspace.service.ts';
import { joinOrganization } from './membership.ts';

/** Creates an organization with a default workspace. The founder owns both. */
export async function foundOrganization(
  tx: Tx,
  access: Access,
  { founderId, name, description = null }: { founderId: string; name: string; description?: string | null },
): Promise<{ organization: Organization; workspaceId: string }> {
  const id = newId('organization');
  const made = tx.create('organizations', { id, name, description, createdBy: founderId });
  emitChange(tx, 'created', 'organization', { id, orgId: id });
  await joinOrganization(tx, access, { orgId: id, userId: founderId, role: 'owner', addedBy: founderId });
  const workspaceId = newId('workspace');
  insertWorkspace(tx, { id: workspaceId, orgId: id, ownerId: founderId, name: 'Default workspace' });
  // last, because the audit record of the request is that of the organization; its event precedes those of its content
  tx.audit({ action: 'create', resourceType: 'organization', resourceId: id, orgId: id });
  return { organization: await tx.written(made), workspaceId };
}
