import { findRows, type QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityGrant, IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { asRole, atLeast, higherRole, type Role } from '../../kernel/roles.ts';
import { directoryGroups } from '../scim/directory-groups.ts';
import { mappingsOf } from './identity-provider.reads.ts';

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
  if ('newAs' in member) return plansOf(await known(db, provider, new Map([[NOBODY, groups]])), NOBODY, member.newAs);
  const { userId } = member;
  // what the directory says of somebody's groups counts, not what a sign-in says
  const ofDirectory = await directoryGroups(db, provider, [userId]);
  const said = ofDirectory.get(userId) ?? groups;
  return plansOf(await known(db, provider, new Map([[userId, said]])), userId);
}

/** The same for many members at once, by the groups of each. @returns the plans of those whose roles change */
export async function planRolesOfMany(
  db: QueryRunner,
  provider: ProviderRow,
  groupsOf: ReadonlyMap<string, readonly string[]>,
): Promise<Map<string, RolePlan[]>> {
  const facts = await known(db, provider, groupsOf);
  const plans = [...groupsOf.keys()].map((userId): [string, RolePlan[]] => [userId, plansOf(facts, userId)]);
  return new Map(plans.filter(([, { length }]) => length > 0));
}

/** Stands for somebody who has no account yet. */
const NOBODY = '';

/** What plans are made of. */
interface Known {
  providerId: string;
  wanted: ReadonlyMap<string, Map<string | null, Role>>;
  grants: ReadonlyMap<string, readonly IdentityGrant[]>;
  roles: Awaited<ReturnType<typeof rolesIn>>;
}

async function known(
  db: QueryRunner,
  provider: ProviderRow,
  groupsOf: ReadonlyMap<string, readonly string[]>,
): Promise<Known> {
  const { id, orgId } = provider;
  const userIds = [...groupsOf.keys()];
  const wanted = new Map([...groupsOf].map(([userId, groups]) => [userId, wantedBy(provider, groups)]));
  const isSomebody = userIds.some((userId) => userId !== NOBODY);
  const rows = isSomebody
    ? await findRows(db, 'identity_grants', statement`t.user_id = any(${userIds}::text[]) and t.org_id = ${orgId}`)
    : [];
  const grants = new Map<string, IdentityGrant[]>();
  for (const row of rows) grants.set(row.userId, [...(grants.get(row.userId) ?? []), row]);
  const own = rows.filter(({ identityProviderId }) => identityProviderId === id);
  const places = new Set([...own.map(({ workspaceId }) => workspaceId), ...[...wanted.values()].flatMap(keysOf)]);
  const roles =
    places.size === 0 ? { live: new Set<string>(), of: NO_ROLES } : await rolesIn(db, orgId, userIds, places);
  return { providerId: id, wanted, grants, roles };
}

const keysOf = <Key>(map: ReadonlyMap<Key, unknown>): Key[] => [...map.keys()];
const NO_ROLES: ReadonlyMap<string, Role> = new Map();

/** The changes of one of them. @param newAs the role in the organization of who is no member yet */
function plansOf({ providerId, wanted, grants, roles }: Known, userId: string, newAs: Role | null = null): RolePlan[] {
  const wants = wanted.get(userId) ?? new Map<string | null, Role>();
  const all = grants.get(userId) ?? [];
  const granted = all.filter(({ identityProviderId }) => identityProviderId === providerId);
  const places = [...new Set([...wants.keys(), ...granted.map(({ workspaceId }) => workspaceId)])];
  return places
    .toSorted((a, b) => (a ?? '').localeCompare(b ?? ''))
    .flatMap((workspaceId) => {
      if (workspaceId !== null && !roles.live.has(workspaceId)) return [];
      const stored = roles.of.get(keyOf(userId, workspaceId)) ?? null;
      const current = workspaceId === null && newAs !== null ? newAs : stored;
      const here = all.filter((grant) => grant.workspaceId === workspaceId);
      const plan = planOf(workspaceId, current, { here, providerId, wanted: wants.get(workspaceId) ?? null });
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

const keyOf = (userId: string, workspaceId: string | null): string => `${userId} ${workspaceId ?? ''}`;

/** The workspaces of these that are there, and the roles of users in them and in the organization. */
async function rolesIn(
  db: QueryRunner,
  orgId: string,
  userIds: readonly string[],
  places: ReadonlySet<string | null>,
): Promise<{ live: ReadonlySet<string>; of: ReadonlyMap<string, Role> }> {
  const workspaceIds = [...places].filter((id) => id !== null);
  const rows = await db.query<{ userId: string | null; workspaceId: string | null; role: Role | null }>(statement`
    select m.user_id as "userId", null as "workspaceId", m.role from organization_members m
      where m.org_id = ${orgId} and m.user_id = any(${userIds}::text[])
    union all select null, w.id, null from workspaces w
      where w.org_id = ${orgId} and w.id = any(${workspaceIds}::text[]) and w.deleted_at is null
    union all select m.user_id, m.workspace_id, m.role from workspace_members m
      where m.org_id = ${orgId} and m.workspace_id = any(${workspaceIds}::text[])
        and m.user_id = any(${userIds}::text[])`);
  const live = new Set<string>();
  const of = new Map<string, Role>();
  for (const { userId, workspaceId, role } of rows)
    if (userId !== null && role !== null) of.set(keyOf(userId, workspaceId), role);
    else if (workspaceId !== null) live.add(workspaceId);
  return { live, of };
}
