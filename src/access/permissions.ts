/**
 * Who may do what (defaults §13), as data: each permission with the least role that grants it. `own` means that the role grants it
 * for content that the caller created. Permissions of organization-wide resources are judged by the role in the organization,
 * the others by the role in the workspace.
 */
export const roles = ['viewer', 'member', 'editor', 'admin', 'owner'] as const;
export type Role = (typeof roles)[number];

export type Grant = 'all' | 'own' | 'none';

interface Rule {
  /** The least role that may do it to everything; `null` for what no role in a workspace gives, only one in its organization. */
  from: Role | null;
  /** The least role that may do it to what it created, where that is a lower one. */
  ownFrom?: Role;
  /** For a workspace's permission: the least role in its organization that also grants it. */
  organizationFrom?: Role;
}

export const permissionTable = {
  'organization:access': { from: 'viewer' },
  'organization:update': { from: 'admin' },
  'organization:delete': { from: 'owner' },
  'organization_member:read': { from: 'viewer' },
  'organization_member:create': { from: 'admin' },
  'organization_member:update': { from: 'admin' },
  'organization_member:delete': { from: 'admin' },
  'invitation:read': { from: 'admin' },
  'invitation:create': { from: 'admin' },
  'invitation:update': { from: 'admin' },
  'invitation:delete': { from: 'admin' },
  'user:read': { from: 'viewer' },
  'user:create': { from: 'admin' },
  'user:update': { from: 'admin' },
  'user:delete': { from: 'admin' },
  'workspace:read': { from: 'viewer' },
  'workspace:create': { from: 'admin' },
  'workspace:update': { from: 'admin' },
  'workspace:delete': { from: 'owner', organizationFrom: 'admin' },
  'workspace_member:read': { from: 'viewer' },
  'workspace_member:create': { from: 'admin' },
  'workspace_member:update': { from: 'admin' },
  'workspace_member:delete': { from: 'admin' },
  'namespace:read': { from: 'viewer' },
  'namespace:create': { from: 'editor' },
  'namespace:update': { from: 'editor' },
  'namespace:delete': { from: 'editor' },
  'app:read': { from: 'viewer' },
  'app:create': { from: 'editor' },
  'app:update': { from: 'editor' },
  'app:delete': { from: 'editor' },
  'release:read': { from: 'viewer' },
  'release:create': { from: 'editor' },
  'release:delete': { from: 'editor' },
  'thread:read': { from: 'viewer' },
  'thread:create': { from: 'member' },
  'thread:update': { from: 'editor', ownFrom: 'member' },
  'thread:delete': { from: 'editor', ownFrom: 'member' },
  'secret:read': { from: 'member' },
  'secret:reveal': { from: 'admin' },
  'secret:create': { from: 'editor' },
  'secret:update': { from: 'editor' },
  'secret:rotate': { from: 'editor' },
  'secret:delete': { from: 'editor' },
  'secret:destroy': { from: 'admin' },
  'api_token:read': { from: 'viewer' },
  'api_token:create': { from: 'viewer' },
  'api_token:revoke': { from: 'viewer' },
  'api_token:manage': { from: 'admin' },
  'app_token:read': { from: 'editor' },
  'app_token:create': { from: 'editor' },
  'app_token:revoke': { from: 'editor' },
  'environment:read': { from: 'viewer' },
  'environment:create': { from: 'admin' },
  'environment:update': { from: 'admin' },
  'environment:delete': { from: 'admin' },
  'deployment:create': { from: 'editor' },
  'deployment:delete': { from: 'editor' },
  'model:read': { from: 'viewer' },
  'model:create': { from: 'admin' },
  'model:update': { from: 'admin' },
  'model:delete': { from: 'admin' },
  'model:execute': { from: 'member' },
  'provider_account:read': { from: 'editor' },
  'provider_account:create': { from: 'admin' },
  'provider_account:update': { from: 'admin' },
  'provider_account:delete': { from: 'admin' },
  'model_entitlement:read': { from: 'viewer' },
  'model_entitlement:create': { from: null, organizationFrom: 'admin' },
  'model_entitlement:update': { from: null, organizationFrom: 'admin' },
  'model_entitlement:delete': { from: null, organizationFrom: 'admin' },
  'sync:subscribe': { from: 'viewer' },
} as const satisfies Record<string, Rule>;

export type Permission = keyof typeof permissionTable;

const rank: Record<Role, number> = { viewer: 0, member: 1, editor: 2, admin: 3, owner: 4 };

/** Whether `role` is at least `least`. */
export const atLeast = (role: Role, least: Role): boolean => rank[role] >= rank[least];

/** The higher of two roles; `null` is none. */
export function higherRole(a: Role | null, b: Role | null): Role | null {
  if (!a || !b) return a ?? b;
  return rank[a] >= rank[b] ? a : b;
}

/** What a role is granted of a permission: everything, its own content, or nothing. */
export function granted(role: Role, permission: Permission): Grant {
  const rule: Rule = permissionTable[permission];
  if (rule.from && atLeast(role, rule.from)) return 'all';
  return rule.ownFrom && atLeast(role, rule.ownFrom) ? 'own' : 'none';
}
