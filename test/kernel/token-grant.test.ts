import { describe, expect, it } from 'vitest';
import { expand, isWord } from '../../src/access/scopes.ts';
import { parseEndpointPattern } from '../../src/kernel/endpoint-paths.ts';
import type { Permission } from '../../src/kernel/resources.ts';
import {
  grants,
  isRestricted,
  mayEnter,
  narrowedTo,
  type Reach,
  reaches,
  restrictionsOf,
  type TokenGrant,
} from '../../src/kernel/token-grant.ts';

const everything = new Set([...expand(['admin'], []), 'api_token:create', 'app_token:create'] as Permission[]);
const tokenWith = (given: Partial<TokenGrant> = {}): TokenGrant => ({
  id: 'tok_1',
  type: 'pat',
  familyId: 'tok_0',
  hash: 'h',
  orgId: 'org_1',
  appId: null,
  permissions: everything,
  workspaceIds: [],
  namespaceIds: [],
  environmentIds: [],
  impliedWorkspaceIds: null,
  endpoints: null,
  rateLimitRps: null,
  rateLimitBurst: null,
  root: null,
  ...given,
});
const inside = (where: Partial<Reach> = {}): Reach => ({ orgId: 'org_1', ...where });

describe('a token', () => {
  it('works in its own organization only', () => {
    expect(reaches(tokenWith(), 'workspace:create', inside())).toBe(true);
    expect(reaches(tokenWith(), 'workspace:read', { orgId: 'org_2' })).toBe(false);
  });

  it('needs the permission, except to enter its organization', () => {
    const token = tokenWith({ permissions: new Set<Permission>(['secret:read']) });
    expect(grants(token, 'secret:read')).toBe(true);
    expect(grants(token, 'secret:update')).toBe(false);
    expect(grants(token, 'organization:access')).toBe(true);
    expect(reaches(token, 'secret:read', inside())).toBe(true);
    expect(reaches(token, 'secret:update', inside())).toBe(false);
    expect(reaches(token, 'organization:access', inside())).toBe(true);
  });
});

describe('a token for some workspaces', () => {
  const token = tokenWith({ workspaceIds: ['ws_1', 'ws_2'] });

  it.each<[Permission, string | null | undefined, boolean]>([
    ['thread:update', 'ws_1', true],
    ['thread:update', 'ws_2', true],
    ['thread:update', 'ws_3', false],
    ['thread:read', 'ws_3', false],
    ['thread:read', '', false],
    ['workspace:create', undefined, false],
    ['workspace:create', null, false],
    ['workspace:read', undefined, true],
    ['organization:access', undefined, true],
    ['sync:subscribe', null, true],
    ['recipe:export', undefined, false],
  ])('%s in %s: %s', (permission, workspaceId, expected) => {
    expect(reaches(token, permission, inside({ workspaceId }))).toBe(expected);
  });
});

describe('a token that is narrowed to a workspace', () => {
  it('reaches nothing else, and nothing more', () => {
    const narrowed = narrowedTo(tokenWith(), 'ws_1')!;
    expect(isRestricted(narrowed)).toBe(true);
    expect(reaches(narrowed, 'thread:update', inside({ workspaceId: 'ws_1' }))).toBe(true);
    expect(reaches(narrowed, 'thread:read', inside({ workspaceId: 'ws_2' }))).toBe(false);
    expect(reaches(narrowed, 'workspace:create', inside())).toBe(false);
    const some = tokenWith({ workspaceIds: ['ws_1', 'ws_2'] });
    expect(restrictionsOf(narrowedTo(some, 'ws_2')).workspaceId).toEqual(['ws_2']);
    expect(narrowedTo(some, 'ws_3')).toBeNull();
    const implied = tokenWith({ namespaceIds: ['ns_1'], impliedWorkspaceIds: ['ws_1', 'ws_2'] });
    expect(restrictionsOf(narrowedTo(implied, 'ws_1'))).toMatchObject({ workspaceId: ['ws_1'], namespaceId: ['ns_1'] });
    expect(narrowedTo(implied, 'ws_3')).toBeNull();
    expect(narrowedTo(tokenWith({ impliedWorkspaceIds: [] }), 'ws_1')).toBeNull();
  });
});

describe('a token for some namespaces and environments', () => {
  const both = tokenWith({ namespaceIds: ['ns_1'], environmentIds: ['env_1'] });
  const namespaces = tokenWith({ namespaceIds: ['ns_1'] });
  const environments = tokenWith({ environmentIds: ['env_1'] });

  it.each<[string, TokenGrant, Partial<Reach>, change: boolean, read: boolean]>([
    ['both, in one of each', both, { namespaceId: 'ns_1', environmentId: 'env_1' }, true, true],
    ['both, in a namespace', both, { namespaceId: 'ns_1' }, true, true],
    ['both, in an environment', both, { environmentId: 'env_1' }, true, true],
    ['both, in another namespace', both, { namespaceId: 'ns_2', environmentId: 'env_1' }, false, false],
    ['both, in another environment', both, { namespaceId: 'ns_1', environmentId: 'env_2' }, false, false],
    ['both, nowhere', both, {}, false, true],
    ['both, in an empty one', both, { namespaceId: '' }, false, false],
    ['namespaces, in one', namespaces, { namespaceId: 'ns_1' }, true, true],
    ['namespaces, in one and any environment', namespaces, { namespaceId: 'ns_1', environmentId: 'env_2' }, true, true],
    ['namespaces, in an environment', namespaces, { environmentId: 'env_1' }, false, true],
    ['namespaces, in another', namespaces, { namespaceId: 'ns_2' }, false, false],
    ['environments, in one', environments, { environmentId: 'env_1' }, true, true],
    ['environments, in another', environments, { environmentId: 'env_2' }, false, false],
    ['environments, in a namespace', environments, { namespaceId: 'ns_1' }, false, true],
    ['environments, in null', environments, { environmentId: null }, false, true],
  ])('%s', (_title, token, where, change, read) => {
    expect(reaches(token, 'secret:update', inside(where))).toBe(change);
    expect(reaches(token, 'secret:read', inside(where))).toBe(read);
  });
});

describe('a token for some namespaces, in the workspaces of these', () => {
  const token = tokenWith({ namespaceIds: ['ns_1'], impliedWorkspaceIds: ['ws_1'] });
  const lost = tokenWith({ namespaceIds: ['ns_1'], impliedWorkspaceIds: [] });

  it.each<[Permission, Partial<Reach>, inOne: boolean, inNone: boolean]>([
    ['secret:update', { workspaceId: 'ws_1', namespaceId: 'ns_1' }, true, false],
    ['secret:update', { workspaceId: 'ws_2', namespaceId: 'ns_1' }, false, false],
    ['secret:read', { workspaceId: 'ws_1' }, true, false],
    ['secret:read', { workspaceId: 'ws_2' }, false, false],
    ['workspace:read', {}, true, true],
    ['workspace:create', {}, false, false],
  ])('%s in %j', (permission, place, inOne, inNone) => {
    expect(reaches(token, permission, inside(place))).toBe(inOne);
    expect(reaches(lost, permission, inside(place))).toBe(inNone);
  });

  it('is restricted to these workspaces, or to none', () => {
    const namespaceId = ['ns_1'];
    expect(restrictionsOf(token)).toEqual({ orgId: ['org_1'], workspaceId: ['ws_1'], namespaceId });
    expect(restrictionsOf(lost)).toEqual({ orgId: ['org_1'], workspaceId: [], namespaceId });
  });
});

describe('a token of an app', () => {
  const token = tokenWith({ type: 'app', appId: 'app_1', workspaceIds: ['ws_1'] });
  const where = { workspaceId: 'ws_1' };

  it.each<[Permission, Partial<Reach>, boolean]>([
    ['app:update', { ...where, appId: 'app_1' }, true],
    ['app:read', { ...where, appId: 'app_2' }, false],
    ['app:update', { ...where, appId: '' }, false],
    ['app:update', { ...where, appId: null }, true],
    ['app:read', where, true],
    ['app:create', where, false],
    ['thread:create', where, true],
    ['workspace:update', where, false],
    ['workspace:read', where, true],
    ['workspace_member:create', where, false],
    ['workspace_member:read', where, true],
    ['thread:create', { workspaceId: 'ws_2' }, false],
  ])('%s in %j: %s', (permission, place, expected) => {
    expect(reaches(token, permission, inside(place))).toBe(expected);
  });

  it('is told by its type: another token does anything beside apps', () => {
    for (const permission of ['app:create', 'workspace:update', 'workspace_member:create'] as const)
      expect(reaches(tokenWith({ appId: 'app_1' }), permission, inside(where))).toBe(true);
    expect(reaches(tokenWith(), 'app:update', inside({ ...where, appId: 'app_2' }))).toBe(true);
  });
});

describe('the restrictions of a token', () => {
  it('are none without a token, and its organization for one without lists', () => {
    expect(restrictionsOf(null)).toEqual({});
    expect(restrictionsOf(tokenWith())).toEqual({ orgId: ['org_1'] });
    expect(isRestricted(tokenWith())).toBe(false);
  });

  it('are its lists', () => {
    const lists = { workspaceIds: ['a'], namespaceIds: ['b', 'c'], environmentIds: ['d'], appId: 'e' };
    expect(restrictionsOf(tokenWith(lists))).toEqual({
      orgId: ['org_1'],
      workspaceId: ['a'],
      namespaceId: ['b', 'c'],
      environmentId: ['d'],
      appId: ['e'],
    });
  });

  it.each([{ workspaceIds: ['a'] }, { namespaceIds: ['a'] }, { environmentIds: ['a'] }, { appId: 'a' }])(
    'restrict it: %j',
    (list) => expect(isRestricted(tokenWith(list))).toBe(true),
  );
});

describe('the endpoints of a token', () => {
  const token = tokenWith({ endpoints: [parseEndpointPattern('/v1/orgs')!, parseEndpointPattern('/v1/users/*')!] });

  it('are all where it lists none', () => {
    expect(mayEnter(tokenWith(), undefined)).toBe(true);
    expect(mayEnter(tokenWith(), () => '/graphql')).toBe(true);
  });

  it.each([
    ['/v1/orgs/org_1', true],
    ['/v1/users/usr_1', true],
    ['/v1/users', false],
    ['/graphql', false],
    [undefined, false],
  ])('that it lists are the only ones: %s is let through: %s', (path, expected) => {
    expect(mayEnter(token, () => path)).toBe(expected);
  });

  it('are none where the path has no operation, or nothing that it lists can be read', () => {
    expect(mayEnter(token, undefined)).toBe(false);
    expect(mayEnter(tokenWith({ endpoints: [] }), () => '/v1/orgs')).toBe(false);
  });
});

it('three words cover whatever the owner may do', () => {
  expect(['read', 'write', 'admin'].every(isWord)).toBe(true);
  for (const name of ['', 'secret', 'secret:read', 'toString', '*']) expect(isWord(name)).toBe(false);
});
