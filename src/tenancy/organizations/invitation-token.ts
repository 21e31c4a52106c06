import type { Access } from '../../access/access.ts';
import { granted } from '../../access/permissions.ts';
import { effectiveRole } from '../../access/role-grants.ts';
import { findRow, type QueryRunner } from '../../data/find-row.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Invitation, User } from '../../generated/prisma/client.ts';
import { type ApiError, type InputError, invalidInput } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { asRole, atLeast } from '../../kernel/roles.ts';
import { joinOrganization } from './membership.ts';

/**
 * Finds an invitation that can still be accepted, by the hash of its token. It is no longer valid once its author may
 * not grant its roles any more.
 */
export async function findPendingInvitation(db: QueryRunner, hash: string): Promise<Invitation | null> {
  const invitation = await findRow(db, 'invitations', { tokenHash: hash, status: 'pending' });
  if (!invitation || invitation.expiresAt <= new Date()) return null;
  const organization = await findRow(db, 'organizations', { id: invitation.orgId, deletedAt: null });
  return organization && (await isStillBacked(db, invitation)) ? invitation : null;
}

async function isStillBacked(db: QueryRunner, invitation: Invitation): Promise<boolean> {
  const { orgId, workspaceId, role, workspaceRole } = invitation;
  const userId = invitation.invitedBy ?? '';
  const author = await findRow(db, 'organization_members', { orgId, userId });
  if (!author || !(await findRow(db, 'users', { id: userId, isActive: true }))) return false;
  const own = asRole(author.role);
  if (granted(own, 'invitation:create') !== 'all' || !atLeast(own, asRole(role))) return false;
  if (!workspaceId || !workspaceRole) return true;
  const inWorkspace = await findRow(db, 'workspace_members', { workspaceId, userId });
  const there = effectiveRole(own, inWorkspace && asRole(inWorkspace.role));
  return there !== null && atLeast(there, asRole(workspaceRole));
}

/** The error for a link that cannot be used. */
export const deadInvitation = (path: string[]): InputError =>
  invalidInput(path, 'the invitation is unknown, used or expired');

/**
 * Uses up an invitation for a user, who joins its organization and its workspace, if it names one.
 * @returns the organization
 * @throws `refusal` when it was used or revoked meanwhile
 */
export async function acceptInvitation(
  tx: Tx,
  access: Access,
  invitation: Invitation,
  user: Pick<User, 'id'>,
  refusal: ApiError | InputError,
): Promise<string> {
  const { id, orgId, workspaceId, tokenHash } = invitation;
  await tx.lock('invitations', { id, status: 'pending', tokenHash }, 'no key update', () => refusal);
  tx.update('invitations', { id }, { status: 'accepted', acceptedAt: new Date(), acceptedBy: user.id });
  await joinOrganization(tx, access, {
    orgId,
    userId: user.id,
    role: asRole(invitation.role),
    addedBy: invitation.invitedBy,
  });
  // checked again now that the organization is locked: its author may just have been removed
  if (!(await isStillBacked(tx, invitation))) throw refusal;
  const workspace = workspaceId ? await findRow(tx, 'workspaces', { id: workspaceId, orgId, deletedAt: null }) : null;
  if (workspace) {
    const role = invitation.workspaceRole ?? 'member';
    tx.write(statement`insert into workspace_members (id, org_id, workspace_id, user_id, role, added_by)
      values (${newId('workspace_member')}, ${orgId}, ${workspace.id}, ${user.id}, ${role}, ${invitation.invitedBy})
      on conflict do nothing`);
    tx.update('users', { id: user.id, defaultWorkspaceId: null }, { defaultWorkspaceId: workspace.id });
    emitChange(tx, 'created', 'workspace_member', { id: user.id, orgId, workspaceId: workspace.id }, { role });
    tx.afterCommit(() => access.facts.workspaceChanged(orgId, workspace.id, user.id));
  }
  // a user who registers with the invitation is not signed in yet: the record names them
  tx.audit({
    action: 'update',
    resourceType: 'invitation',
    resourceId: id,
    orgId,
    workspaceId,
    userId: user.id,
    metadata: { accepted: true },
  });
  const { invitedBy } = invitation;
  const facts = { userIds: invitedBy ? [invitedBy] : [], namedUserId: user.id };
  emitChange(tx, 'accepted', 'invitation', { id, orgId }, undefined, facts);
  return orgId;
}
