import type { Caller } from '../kernel/caller.ts';
import type { PlacePart } from '../kernel/checked-place.ts';
import { forbidden } from '../kernel/errors.ts';
import type { Permission } from '../kernel/resources.ts';
import { atLeast, type Role } from '../kernel/roles.ts';
import { restrictionsOf } from '../kernel/token-grant.ts';
import type { Access } from './access.ts';

type NamedPlace = 'workspace' | PlacePart;

const places = ['workspace', 'namespace', 'environment', 'app'] as const satisfies readonly NamedPlace[];

/**
 * Whether a token is restricted to less than what numbers are of: that it is one of the token's own places was checked
 * with the permission.
 * @param named the kinds of places that the numbers are restricted to
 */
export function isPart({ principal }: Caller, named: readonly NamedPlace[]): boolean {
  const restricted = restrictionsOf(principal.token);
  // an app's token is restricted to the workspace of its app as well
  return places.some((place) => restricted[`${place}Id`] && !named.includes(place));
}

/**
 * @param permission what the numbers need, which the refusal names
 * @throws FORBIDDEN for a token that is restricted to less than what the numbers are of
 */
export function demandWhole(
  caller: Caller,
  named: readonly NamedPlace[],
  permission: Permission = 'analytics:read',
): void {
  if (isPart(caller, named)) throw forbidden(permission);
}

/** Whether the caller administers an organization. */
export async function administers(access: Access, caller: Caller, orgId: string): Promise<boolean> {
  const role = await access.organizationRole(caller, orgId);
  return role !== null && atLeast(role, 'admin');
}

/**
 * What is of a whole organization is for its administrators (defaults §13).
 * @param role the caller's role in the organization
 * @throws FORBIDDEN
 */
export function demandAll(caller: Caller, role: Role): void {
  if (!atLeast(role, 'admin')) throw forbidden('analytics:read');
  demandWhole(caller, []);
}
