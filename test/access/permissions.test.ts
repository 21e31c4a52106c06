import { describe, expect, it } from 'vitest';
import { granted, isPermission, permissionTable, readPermissionOf, rolesWith } from '../../src/access/permissions.ts';
import { type Permission, type ResourceWord, resourceWords } from '../../src/kernel/resources.ts';
import type { Grant } from '../../src/kernel/roles.ts';
import { roles } from '../../src/kernel/roles.ts';

/**
 * What viewer, member, editor, admin and owner may: all, only their `o`wn, or nothing. A resource without a row is
 * plain: see {@link ofPlain}.
 */
const expected: Partial<Record<Permission, string>> = {
  'organization:access': 'all all all all all',
  'organization:update': '- - - all all',
  'organization:delete': '- - - - all',
  'organization_member:read': 'all all all all all',
  'organization_member:create': '- - - all all',
  'organization_member:update': '- - - all all',
  'organization_member:delete': '- - - all all',
  'invitation:read': '- - - all all',
  'invitation:create': '- - - all all',
  'invitation:update': '- - - all all',
  'invitation:delete': '- - - all all',
  'application:read': '- - - all all',
  'application:create': '- - - all all',
  'application:update': '- - - all all',
  'application:delete': '- - - all all',
  'application_grant:read': '- - - all all',
  'application_grant:revoke': '- - - all all',
  'scim_token:read': '- - - all all',
  'scim_token:create': '- - - all all',
  'scim_token:delete': '- - - all all',
  'webhook:read': '- - - all all',
  'webhook:create': '- - - all all',
  'webhook:update': '- - - all all',
  'webhook:delete': '- - - all all',
  'audit_stream:read': '- - - all all',
  'audit_stream:create': '- - - all all',
  'audit_stream:update': '- - - all all',
  'audit_stream:delete': '- - - all all',
  'identity_provider:read': '- - - all all',
  'identity_provider:create': '- - - all all',
  'identity_provider:update': '- - - all all',
  'identity_provider:delete': '- - - all all',
  'user:read': 'all all all all all',
  'user:create': '- - - all all',
  'user:update': '- - - all all',
  'user:delete': '- - - all all',
  'workspace:read': 'all all all all all',
  'workspace:create': '- - - all all',
  'workspace:update': '- - - all all',
  'workspace:delete': '- - - - all',
  'workspace_member:read': 'all all all all all',
  'workspace_member:create': '- - - all all',
  'workspace_member:update': '- - - all all',
  'workspace_member:delete': '- - - all all',
  'release:read': 'all all all all all',
  'release:create': '- - all all all',
  'release:delete': '- - all all all',
  'execution:read': 'all all all all all',
  'execution:create': '- - all all all',
  'thread:read': 'all all all all all',
  'thread:create': '- all all all all',
  'thread:update': '- own all all all',
  'thread:delete': '- own all all all',
  'artifact:read': 'all all all all all',
  'artifact:create': '- all all all all',
  'artifact:update': '- own all all all',
  'artifact:delete': '- own all all all',
  'artifact:promote': '- - all all all',
  'secret:read': '- all all all all',
  'secret:reveal': '- - - all all',
  'secret:create': '- - all all all',
  'secret:update': '- - all all all',
  'secret:rotate': '- - all all all',
  'secret:delete': '- - all all all',
  'secret:destroy': '- - - all all',
  'api_token:read': 'all all all all all',
  'api_token:create': 'all all all all all',
  'api_token:revoke': 'all all all all all',
  'api_token:manage': '- - - all all',
  'app_token:read': '- - all all all',
  'app_token:create': '- - all all all',
  'app_token:revoke': '- - all all all',
  'environment:read': 'all all all all all',
  'environment:create': '- - - all all',
  'environment:update': '- - - all all',
  'environment:delete': '- - - all all',
  'deployment:create': '- - all all all',
  'deployment:delete': '- - all all all',
  'model:read': 'all all all all all',
  'model:create': '- - - all all',
  'model:update': '- - - all all',
  'model:delete': '- - - all all',
  'model:execute': '- all all all all',
  'provider_account:read': '- - all all all',
  'provider_account:create': '- - - all all',
  'provider_account:update': '- - - all all',
  'provider_account:delete': '- - - all all',
  'model_entitlement:read': 'all all all all all',
  'model_entitlement:create': '- - - - -',
  'model_entitlement:update': '- - - - -',
  'model_entitlement:delete': '- - - - -',
  'tool:read': 'all all all all all',
  'tool:create': '- - - all all',
  'tool:update': '- - - all all',
  'tool:delete': '- - - all all',
  'tool_instance:read': 'all all all all all',
  'tool_instance:create': '- all all all all',
  'tool_instance:update': '- own all all all',
  'tool_instance:delete': '- own all all all',
  'tool_instance:execute': '- all all all all',
  'connection:read': 'all all all all all',
  'connection:create': '- own all all all',
  'connection:delete': '- own all all all',
  'connection:use': '- - - all all',
  'entity:read': 'all all all all all',
  'entity:create': '- all all all all',
  'entity:update': '- all all all all',
  'entity:delete': '- - all all all',
  'memory:read': 'all all all all all',
  'memory:create': '- all all all all',
  'memory:update': '- all all all all',
  'memory:delete': '- - all all all',
  'recipe:read': 'all all all all all',
  'recipe:apply': '- - all all all',
  'recipe:export': '- - all all all',
  'organization_recipe:read': 'all all all all all',
  'organization_recipe:create': '- - all all all',
  'organization_recipe:update': '- - all all all',
  'organization_recipe:delete': '- - all all all',
  'sync:subscribe': 'all all all all all',
  'presence:update': 'all all all all all',
  'analytics:read': 'all all all all all',
  'activity:read': 'own own own all all',
  'notification:read': 'all all all all all',
  'notification:update': 'all all all all all',
};

/** What is plain is read by all, and changed by editors. */
const changed = '- - all all all';
const ofPlain: Record<string, string> = {
  read: 'all all all all all',
  create: changed,
  update: changed,
  delete: changed,
};

describe('a role', () => {
  it('may do exactly this with each permission', () => {
    const short: Record<Grant, string> = { all: 'all', own: 'own', none: '-' };
    const table = Object.fromEntries(
      (Object.keys(permissionTable) as Permission[]).map((permission) => [
        permission,
        roles.map((role) => short[granted(role, permission)]).join(' '),
      ]),
    );
    const named = new Set(Object.keys(expected).map((permission) => permission.split(':')[0]));
    const plain = Object.keys(table).flatMap((permission) => {
      const [word, verb] = permission.split(':') as [string, string];
      return named.has(word) ? [] : [[permission, ofPlain[verb] ?? 'has no row']];
    });
    expect(table).toEqual({ ...expected, ...Object.fromEntries(plain) });
  });

  it('in the organization grants a few permissions in each of its workspaces', () => {
    const fromOrganization = Object.entries(permissionTable).flatMap(([permission, { organizationFrom }]) =>
      organizationFrom ? [[permission, organizationFrom]] : [],
    );
    expect(fromOrganization).toEqual([
      ['workspace:delete', 'admin'],
      ['model_entitlement:create', 'admin'],
      ['model_entitlement:update', 'admin'],
      ['model_entitlement:delete', 'admin'],
    ]);
  });

  it('is listed for a permission only if it has that for everything', () => {
    expect(rolesWith('secret:read')).toEqual(['member', 'editor', 'admin', 'owner']);
    expect(rolesWith('thread:update')).toEqual(['editor', 'admin', 'owner']);
    expect(rolesWith('model_entitlement:create')).toEqual([]);
  });
});

describe('the permission to read a resource', () => {
  it('is its own, or that of another, or none', () => {
    const special: Partial<Record<ResourceWord, Permission | null>> = {
      organization: 'organization:access',
      deployment: 'environment:read',
      presence: 'sync:subscribe',
      tool_action: 'tool_instance:read',
    };
    for (const word of resourceWords) {
      const own = `${word}:read`;
      expect([word, readPermissionOf(word)]).toEqual([word, special[word] ?? (isPermission(own) ? own : null)]);
    }
    expect([readPermissionOf('session'), readPermissionOf('sync'), readPermissionOf('secret')]).toEqual([
      null,
      null,
      'secret:read',
    ]);
  });
});

it.each(['', 'secret', 'secret:*', 'secret:fly', 'toString', '__proto__'])('%j is no permission', (name) => {
  expect(isPermission(name)).toBe(false);
});
