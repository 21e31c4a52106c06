import { findRows, type QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityGrant, IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { asRole, atLeast, higherRole, type Role } from '../../kernel/roles.ts';
import { mappingsOf } from './identity-provider.source.ts';

/** What a sign-in does to the role of a user in the organization, or in a workspace of it. */
export interface RolePlan {
  /** `null` for the organization. */
  workspaceId: string | null;
  /** `null` for somebody who is no member. */
  before: Role | null;
  after: Role | null;
  /** What the groups grant above the user's own role; `null` for nothing. */
  grant: Role | null;
  /** The role without the groups of any provider. */
  own: Role | null;
  /** Grants that an administrator has overruled since: all of the place. */
  isOverruled: boolean;
}

/** Who signs in: somebody who is a member, or who becomes one with a role. */
type Member = { userId: string } | { newAs: Role };

/**
 * The roles of a user by the groups at a provider: the highest that any group grants, and never below the user's own.
 * What another provider grants stays. A role that was changed by hand since is the user's own from then on.
 * @returns the places whose role or grant changes, the organization first
 */
export async function planRoles(
  db: QueryRunner,
  provider: ProviderRow,
  groups: readonly string[],
  member: Member,
): Promise<RolePlan[]> {
  const { id, orgId } = provider;
  const userId = 'userId' in member ? member.userId : null;
  const wanted = wantedBy(provider, groups);
  const grants = userId
    ? await findRows(db, 'identity_grants', statement`t.user_id = ${userId} and t.org_id = ${orgId}`)
    : [];
  const granted = grants.filter(({ identityProviderId }) => identityProviderId === id);
  const places = [...new Set([...wanted.keys(), ...granted.map(({ workspaceId }) => workspaceId)])];
  if (places.length === 0) return [];
  const roles = await rolesIn(db, orgId, userId, places);
  return places
    .toSorted((a, b) => (a ?? '').localeCompare(b ?? ''))
    .flatMap((workspaceId) => {
      if (workspaceId !== null && !roles.has(workspaceId)) return [];
      const current = workspaceId === null && 'newAs' in member ? member.newAs : (roles.get(workspaceId) ?? null);
      const here = grants.filter((grant) => grant.workspaceId === workspaceId);
      const plan = planOf(workspaceId, current, { here, providerId: id, wanted: wanted.get(workspaceId) ?? null });
      return hasEffect(plan, granted) ? [plan] : [];
    });
}

function planOf(
  workspaceId: string | null,
  before: Role | null,
  { here, providerId, wanted }: { here: readonly IdentityGrant[]; providerId: string; wanted: Role | null },
): RolePlan {
  const stored = here[0]?.ownRole ? asRole(here[0].ownRole) : null;
  const highest = (rows: readonly IdentityGrant[], least: Role | null) =>
    rows.reduce<Role | null>((role, grant) => higherRole(role, asRole(grant.role)), least);
  const isOverruled = here.length > 0 && before !== highest(here, stored);
  const own = here.length === 0 || isOverruled ? before : stored;
  const others = isOverruled ? [] : here.filter(({ identityProviderId }) => identityProviderId !== providerId);
  const grant = wanted !== null && (own === null || !atLeast(own, wanted)) ? wanted : null;
  return { workspaceId, before, after: higherRole(highest(others, own), grant), grant, own, isOverruled };
}

/** The highest role that the groups grant in each place; the key of the organization is `null`. */
function wantedBy(provider: ProviderRow, groups: readonly string[]): Map<string | null, Role> {
  const wanted = new Map<string | null, Role>();
  const own = new Set(groups);
  for (const { group, roleId, workspaceId } of mappingsOf(provider))
    if (own.has(group)) wanted.set(workspaceId, higherRole(wanted.get(workspaceId) ?? null, roleId)!);
  return wanted;
}

const hasEffect = ({ workspaceId, before, after, grant, isOverruled }: RolePlan, granted: readonly IdentityGrant[]) => {
  const known = granted.find((row) => row.workspaceId === workspaceId);
  return before !== after || isOverruled || (known?.role ?? null) !== grant;
};

/** The roles of a user in the workspaces of these that are there, and in the organization. */
async function rolesIn(
  db: QueryRunner,
  orgId: string,
  userId: string | null,
  places: readonly (string | null)[],
): Promise<Map<string | null, Role | null>> {
  const workspaceIds = places.filter((id) => id !== null);
  const rows = await db.query<{ workspaceId: string | null; role: Role | null }>(statement`
    select null as "workspaceId", (select m.role from organization_members m
      where m.org_id = ${orgId} and m.user_id = ${userId}) as role
    union all select w.id, (select m.role from workspace_members m
      where m.org_id = ${orgId} and m.workspace_id = w.id and m.user_id = ${userId})
    from workspaces w where w.org_id = ${orgId} and w.id = any(${workspaceIds}::text[]) and w.deleted_at is null`);
  return new Map(rows.map(({ workspaceId, role }) => [workspaceId, role]));
}
