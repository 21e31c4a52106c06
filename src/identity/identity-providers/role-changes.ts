import type { Access } from '../../access/access.ts';
import type { Facts } from '../../data/occasions.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { ApiError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { demandNotLastOwner } from '../../tenancy/organizations/last-owner.ts';
import type { RolePlan } from './role-plan.ts';

/** A change of a role, as records and test sign-ins show it. */
export interface RoleChange {
  workspace_id: string | null;
  before: string | null;
  after: string | null;
  /** Why the role stays although the groups grant it no longer. */
  kept?: 'last_owner';
}

/**
 * What becomes of a plan: a role that the last owner would lose stays, with its grant, until somebody else is owner.
 */
export async function feasible(
  db: Pick<Tx, 'query'>,
  { orgId }: Pick<ProviderRow, 'orgId'>,
  userId: string,
  plan: RolePlan,
): Promise<RolePlan & { kept?: 'last_owner' }> {
  const { workspaceId, before, after } = plan;
  if (before !== 'owner' || after === 'owner') return plan;
  const scope = workspaceId === null ? { orgId, withWorkspaces: false } : { workspaceId };
  try {
    await demandNotLastOwner(db, userId, scope, workspaceId === null ? 'organization_member' : 'workspace_member');
    return plan;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'RESOURCE_CONFLICT')
      return { ...plan, after: 'owner', grant: 'owner', kept: 'last_owner' };
    throw error;
  }
}

export const changeOf = ({ workspaceId, before, after, kept }: Awaited<ReturnType<typeof feasible>>): RoleChange => ({
  workspace_id: workspaceId,
  before,
  after,
  ...(kept && { kept }),
});

/** Whose roles a provider changes. */
interface RoleChanges {
  provider: ProviderRow;
  userId: string;
  plans: readonly RolePlan[];
  /** Whether the account was there before: nobody is told of the roles of an account that they have just made. */
  isTold: boolean;
}

/**
 * Gives a member the roles of a plan, and keeps what it granted. The places are locked.
 * @returns what changed, and what could not
 */
export async function applyRoles(
  tx: Tx,
  access: Access,
  { provider, userId, plans, isTold }: RoleChanges,
): Promise<RoleChange[]> {
  const { id, orgId } = provider;
  const changes: RoleChange[] = [];
  for (const planned of plans) {
    const plan = await feasible(tx, provider, userId, planned);
    const { workspaceId, before, after, grant, own, isOverruled } = plan;
    const placeId = workspaceId ?? orgId;
    if (isOverruled)
      tx.write(statement`delete from identity_grants where user_id = ${userId} and place_id = ${placeId}
        and identity_provider_id <> ${id}`);
    if (grant === null) tx.remove('identity_grants', { identityProviderId: id, userId, placeId });
    else
      tx.write(statement`insert into identity_grants
        (identity_provider_id, user_id, place_id, org_id, workspace_id, role, own_role)
        values (${id}, ${userId}, ${placeId}, ${orgId}, ${workspaceId}, ${grant}, ${own})
        on conflict (identity_provider_id, user_id, place_id)
        do update set role = excluded.role, own_role = excluded.own_role, updated_at = now()`);
    if (before !== after) writeRole(tx, access, { provider, userId, plan, isTold });
    if (before !== after || plan.kept) changes.push(changeOf(plan));
  }
  return changes;
}

function writeRole(
  tx: Tx,
  access: Access,
  { provider, userId, plan, isTold }: Omit<RoleChanges, 'plans'> & { plan: RolePlan },
): void {
  const { orgId } = provider;
  const { workspaceId, before, after } = plan;
  const by = { identity_provider_id: provider.id };
  const facts: Facts = {
    ...(before !== null && { before }),
    ...(after !== null && { after }),
    ...(isTold && { provider: provider.name }),
  };
  if (workspaceId === null) {
    tx.update('organization_members', { orgId, userId }, { role: after! });
    const metadata = { before: { role: before }, after: { role: after }, ...by };
    recordChange(tx, 'update', 'organization_member', { id: userId, orgId }, metadata, facts);
    tx.afterCommit(() => access.facts.organizationChanged(orgId, userId));
    return;
  }
  const row = { id: userId, orgId, workspaceId };
  const where = { orgId, workspaceId, userId };
  if (after === null) {
    tx.remove('workspace_members', where);
    recordChange(tx, 'delete', 'workspace_member', row, { role: before, ...by }, facts);
  } else if (before === null) {
    tx.insert('workspace_members', { id: newId('workspace_member'), ...where, role: after, addedBy: null });
    recordChange(tx, 'create', 'workspace_member', row, { role: after, ...by }, facts);
  } else {
    tx.update('workspace_members', where, { role: after });
    const metadata = { before: { role: before }, after: { role: after }, ...by };
    recordChange(tx, 'update', 'workspace_member', row, metadata, facts);
  }
  tx.afterCommit(() => access.facts.workspaceChanged(orgId, workspaceId, userId));
}
