import type { Access } from '../../access/access.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { conflict } from '../../kernel/errors.ts';
import { lockOrganization } from '../../tenancy/organizations/membership.ts';
import { mappingsOf } from '../identity-providers/identity-provider.reads.ts';
import { applyRoles } from '../identity-providers/role-changes.ts';
import { planRolesOfMany, type RolePlan } from '../identity-providers/role-plan.ts';
import { type Directory, demandAuthority } from './directory.ts';
import { directoryGroups } from './directory-groups.ts';

/**
 * Locks what a change by a directory may touch, before anything else: the organization, so that its directory changes
 * one thing after the other and no member comes or goes meanwhile, and the workspaces in which groups grant roles.
 */
export async function lockPlaces(tx: Tx, orgId: string): Promise<void> {
  await lockOrganization(tx, orgId, 'no key update');
  await tx.lockUnread(
    'workspaces',
    statement`t.org_id = ${orgId} and t.deleted_at is null and t.id in (
      select e->>'workspaceId' from identity_providers p cross join jsonb_array_elements(p.group_mappings) e
        where p.org_id = ${orgId}
      union select g.workspace_id from identity_grants g join identity_providers p on p.id = g.identity_provider_id
        where p.org_id = ${orgId})`,
    'no key update',
  );
}

/**
 * Gives members the roles that the groups of the directory grant at the organization's identity providers.
 * @param names those of the groups that changed; `null`: the members are new
 * @throws FORBIDDEN for a role above that of the token's maker; RESOURCE_CONFLICT `last_owner`
 */
export async function applyGroups(
  tx: Tx,
  access: Access,
  directory: Directory,
  { userIds, names }: { userIds: readonly string[]; names: ReadonlySet<string> | null },
): Promise<void> {
  const { orgId } = directory.token;
  if (userIds.length > 0) await tx.lockUnread('users', statement`t.id = any(${userIds}::text[])`, 'key share');
  const providers = await tx.lockAll('identity_providers', statement`t.org_id = ${orgId}`, 'share');
  const concerned = providers.filter((provider) =>
    mappingsOf(provider).some(({ group }) => names === null || names.has(group)),
  );
  for (const provider of concerned) {
    const changed = names ?? new Set([...(await directoryGroups(tx, provider, userIds)).values()].flat());
    demandMapped(directory, provider, changed);
  }
  const active = concerned.filter(({ isActive }) => isActive);
  if (active.length === 0 || userIds.length === 0) return;
  const members = await tx.query<{ userId: string }>(statement`select m.user_id as "userId" from organization_members m
    where m.org_id = ${orgId} and m.user_id = any(${userIds}::text[]) order by m.user_id`);
  const ids = members.map(({ userId }) => userId);
  for (const provider of active) {
    const said = await directoryGroups(tx, provider, ids);
    // no group of the directory is mapped: what sign-ins say counts
    if (names === null && said.size === 0) continue;
    const plans = await planRolesOfMany(tx, provider, new Map(ids.map((id) => [id, said.get(id) ?? []])));
    for (const [userId, ofMember] of plans) await applyTo(tx, access, directory, { provider, userId, plans: ofMember });
  }
}

/**
 * Sign-ins give what the groups of the directory say, to whoever is a member by then and as soon as the provider is
 * active. So a directory that changes a mapped group needs the authority for its roles, whatever they are good for now.
 * @throws FORBIDDEN
 */
function demandMapped(
  directory: Directory,
  provider: Parameters<typeof mappingsOf>[0],
  groups: ReadonlySet<string>,
): void {
  for (const { group, roleId } of mappingsOf(provider)) if (groups.has(group)) demandAuthority(directory, roleId);
}

async function applyTo(
  tx: Tx,
  access: Access,
  directory: Directory,
  {
    provider,
    userId,
    plans,
  }: { provider: Parameters<typeof applyRoles>[2]['provider']; userId: string; plans: RolePlan[] },
): Promise<void> {
  for (const { before, after } of plans)
    if (before !== after) for (const role of [before, after]) demandAuthority(directory, role);
  const changes = await applyRoles(tx, access, { provider, userId, plans, isTold: true });
  if (changes.some(({ kept }) => kept === 'last_owner'))
    throw conflict(
      'organization_member',
      userId,
      'last_owner',
      'The groups would take the last owner of the organization or of a workspace away: make another member an owner ' +
        'first.',
    );
}
