import { TryAgain } from '../../data/changes.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { Prisma } from '../../generated/prisma/client.ts';
import { conflict } from '../../kernel/errors.ts';

/**
 * Where a user stops being an owner: in one workspace or organization, in an organization with all its workspaces, or
 * everywhere.
 */
type OwnerScope = { workspaceId: string } | { orgId: string; withWorkspaces: boolean } | 'everywhere';

interface Owned {
  id: string;
  /** The organization of a workspace; `null` for an organization. */
  orgId: string | null;
  name: string;
  /** Whether nobody else with an active account owns it. */
  isLast: boolean;
}

type MemberKind = 'organization_member' | 'workspace_member' | 'user';

/**
 * Every organization and workspace keeps an owner whose account is active. The caller has locked what the scope names,
 * as every change that takes an owner away does.
 * @throws RESOURCE_CONFLICT `last_owner`, whose `references` list what would be left without an owner
 */
export async function demandNotLastOwner(
  tx: Pick<Tx, 'query'>,
  userId: string,
  scope: OwnerScope,
  resourceType: MemberKind,
): Promise<void> {
  refuseLast(await ownedBy(tx, userId, scope), userId, resourceType);
}

/**
 * The same check for a member who leaves an organization. The caller has locked the organization, and so all its
 * workspaces.
 */
export async function demandMayLeave(tx: Tx, { orgId, userId }: { orgId: string; userId: string }): Promise<void> {
  await lockWorkspaces(tx, Prisma.sql`m.user_id = ${userId} and m.org_id = ${orgId}`);
  await demandNotLastOwner(tx, userId, { orgId, withWorkspaces: true }, 'organization_member');
}

/**
 * The same check for an account that is about to be deleted or suspended. Locks what the account owns, then the
 * account. Every change that makes somebody an owner locks that account, so the last look finds what it came to own
 * meanwhile.
 */
export async function demandMayDeactivate(tx: Tx, userId: string): Promise<void> {
  const ofOwner = statement`t.deleted_at is null
    and t.id in (select m.org_id from organization_members m where m.user_id = ${userId} and m.role = 'owner')`;
  const organizations = await tx.lockAll('organizations', ofOwner, 'no key update');
  const workspaces = await lockWorkspaces(tx, Prisma.sql`m.user_id = ${userId}`);
  await tx.lock('users', { id: userId }, 'update');
  const owned = await ownedBy(tx, userId, 'everywhere');
  const held = new Set([...organizations, ...workspaces].map(({ id }) => id));
  if (owned.some(({ id }) => !held.has(id))) throw new TryAgain(`'${userId}' has just become an owner`);
  refuseLast(owned, userId, 'user');
}

async function lockWorkspaces(tx: Tx, ofMember: Prisma.Sql): Promise<{ id: string }[]> {
  const ofOwner = Prisma.sql`t.deleted_at is null
    and t.id in (select m.workspace_id from workspace_members m where ${ofMember} and m.role = 'owner')`;
  return tx.lockAll('workspaces', ofOwner, 'no key update');
}

function refuseLast(owned: readonly Owned[], userId: string, resourceType: MemberKind): void {
  const organizations = new Set(owned.filter(({ isLast, orgId }) => isLast && !orgId).map(({ id }) => id));
  // a listed organization covers its workspaces: it may be deleted with them
  const last = owned.filter(({ isLast, orgId }) => isLast && !(orgId && organizations.has(orgId)));
  if (last.length === 0) return;
  const names = last.slice(0, NAMED).map(({ name }) => `'${name}'`);
  const more = last.length > NAMED ? ` and ${last.length - NAMED} more` : '';
  throw conflict(
    resourceType,
    userId,
    'last_owner',
    `The user is the last owner of ${names.join(', ')}${more}: ` +
      'make another user an owner first, or delete what you no longer need.',
    { references: last.map(({ id }) => id) },
  );
}

/** How many names a message lists. The references list all of them. */
const NAMED = 5;

/** What a user owns in a scope, organizations first. Deleted ones need no owner. */
async function ownedBy(tx: Pick<Tx, 'query'>, userId: string, scope: OwnerScope): Promise<Owned[]> {
  const parts = [
    ...('everywhere' === scope || 'orgId' in scope ? [ownedOrganizations(userId, scope)] : []),
    ...('everywhere' === scope || !('orgId' in scope) || scope.withWorkspaces ? [ownedWorkspaces(userId, scope)] : []),
  ];
  return tx.query<Owned>(Prisma.sql`${Prisma.join(parts, ' union all ')} order by id`);
}

function ownedOrganizations(userId: string, scope: OwnerScope): Prisma.Sql {
  const where = scope !== 'everywhere' && 'orgId' in scope ? Prisma.sql`and m.org_id = ${scope.orgId}` : Prisma.empty;
  return Prisma.sql`select o.id, null as "orgId", o.name, not exists (
      select 1 from organization_members x join users u on u.id = x.user_id and u.is_active and u.deactivated_at is null
      where x.org_id = o.id and x.role = 'owner' and x.user_id <> m.user_id) as "isLast"
    from organization_members m join organizations o on o.id = m.org_id and o.deleted_at is null
    where m.user_id = ${userId} and m.role = 'owner' ${where}`;
}

function ownedWorkspaces(userId: string, scope: OwnerScope): Prisma.Sql {
  const where =
    scope === 'everywhere'
      ? Prisma.empty
      : 'orgId' in scope
        ? Prisma.sql`and m.org_id = ${scope.orgId}`
        : Prisma.sql`and m.workspace_id = ${scope.workspaceId}`;
  return Prisma.sql`select w.id, w.org_id as "orgId", w.name, not exists (
      select 1 from workspace_members x join users u on u.id = x.user_id and u.is_active and u.deactivated_at is null
      where x.workspace_id = w.id and x.role = 'owner' and x.user_id <> m.user_id) as "isLast"
    from workspace_members m join workspaces w on w.id = m.workspace_id and w.deleted_at is null
    join organizations o on o.id = w.org_id and o.deleted_at is null
    where m.user_id = ${userId} and m.role = 'owner' ${where}`;
}
