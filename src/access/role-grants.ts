import type { Permission } from '../kernel/resources.ts';
import { atLeast, type Grant, higherRole, type Role } from '../kernel/roles.ts';
import { granted, permissionTable } from './permissions.ts';

/** Owners and administrators of an organization have the same role in each of its workspaces. */
export function effectiveRole(organizationRole: Role, workspaceRole: Role | null): Role | null {
  return higherRole(workspaceRole, atLeast(organizationRole, 'admin') ? organizationRole : null);
}

/** Whether a role in an organization also applies in each of its workspaces. */
export const reachesEveryWorkspace = (role: Role): boolean => effectiveRole(role, null) !== null;

/** Whether a role in the organization alone grants a permission of the workspace. */
export function isFromOrganization(role: Role, permission: Permission): boolean {
  const { organizationFrom } = permissionTable[permission];
  return organizationFrom !== undefined && atLeast(role, organizationFrom);
}

/** The grant of somebody with these roles in an organization and in one of its workspaces. */
export function grantIn(organizationRole: Role, workspaceRole: Role | null, permission: Permission): Grant {
  const role = effectiveRole(organizationRole, workspaceRole);
  if (!role) return 'none';
  return isFromOrganization(organizationRole, permission) ? 'all' : granted(role, permission);
}
