import { permissions, type Role, roles } from '../generated/permissions';

export type Permission = keyof typeof permissions;
interface Rule {
  from?: Role;
  ownFrom?: Role;
  organizationFrom?: Role;
}

/** The role in the organization, and the effective role in the workspace. */
export interface Roles {
  organization: Role;
  workspace: Role | null;
}

export const atLeast = (role: Role | null, least: Role): boolean =>
  role !== null && roles.indexOf(role) >= roles.indexOf(least);

/** Administrators of an organization have the same role in each of its workspaces. */
export const effectiveRole = (organization: Role, workspace: Role | null): Role | null => {
  const inherited = atLeast(organization, 'admin') ? organization : null;
  return workspace && (!inherited || atLeast(workspace, inherited)) ? workspace : inherited;
};

/** Whether the service would allow it: the console shows nobody what the service would refuse. */
export function isAllowed({ organization, workspace }: Roles, permission: Permission, { isOwn = false } = {}): boolean {
  const { from, ownFrom, organizationFrom }: Rule = permissions[permission];
  if (organizationFrom && atLeast(organization, organizationFrom)) return true;
  if (from && atLeast(workspace, from)) return true;
  return Boolean(isOwn && ownFrom && atLeast(workspace, ownFrom));
}

/** Whether a role in the organization alone allows it: for what belongs to no workspace. */
export const isAllowedInOrganization = ({ organization }: Roles, permission: Permission): boolean =>
  isAllowed({ organization, workspace: organization }, permission);

/** What a role alone may do, for the table of roles. */
export const grantOf = (role: Role, permission: Permission): 'all' | 'own' | 'none' => {
  const { from, ownFrom }: Rule = permissions[permission];
  if (from && atLeast(role, from)) return 'all';
  return ownFrom && atLeast(role, ownFrom) ? 'own' : 'none';
};

/** Whether somebody administers the platform, beside what they are in organizations. */
export const administersPlatform = ({ roles }: { roles: readonly string[] }): boolean =>
  roles.includes('platform_admin');
