import { expect } from 'vitest';
import { expand } from '../../src/access/scopes.ts';
import type { Caller } from '../../src/kernel/caller.ts';
import { type Role, roles } from '../../src/kernel/roles.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import type { TokenGrant } from '../../src/kernel/token-grant.ts';
import { addOrganization, addUser, type BareDatabase } from './bare-database.ts';

const { request } = systemCaller('test');

/** Somebody who has signed in. */
export const actorOf = (userId: string, isVerified = true): Caller => ({
  request,
  principal: {
    type: 'user',
    userId,
    username: 'u',
    isPlatformAdmin: false,
    isVerified,
    sessionId: 'ses_1',
    orgId: null,
    token: null,
  },
});

/** A program with a token of somebody. */
export const tokenOf = (userId: string, orgId: string, given: Partial<TokenGrant> = {}): Caller => ({
  request,
  principal: {
    type: 'api_token',
    userId,
    username: 'u',
    isPlatformAdmin: false,
    isVerified: true,
    orgId,
    token: {
      id: 'tok_1',
      type: 'pat',
      familyId: 'tok_1',
      hash: 'h',
      orgId,
      appId: null,
      permissions: expand([], []),
      workspaceIds: [],
      namespaceIds: [],
      environmentIds: [],
      impliedWorkspaceIds: null,
      endpoints: null,
      rateLimitRps: null,
      rateLimitBurst: null,
      root: null,
      ...given,
    },
  },
});

/** What a caller without a permission is told. */
export const forbidden = (permission: string) =>
  expect.objectContaining({ code: 'FORBIDDEN', details: { required_permission: permission } });

export const missing = (resource_type: string, resource_id: string) =>
  expect.objectContaining({ code: 'RESOURCE_NOT_FOUND', details: { resource_type, resource_id } });

/** Checks throw at once where everything is cached, and reject otherwise. */
export const checked = async <T>(check: () => T | Promise<T>): Promise<T> => check();

/** An organization with a user of each role, and one with none. */
export async function addOrganizationOfAll(database: BareDatabase) {
  const users = await Promise.all(roles.map(() => addUser(database)));
  const [viewer, member, editor, admin, owner] = users.map(({ id }) => id) as [string, string, string, string, string];
  const { id: stranger } = await addUser(database);
  const people = { viewer, member, editor, admin, owner };
  const orgId = await addOrganization(
    database,
    Object.fromEntries(roles.map((role) => [people[role], role])) as Record<string, Role>,
  );
  return { ...people, stranger, orgId };
}
