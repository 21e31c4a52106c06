import { conflict } from '../core/errors.ts';
import { type PrismaTx, TryAgain } from '../data/changes.ts';
import { Prisma } from '../generated/prisma/client.ts';

/** Where somebody stops being an owner: in one workspace or organization, in an organization with all its workspaces, everywhere. */
type OwnerScope = { workspaceId: string } | { orgId: string; withWorkspaces: boolean } | 'everywhere';

interface Owned {
  id: string;
  /** Of a workspace its organization; `null` for an organization. */
  orgId: string | null;
  name: string;
  /** Nobody else who is active owns it. */
  isLast: boolean;
}

type MemberKind = 'organization_member' | 'workspace_member' | 'user';

/**
 * Every organization and workspace keeps an owner whose account is active. The caller holds what the scope names, as everything does that
 * takes an owner away. @throws RESOURCE_CONFLICT `last_owner`, whose `references` are what would be left without one
 */
export async function ensureNotLastOwner(
  tx: PrismaTx,
  userId: string,
  scope: OwnerScope,
  resourceType: MemberKind,
): Promise<void> {
  refuseLast(await ownedBy(tx, userId, scope), userId, resourceType);
}

/** The same for a member who leaves an organization, which the caller holds, and so all its workspaces. */
export async function ensureMayLeave(
  tx: PrismaTx,
  { orgId, userId }: { orgId: string; userId: string },
): Promise<void> {
  await holdWorkspaces(tx, Prisma.sql`m.user_id = ${userId} and m.org_id = ${orgId}`);
  await ensureNotLastOwner(tx, userId, { orgId, withWorkspaces: true }, 'organization_member');
}

/**
 * The same for an account that is about to be deleted or suspended. Holds what it owns and then the account, in the order that all keep:
 * organizations, workspaces, users. Whoever makes somebody an owner holds that account: what it came to own meanwhile is seen at the end.
 */
export async function ensureMayDeactivate(tx: PrismaTx, userId: string): Promise<void> {
  const organizations = await tx.db.$queryRaw<{ id: string }[]>`
    select o.id from organizations o
    where o.id in (select m.org_id from organization_members m where m.user_id = ${userId} and m.role = 'owner') and o.deleted_at is null
    order by o.id for no key update`;
  const workspaces = await holdWorkspaces(tx, Prisma.sql`m.user_id = ${userId}`);
  await tx.db.$queryRaw`select 1 from users where id = ${userId} for update`;
  const owned = await ownedBy(tx, userId, 'everywhere');
  const held = new Set([...organizations, ...workspaces].map(({ id }) => id));
  if (owned.some(({ id }) => !held.has(id))) throw new TryAgain(`'${userId}' has just become an owner`);
  refuseLast(owned, userId, 'user');
}

async function holdWorkspaces(tx: PrismaTx, ofMember: Prisma.Sql): Promise<{ id: string }[]> {
  return tx.db.$queryRaw`
    select w.id from workspaces w
    where w.id in (select m.workspace_id from workspace_members m where ${ofMember} and m.role = 'owner') and w.deleted_at is null
    order by w.id for no key update`;
}

function refuseLast(owned: readonly Owned[], userId: string, resourceType: MemberKind): void {
  const organizations = new Set(owned.filter(({ isLast, orgId }) => isLast && !orgId).map(({ id }) => id));
  // an organization that is named stands for its workspaces: it may be deleted with them
  const last = owned.filter(({ isLast, orgId }) => isLast && !(orgId && organizations.has(orgId)));
  if (last.length === 0) return;
  const names = last.slice(0, NAMED).map(({ name }) => `'${name}'`);
  const more = last.length > NAMED ? ` and ${last.length - NAMED} more` : '';
  throw conflict(
    resourceType,
    userId,
    'last_owner',
    `The user is the last owner of ${names.join(', ')}${more}: make somebody else an owner first, or delete what is not needed.`,
    { references: last.map(({ id }) => id) },
  );
}

/** So many are named in a message; the references have all. */
const NAMED = 5;

/** What a user owns in a scope: organizations first. What is deleted needs no owner. */
async function ownedBy(tx: PrismaTx, userId: string, scope: OwnerScope): Promise<Owned[]> {
  const parts = [
    ...('everywhere' === scope || 'orgId' in scope ? [ownedOrganizations(userId, scope)] : []),
    ...('everywhere' === scope || !('orgId' in scope) || scope.withWorkspaces ? [ownedWorkspaces(userId, scope)] : []),
  ];
  return tx.db.$queryRaw<Owned[]>`${Prisma.join(parts, ' union all ')} order by id`;
}

function ownedOrganizations(userId: string, scope: OwnerScope): Prisma.Sql {
  const where = scope !== 'everywhere' && 'orgId' in scope ? Prisma.sql`and m.org_id = ${scope.orgId}` : Prisma.empty;
  return Prisma.sql`select o.id, null as "orgId", o.name, not exists (
      select 1 from organization_members x join users u on u.id = x.user_id and u.is_active
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
      select 1 from workspace_members x join users u on u.id = x.user_id and u.is_active
      where x.workspace_id = w.id and x.role = 'owner' and x.user_id <> m.user_id) as "isLast"
    from workspace_members m join workspaces w on w.id = m.workspace_id and w.deleted_at is null
    join organizations o on o.id = w.org_id and o.deleted_at is null
    where m.user_id = ${userId} and m.role = 'owner' ${where}`;
}
