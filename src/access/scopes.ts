import type { Permission, Weight } from '../kernel/resources.ts';
import { isPermission, permissionTable } from './permissions.ts';

const permissions = Object.keys(permissionTable) as Permission[];
const resourceOf = (permission: string): string => permission.slice(0, permission.indexOf(':'));
const verbOf = (permission: string): string => permission.slice(permission.indexOf(':') + 1);
const resources: ReadonlySet<string> = new Set(permissions.map(resourceOf));

const weightOf = (permission: Permission): Weight => permissionTable[permission].weight ?? 'plain';
const isPlain = (permission: Permission): boolean => weightOf(permission) === 'plain';
const isRead = (permission: Permission): boolean => verbOf(permission) === 'read';
const isCreateOrUpdate = (permission: Permission): boolean => ['create', 'update'].includes(verbOf(permission));

/** The words that expand to permissions of all resources. */
const words: Readonly<Record<string, readonly Permission[]>> = {
  read: permissions.filter(isRead),
  write: permissions.filter((p) => isRead(p) || (isCreateOrUpdate(p) && isPlain(p))),
  admin: permissions.filter((p) => weightOf(p) !== 'minting'),
};

/** The permissions of a token that lists no scopes and no permissions, out of its owner's. */
const UNNAMED: readonly Permission[] = permissions.filter(isPlain);

/**
 * Expands an element of a token's `permissions`: `secret:read` is itself, `secret:*` all permissions of the resource,
 * `*:read` the read permissions of all resources, except those where reading itself is sensitive. Empty for an unknown
 * name.
 */
export function expandPermission(name: string): readonly Permission[] {
  if (isPermission(name)) return [name];
  const [resource, verb, ...rest] = name.split(':');
  if (rest.length > 0 || !resource || !verb) return [];
  if (verb === '*') return resources.has(resource) ? permissions.filter((p) => resourceOf(p) === resource) : [];
  if (resource !== '*') return [];
  return permissions.filter((p) => verbOf(p) === verb && (isRead(p) || isPlain(p)));
}

/**
 * Expands an element of a token's `scopes`: a word (`read`, `write`, `admin`), a resource, or the name of a permission.
 */
export function expandScope(name: string): readonly Permission[] {
  if (Object.hasOwn(words, name)) return words[name]!;
  return resources.has(name) ? expandPermission(`${name}:*`) : expandPermission(name);
}

/** Whether a name is a word that covers whatever the owner may do of a kind, rather than certain permissions. */
export const isWord = (name: string): boolean => Object.hasOwn(words, name);

/**
 * The most that a token may do, whatever its owner may: everything that is not sensitive if it lists nothing. An
 * unknown name grants nothing, and never makes a list count as empty.
 */
export function expand(scopes: readonly string[], names: readonly string[]): ReadonlySet<Permission> {
  if (scopes.length === 0 && names.length === 0) return unnamed;
  return new Set([...scopes.flatMap(expandScope), ...names.flatMap(expandPermission)]);
}

const unnamed: ReadonlySet<Permission> = new Set(UNNAMED);
