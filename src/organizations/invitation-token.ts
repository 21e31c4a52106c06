import { type Access, effectiveRole } from '../access/access.ts';
import { granted } from '../access/permissions.ts';
import { type ApiError, type InputError, invalidInput } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import { asRole, atLeast } from '../core/roles.ts';
import type { PrismaTx } from '../data/changes.ts';
import { emitChange } from '../data/record-change.ts';
import type { Invitation, Prisma, User } from '../generated/prisma/client.ts';
import { joinOrganization } from './membership.ts';

/** An invitation that can still be accepted, by the hash of its token. It dies with its author's right to give what it gives. */
export async function findPendingInvitation(db: Prisma.TransactionClient, hash: string): Promise<Invitation | null> {
  const invitation = await db.invitation.findFirst({
    where: { tokenHash: hash, status: 'pending', expiresAt: { gt: new Date() }, organization: { deletedAt: null } },
  });
  return invitation && (await isStillBacked(db, invitation)) ? invitation : null;
}

async function isStillBacked(db: Prisma.TransactionClient, invitation: Invitation): Promise<boolean> {
  const { orgId, workspaceId, role, workspaceRole } = invitation;
  const userId = invitation.invitedBy ?? '';
  const author = await db.organizationMember.findFirst({ where: { orgId, userId, user: { isActive: true } } });
  if (!author) return false;
  const own = asRole(author.role);
  if (granted(own, 'invitation:create') !== 'all' || !atLeast(own, asRole(role))) return false;
  if (!workspaceId || !workspaceRole) return true;
  const inWorkspace = await db.workspaceMember.findUnique({ where: { workspaceId_userId: { workspaceId, userId } } });
  const there = effectiveRole(own, inWorkspace && asRole(inWorkspace.role));
  return there !== null && atLeast(there, asRole(workspaceRole));
}

/** What is said of a link that cannot be used. */
export const deadInvitation = (path: string[]): InputError =>
  invalidInput(path, 'the invitation is unknown, used or expired');

/**
 * Uses an invitation up for a user, who joins the organization and the workspace that it names. @returns the organization
 * @throws `refusal` when it was used or revoked in the meantime
 */
export async function acceptInvitation(
  tx: PrismaTx,
  access: Access,
  invitation: Invitation,
  user: Pick<User, 'id'>,
  refusal: ApiError | InputError,
): Promise<string> {
  const { id, orgId, workspaceId, tokenHash } = invitation;
  const { count } = await tx.db.invitation.updateMany({
    where: { id, status: 'pending', tokenHash },
    data: { status: 'accepted', acceptedAt: new Date(), acceptedBy: user.id },
  });
  if (count === 0) throw refusal;
  await joinOrganization(tx, access, {
    orgId,
    userId: user.id,
    role: asRole(invitation.role),
    addedBy: invitation.invitedBy,
  });
  // asked again now that the organization is held: its author may just have been removed
  if (!(await isStillBacked(tx.db, invitation))) throw refusal;
  const workspace = workspaceId
    ? await tx.db.workspace.findFirst({ where: { id: workspaceId, orgId, deletedAt: null } })
    : null;
  if (workspace) {
    await tx.db.workspaceMember.createMany({
      data: [
        {
          id: newId('workspace_member'),
          orgId,
          workspaceId: workspace.id,
          userId: user.id,
          role: invitation.workspaceRole ?? 'member',
          addedBy: invitation.invitedBy,
        },
      ],
      skipDuplicates: true,
    });
    await tx.db.user.updateMany({
      where: { id: user.id, defaultWorkspaceId: null },
      data: { defaultWorkspaceId: workspace.id },
    });
    emitChange(tx, 'created', 'workspace_member', { id: user.id, orgId, workspaceId: workspace.id });
    tx.afterCommit(() => access.workspaceChanged(orgId, workspace.id, user.id));
  }
  // whoever registers by it is not signed in yet: the record says who
  tx.audit({
    action: 'update',
    resourceType: 'invitation',
    resourceId: id,
    orgId,
    workspaceId,
    userId: user.id,
    metadata: { accepted: true },
  });
  emitChange(tx, 'accepted', 'invitation', { id, orgId });
  return orgId;
}
