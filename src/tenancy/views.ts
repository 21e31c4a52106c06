import { rolesWith } from '../access/permissions.ts';
import { reachesEveryWorkspace } from '../access/role-grants.ts';
import type { Permission } from '../kernel/resources.ts';
import { roles } from '../kernel/roles.ts';

/**
 * Who is where, and what is still there: the rules of this group as SQL, for statements of the groups above. Arguments
 * are expressions: a column of the statement, or a parameter.
 */

const listed = (some: readonly string[]): string => `(${some.map((role) => `'${role}'`).join(', ')})`;
const ADMINISTRATORS = listed(rolesWith('workspace:update'));
const EVERYWHERE = listed(roles.filter(reachesEveryWorkspace));

/** The identifiers of the workspaces of an organization that are not deleted. */
export const liveWorkspaces = (orgId: string): string =>
  `select w.id from workspaces w where w.org_id = ${orgId} and w.deleted_at is null`;

/** Whether a workspace is not deleted. */
export const isLiveWorkspace = (id: string): string =>
  `exists (select 1 from workspaces w where w.id = ${id} and w.deleted_at is null)`;

/** What people set of a workspace that is not deleted, and what could be the same in another one. */
export const workspaceSettings = (orgId: string, workspaceId: string): string =>
  `select w.name, w.description, w.tags, w.language from workspaces w
    where w.org_id = ${orgId} and w.id = ${workspaceId} and w.deleted_at is null`;

/** Whether an organization has its secrets revealed only for a reason. */
export const demandsRevealReason = (orgId: string): string =>
  `exists (select 1 from organizations o where o.id = ${orgId} and o.reveal_reason_required)`;

/** Whether an organization is not deleted. */
export const isLiveOrganization = (id: string): string =>
  `exists (select 1 from organizations o where o.id = ${id} and o.deleted_at is null)`;

/** Whether neither a workspace nor its organization is deleted. */
export const isLivePlace = (workspaceId: string): string =>
  `exists (select 1 from workspaces w join organizations o on o.id = w.org_id
    where w.id = ${workspaceId} and w.deleted_at is null and o.deleted_at is null)`;

/** A row if a user is a member of an organization: `$1`, `$2`. */
export const IS_MEMBER = 'select 1 from organization_members m where m.org_id = $1 and m.user_id = $2';

/** `updated_at` of the role of a user in an organization; no row for others. */
export const organizationRoleSince = (orgId: string, userId: string): string =>
  `select m.updated_at from organization_members m where m.org_id = ${orgId} and m.user_id = ${userId}`;

/** `updated_at` of each role that lets a user into a workspace: the one in it, and one that reaches every workspace. */
export const workspaceRolesSince = (orgId: string, workspaceId: string, userId: string): string =>
  `select m.updated_at from workspace_members m
    where m.org_id = ${orgId} and m.workspace_id = ${workspaceId} and m.user_id = ${userId}
  union all ${organizationRoleSince(orgId, userId)} and m.role in ${EVERYWHERE}`;

/**
 * Whether a user has a permission in a workspace by a role there, where roles of the organization give none.
 * @param permission one that no role in the organization alone grants: see `reachesEveryWorkspace`
 */
export const hasInWorkspace = (permission: Permission, workspaceId: string, userId: string): string =>
  `exists (select 1 from workspace_members m where m.workspace_id = ${workspaceId} and m.user_id = ${userId}
    and m.role in ${listed(rolesWith(permission))})`;

/** The `user_id` of those who administer an organization. */
export const organizationAdministrators = (orgId: string): string =>
  `select m.user_id from organization_members m where m.org_id = ${orgId} and m.role in ${ADMINISTRATORS}`;

/** The `user_id` of those who administer a workspace by a role in it; {@link organizationAdministrators} do so too. */
export const workspaceAdministrators = (orgId: string, workspaceId: string): string =>
  `select m.user_id from workspace_members m
    where m.org_id = ${orgId} and m.workspace_id = ${workspaceId} and m.role in ${ADMINISTRATORS}`;

/** Whether the account of a row of users is in use: neither deactivated nor deleted. */
export const isActiveAccount = (user: string): string => `${user}.is_active and ${user}.deactivated_at is null`;

const hasRole = (role: string | undefined): string => (role ? ` and m.role = coalesce(${role}, m.role)` : '');

/** Whether a user is a member of an organization. @param role with this role, if it is not null */
export const isInOrganization = (orgId: string, userId: string, role?: string): string =>
  `exists (select from organization_members m where m.org_id = ${orgId} and m.user_id = ${userId}${hasRole(role)})`;

/** Whether a user is a member of a workspace itself. @param role with this role, if it is not null */
export const isInWorkspace = (workspaceId: string, userId: string, role?: string): string =>
  `exists (select from workspace_members m
    where m.workspace_id = ${workspaceId} and m.user_id = ${userId}${hasRole(role)})`;

/** Whether a user may still open an organization, or the workspace of it, if one is given. */
export const reaches = (orgId: string, workspaceId: string, userId: string): string =>
  `case when ${workspaceId} is null then ${isInOrganization(orgId, userId)}
    else exists (${workspaceRolesSince(orgId, workspaceId, userId)}) end`;
