import type { Access } from '../../access/access.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';

/**
 * Takes somebody new into a workspace, where they start. Call it with the workspace locked: one that is deleted takes
 * nobody.
 * @param role `null` if they are a member of it already
 */
export async function joinWorkspace(
  tx: Tx,
  access: Access,
  { orgId, workspaceId, userId, role }: { orgId: string; workspaceId: string; userId: string; role: Role | null },
): Promise<void> {
  if (role !== null) {
    const joined = await tx.query(statement`
      insert into workspace_members (id, org_id, workspace_id, user_id, role)
      select ${newId('workspace_member')}, w.org_id, w.id, ${userId}, ${role} from workspaces w
      where w.id = ${workspaceId} and w.org_id = ${orgId} and w.deleted_at is null returning id`);
    if (joined.length === 0) return;
    recordChange(
      tx,
      'create',
      'workspace_member',
      { id: userId, orgId, workspaceId },
      { role },
      { isConsequence: true },
    );
    tx.afterCommit(() => access.facts.workspaceChanged(orgId, workspaceId, userId));
  }
  tx.update('users', { id: userId, defaultWorkspaceId: null }, { defaultWorkspaceId: workspaceId });
}
