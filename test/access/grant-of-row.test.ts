import { describe, expect, it } from 'vitest';
import { grantOf } from '../../src/access/token-lookup.ts';

type TokenRow = Parameters<typeof grantOf>[0];

const rowWith = (given: Partial<TokenRow> = {}): TokenRow => ({
  id: 'tok_1',
  type: 'pat',
  familyId: 'tok_0',
  orgId: 'org_1',
  appId: null,
  workspaceId: null,
  scopes: [],
  permissions: ['secret:read'],
  workspaceIds: [],
  namespaceIds: [],
  environmentIds: [],
  endpointPaths: [],
  rateLimitRps: null,
  rateLimitBurst: null,
  rootFamilyId: null,
  ...given,
});

describe('the grant in the row of a token', () => {
  it('is all that the row says', () => {
    const row = rowWith({
      type: 'app',
      appId: 'app_1',
      workspaceId: 'ws_1',
      workspaceIds: ['ws_2'],
      namespaceIds: ['ns_1'],
      environmentIds: ['env_1'],
      endpointPaths: ['/v1/orgs', '/v1/users/*'],
      rateLimitRps: 5,
      rateLimitBurst: 9,
      rootFamilyId: 'tok_r',
      rootRps: 3,
      rootBurst: 4,
    });
    expect(grantOf(row, 'h')).toEqual({
      id: 'tok_1',
      type: 'app',
      familyId: 'tok_0',
      hash: 'h',
      orgId: 'org_1',
      appId: 'app_1',
      permissions: new Set(['secret:read']),
      names: expect.arrayContaining(['secret:read']),
      workspaceIds: ['ws_1'],
      namespaceIds: ['ns_1'],
      environmentIds: ['env_1'],
      impliedWorkspaceIds: null,
      endpoints: [
        { segments: ['v1', 'orgs'], isOpen: true },
        { segments: ['v1', 'users', '*'], isOpen: false },
      ],
      rateLimitRps: 5,
      rateLimitBurst: 9,
      root: { familyId: 'tok_r', rateLimitRps: 3, rateLimitBurst: 4 },
    });
  });

  it('allows every endpoint if it lists none, and none if it lists what nobody can read', () => {
    expect(grantOf(rowWith(), 'h').endpoints).toBeNull();
    expect(grantOf(rowWith({ endpointPaths: ['no path', '//'] }), 'h').endpoints).toEqual([]);
  });

  it('has no root for the first token of a line, and one without limits if these are not known', () => {
    expect(grantOf(rowWith({ rootRps: 3, rootBurst: 4 }), 'h').root).toBeNull();
    expect(grantOf(rowWith({ rootFamilyId: 'tok_r' }), 'h').root).toEqual({
      familyId: 'tok_r',
      rateLimitRps: null,
      rateLimitBurst: null,
    });
  });

  it.each<[string, Partial<TokenRow>, readonly string[] | null]>([
    ['read with the row', { namespaceIds: ['ns_1'], impliedWorkspaceIds: ['ws_1'] }, ['ws_1']],
    ['none, as read with the row', { namespaceIds: ['ns_1'], impliedWorkspaceIds: null }, null],
    ['not read, for a token that names namespaces', { namespaceIds: ['ns_1'] }, []],
    ['not read, for a token that names environments', { environmentIds: ['env_1'] }, []],
    ['not read, for a token that names both', { namespaceIds: ['ns_1'], environmentIds: ['env_1'] }, []],
    ['not read, for a token that names workspaces too', { namespaceIds: ['ns_1'], workspaceIds: ['ws_1'] }, null],
    ['not read, for a token of an app', { namespaceIds: ['ns_1'], workspaceId: 'ws_1' }, null],
    ['not read, for a token that names nothing', {}, null],
  ])('implies workspaces: %s', (_what, given, implied) => {
    expect(grantOf(rowWith(given), 'h').impliedWorkspaceIds).toEqual(implied);
  });
});
