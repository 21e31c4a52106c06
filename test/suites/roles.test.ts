import type { OperationTypeNode } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { permissionTable } from '../../src/access/permissions.ts';
import { permissionOf, type Requirement } from '../../src/graphql/plugins/access-plugin.ts';
import type { Permission } from '../../src/kernel/resources.ts';
import { type Role, roles } from '../../src/kernel/roles.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { expendable } from '../support/expendable.ts';
import { gentlestFirst, operationAt, operations, pathVariables, rootFieldOf, routeOf } from '../support/operations.ts';
import { expectOk, injectable, partsOf } from '../support/requests.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, makeOne, makerOf, type World } from '../support/world.ts';

/**
 * Who may do what (defaults §13), once more and by hand: viewer, member, editor, admin, owner. `x` yes, `-` no, `o`
 * only what one made oneself. A permission without a row here must be one of a plain resource: see {@link cellsOf}.
 */
const matrix: Partial<Record<Permission, string>> = {
  'organization:access': 'x x x x x',
  'organization:update': '- - - x x',
  'organization:delete': '- - - - x',
  'organization_member:read': 'x x x x x',
  'organization_member:create': '- - - x x',
  'organization_member:update': '- - - x x',
  'organization_member:delete': '- - - x x',
  'invitation:read': '- - - x x',
  'invitation:create': '- - - x x',
  'invitation:update': '- - - x x',
  'invitation:delete': '- - - x x',
  'user:read': 'x x x x x',
  'user:create': '- - - x x',
  'user:update': '- - - x x',
  'user:delete': '- - - x x',
  'workspace:read': 'x x x x x',
  'workspace:create': '- - - x x',
  'workspace:update': '- - - x x',
  'workspace:delete': '- - - x x', // an admin of the workspace alone may not: below
  'workspace_member:read': 'x x x x x',
  'workspace_member:create': '- - - x x',
  'workspace_member:update': '- - - x x',
  'workspace_member:delete': '- - - x x',
  'execution:read': 'x x x x x',
  'execution:create': '- - x x x',
  'thread:read': 'x x x x x',
  'thread:create': '- x x x x',
  'thread:update': '- o x x x',
  'thread:delete': '- o x x x',
  'artifact:read': 'x x x x x',
  'artifact:create': '- x x x x',
  'artifact:update': '- o x x x',
  'artifact:delete': '- o x x x',
  'artifact:promote': '- - x x x',
  'secret:read': '- x x x x',
  'secret:reveal': '- - - x x',
  'secret:create': '- - x x x',
  'secret:update': '- - x x x',
  'secret:rotate': '- - x x x',
  'secret:delete': '- - x x x',
  'secret:destroy': '- - - x x',
  'api_token:read': 'x x x x x',
  'api_token:create': 'x x x x x',
  'api_token:revoke': 'x x x x x',
  'api_token:manage': '- - - x x',
  'app_token:read': '- - x x x',
  'app_token:create': '- - x x x',
  'app_token:revoke': '- - x x x',
  'environment:read': 'x x x x x',
  'environment:create': '- - - x x',
  'environment:update': '- - - x x',
  'environment:delete': '- - - x x',
  'deployment:create': '- - x x x',
  'deployment:delete': '- - x x x',
  'model:read': 'x x x x x',
  'model:create': '- - - x x',
  'model:update': '- - - x x',
  'model:delete': '- - - x x',
  'model:execute': '- x x x x',
  'application:read': '- - - x x',
  'application:create': '- - - x x',
  'application:update': '- - - x x',
  'application:delete': '- - - x x',
  'application_grant:read': '- - - x x',
  'application_grant:revoke': '- - - x x',
  'scim_token:read': '- - - x x',
  'scim_token:create': '- - - x x',
  'scim_token:delete': '- - - x x',
  'webhook:read': '- - - x x',
  'webhook:create': '- - - x x',
  'webhook:update': '- - - x x',
  'webhook:delete': '- - - x x',
  'audit_stream:read': '- - - x x',
  'audit_stream:create': '- - - x x',
  'audit_stream:update': '- - - x x',
  'audit_stream:delete': '- - - x x',
  'identity_provider:read': '- - - x x',
  'identity_provider:create': '- - - x x',
  'identity_provider:update': '- - - x x',
  'identity_provider:delete': '- - - x x',
  'provider_account:read': '- - x x x',
  'provider_account:create': '- - - x x',
  'provider_account:update': '- - - x x',
  'provider_account:delete': '- - - x x',
  'model_entitlement:read': 'x x x x x',
  'model_entitlement:create': '- - - x x', // an admin of the workspace alone may not: below
  'model_entitlement:update': '- - - x x', // an admin of the workspace alone may not: below
  'model_entitlement:delete': '- - - x x', // an admin of the workspace alone may not: below
  'tool:read': 'x x x x x',
  'tool:create': '- - - x x',
  'tool:update': '- - - x x',
  'tool:delete': '- - - x x',
  'tool_instance:read': 'x x x x x',
  'tool_instance:create': '- x x x x',
  'tool_instance:update': '- o x x x',
  'tool_instance:delete': '- o x x x',
  'tool_instance:execute': '- x x x x',
  'connection:read': 'x x x x x',
  'connection:create': '- o x x x',
  'connection:delete': '- o x x x',
  'connection:use': '- - - x x',
  'entity:read': 'x x x x x',
  'entity:create': '- x x x x',
  'entity:update': '- x x x x',
  'entity:delete': '- - x x x',
  'memory:read': 'x x x x x',
  'memory:create': '- x x x x',
  'memory:update': '- x x x x',
  'memory:delete': '- - x x x',
  'recipe:read': 'x x x x x',
  'recipe:apply': '- - x x x',
  'recipe:export': '- - x x x',
  'organization_recipe:read': 'x x x x x',
  'organization_recipe:create': '- - x x x',
  'organization_recipe:update': '- - x x x',
  'organization_recipe:delete': '- - x x x',
  'sync:subscribe': 'x x x x x',
  'presence:update': 'x x x x x',
  'analytics:read': 'x x x x x',
  'notification:read': 'x x x x x', // everybody's own
  'notification:update': 'x x x x x',
  'activity:read': 'o o o x x',
};

/** Routes about oneself or somebody else: the permission is asked for somebody else alone. */
const freeForOneself = [
  'GET /v1/auth/me',
  'GET /v1/auth/me/profile',
  'GET /v1/users/me',
  'GET /v1/users/{user_id}',
  'PATCH /v1/users/me/preferences',
];

/** Routes about a whole organization, of a permission that lower roles have in a workspace (defaults §13). */
const ofOrganization: Readonly<Record<string, string>> = {
  'GET /v1/orgs/{org_id}/analytics': '- - - x x',
  'GET /v1/orgs/{org_id}/storage': '- - - x x',
};

/**
 * Routes that ask for no permission: public, or about the caller alone. A new one is added here on purpose, or not at
 * all.
 */
const withoutPermission = [
  'DELETE /v1/auth/factors/totp',
  'DELETE /v1/auth/passkeys/{passkey_id}',
  'GET /v1/auth/config',
  'GET /v1/auth/factors',
  'GET /v1/auth/invite-info',
  'GET /v1/auth/sso/callback/oidc',
  'GET /v1/orgs',
  'PATCH /v1/auth/passkeys/{passkey_id}',
  'POST /v1/auth/factors/proof',
  'POST /v1/auth/factors/proof/begin',
  'POST /v1/auth/factors/recovery-codes',
  'POST /v1/auth/factors/totp',
  'POST /v1/auth/factors/totp/confirm',
  'POST /v1/auth/forgot-password',
  'POST /v1/auth/login',
  'POST /v1/auth/login/complete',
  'POST /v1/auth/logout',
  'POST /v1/auth/passkeys',
  'POST /v1/auth/passkeys/begin',
  'POST /v1/auth/passkeys/sign-in',
  'POST /v1/auth/passkeys/sign-in/begin',
  'POST /v1/auth/refresh',
  'POST /v1/auth/register',
  'POST /v1/auth/resend-verification',
  'POST /v1/auth/reset-password',
  'POST /v1/auth/sso/callback/saml',
  'POST /v1/auth/sso/discover',
  'POST /v1/auth/sso/exchange',
  'POST /v1/auth/sso/initiate',
  'POST /v1/auth/sso/logout',
  'POST /v1/auth/switch-org',
  'POST /v1/auth/verify-email',
  'POST /v1/connections/oauth/exchange', // of the state's user; the service asks for connection:create
  'POST /v1/invitations/accept',
  'POST /v1/orgs',
  'POST /v1/orgs/{org_id}/api-tokens/refresh',
  'PUT /v1/notifications/preferences', // of the account itself: tokens are refused
  'PUT /v1/orgs/{org_id}/storage', // of administrators of the platform
];

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());

/** What is plain is read by all and changed by editors. Who may do anything else is told by a row. */
function cellsOf(permission: Permission): string {
  const plain: Record<string, string> = { read: 'x x x x x' };
  for (const verb of ['create', 'update', 'delete']) plain[verb] = '- - x x x';
  return matrix[permission] ?? plain[permission.split(':')[1]!] ?? 'has no row';
}

type Cell = 'x' | '-' | 'o';
const cellOf = (permission: Permission, role: Role, cells = cellsOf(permission)): Cell =>
  cells.split(' ')[roles.indexOf(role)] as Cell;

function askedFor(operation: CompiledOperation): Permission | null {
  const access = schema.getRootType(operation.type as OperationTypeNode)?.getFields()[rootFieldOf(operation)]
    ?.extensions.access;
  return permissionOf(access as Requirement);
}

const permissioned = gentlestFirst().flatMap((operation) => {
  const permission = askedFor(operation);
  return permission && operation.type !== 'subscription' && !freeForOneself.includes(routeOf(operation))
    ? [[routeOf(operation), permission, operation] as const]
    : [];
});

test('every permission has a row or is plain, and the table of the product says the same', () => {
  const permissions = Object.keys(permissionTable) as Permission[];
  expect(permissions).toEqual(expect.arrayContaining(Object.keys(matrix)));
  for (const permission of permissions) {
    const rule: { from: Role | null; ownFrom?: Role; organizationFrom?: Role } = permissionTable[permission];
    const said = roles.map((role) => {
      const reaches = (least: Role | null | undefined) => least && roles.indexOf(role) >= roles.indexOf(least);
      return reaches(rule.from) || reaches(rule.organizationFrom) ? 'x' : reaches(rule.ownFrom) ? 'o' : '-';
    });
    expect(said.join(' '), permission).toBe(cellsOf(permission));
  }
});

test('every route asks for a permission, or is in the list of those that need none', () => {
  expect(
    operations
      .filter((operation) => !askedFor(operation))
      .map(routeOf)
      .sort(),
  ).toEqual(withoutPermission);
});

test('a member of the organization who is in no workspace sees none of them', async () => {
  const headers = { authorization: `Bearer ${world.guest.accessToken}` };
  const outsider = (await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/workspaces'))) as {
    workspace_id: string;
  };
  const list = await expectOk<{ workspaces: { workspace_id: string }[] }>(app, {
    url: `/v1/orgs/${world.ids.org_id}/workspaces`,
    headers,
  });
  expect(list.workspaces.map(({ workspace_id }) => workspace_id)).not.toContain(outsider.workspace_id);
  const answer = await app.server.inject({
    url: `/v1/orgs/${world.ids.org_id}/workspaces/${outsider.workspace_id}`,
    headers,
  });
  expect(answer.json()).toMatchObject({ error: 'FORBIDDEN', details: { required_permission: 'workspace:read' } });
});

/**
 * Lists of one's own: of deleted artifacts; of activity unless somebody asks for the records of somebody else, which
 * are refused.
 */
const givesOwn = ({ path }: (typeof operations)[number], role: Role) =>
  path.endsWith('/deleted-artifacts') ||
  (path.includes('/activity') && (!path.includes('{user_id}') || world.ids.user_id === world.accounts[role].userId));

/**
 * The roles that a route is tried with: always those on both sides of a boundary, above which one may more than below,
 * and the least of those who may; of the others some.
 */
function rolesFor(route: string, permission: Permission): Role[] {
  const cells = roles.map((role) => cellOf(permission, role, ofOrganization[route]));
  const least = cells.indexOf('x');
  const isOther = (_: Role, at: number) =>
    at !== least && [at - 1, at + 1].every((beside) => cells[beside] === undefined || cells[beside] === cells[at]);
  const left = roles.filter(isOther);
  const chosen = thinned(left, route);
  return roles.filter((role) => !left.includes(role) || chosen.includes(role));
}

describe.each(permissioned)('%s asks for %s', (route, permission, operation) => {
  test.each(rolesFor(route, permission))('%s', async (role) => {
    const cell = cellOf(permission, role, ofOrganization[route]);
    const isAllowed = cell === 'x' || (cell === 'o' && givesOwn(operation, role));
    // organizations cannot be made anew within one: only the denials are tried
    if (isAllowed && routeOf(operation) === 'DELETE /v1/orgs/{org_id}') return;
    const answer = await app.server.inject(injectable(operation, await expendable(app, world, operation, role)));
    if (isAllowed) {
      // the permission is asked before uniqueness: a second one of a kind is allowed, too
      const isTaken = answer.statusCode === 409 && answer.json<{ error: string }>().error === 'RESOURCE_ALREADY_EXISTS';
      expect(answer.statusCode < 300 || isTaken, answer.body).toBe(true);
    } else {
      expect(answer.statusCode, answer.body).toBe(403);
      expect(answer.json<{ details: unknown }>().details).toEqual({ required_permission: permission });
    }
  });
});

test('what only its maker may do of the members, its maker may', async () => {
  const ownOnly = permissioned.filter(
    // what is a member's own there is the tool instance: test/tools/connections
    ([, permission, { method }]) =>
      cellOf(permission, 'member') === 'o' && method !== 'GET' && !/^(?:connection|activity):/.test(permission),
  );
  expect(ownOnly.length).toBeGreaterThan(1);
  for (const [title, , operation] of ownOnly) {
    const last = pathVariables(operation.path).at(-1)!;
    const maker = makerOf(last)!;
    const token = world.accounts.member.accessToken;
    const made = await expectOk<Record<string, string>>(app, injectable(maker, partsOf(maker, world, { token })));
    const parts = partsOf(operation, { ...world, ids: { ...world.ids, [last]: made[last]! } }, { token });
    const own = await app.server.inject(injectable(operation, parts));
    expect(own.statusCode, `${title}: ${own.body}`).toBeLessThan(300);
  }
});

test('a workspace admin who is only a member of the organization may not delete it, its admin may', async () => {
  const maker = operationAt('POST', '/v1/orgs/{org_id}/workspaces');
  const made = (await makeOne(app, world, maker)) as { workspace_id: string };
  const url = `/v1/orgs/${world.ids.org_id}/workspaces/${made.workspace_id}`;
  await expectOk(app, {
    method: 'POST',
    url: `${url}/members`,
    headers: world.as('owner'),
    payload: { user_id: world.accounts.editor.userId, role: 'admin' },
  });
  expect((await app.server.inject({ method: 'DELETE', url, headers: world.as('editor') })).json()).toMatchObject({
    error: 'FORBIDDEN',
    details: { required_permission: 'workspace:delete' },
  });
  expect((await app.server.inject({ method: 'DELETE', url, headers: world.as('admin') })).statusCode).toBe(200);
});
