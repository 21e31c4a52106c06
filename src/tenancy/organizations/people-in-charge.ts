import { granted } from '../../access/permissions.ts';
import { effectiveRole } from '../../access/role-grants.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { Permission } from '../../kernel/resources.ts';
import type { Role } from '../../kernel/roles.ts';

/** A row, with where it is and who made it. */
export interface MadeRow {
  orgId: string;
  workspaceId: string | null;
  createdBy: string | null;
}

/** The users to tell about a row: its creator, if still active and allowed to read it; else the owners. */
export async function peopleInCharge(
  db: QueryRunner,
  { orgId, workspaceId, createdBy }: MadeRow,
  permission: Permission,
): Promise<string[]> {
  const creators = await db.query<{ id: string; organizationRole: Role; workspaceRole: Role | null }>(
    statement`select u.id, m.role as "organizationRole",
      (select w.role from workspace_members w where w.workspace_id = ${workspaceId} and w.user_id = u.id)
        as "workspaceRole"
    from users u join organization_members m on m.user_id = u.id and m.org_id = ${orgId}
    where u.id = ${createdBy} and u.is_active`,
  );
  const readers = creators.filter(({ organizationRole, workspaceRole }) => {
    const role = workspaceId ? effectiveRole(organizationRole, workspaceRole) : organizationRole;
    return role !== null && granted(role, permission) !== 'none';
  });
  if (readers.length > 0) return readers.map(({ id }) => id);
  return ownersOf(db, orgId);
}

/** The owners of an organization whose accounts are in use, in the order in which they joined. */
export async function ownersOf(db: QueryRunner, orgId: string): Promise<string[]> {
  const owners = await db.query<{ id: string }>(
    statement`select u.id from users u join organization_members m on m.user_id = u.id
    where m.org_id = ${orgId} and m.role = 'owner' and u.is_active order by m.id`,
  );
  return owners.map(({ id }) => id);
}
