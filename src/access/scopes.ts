import type { Permission, Weight } from '../core/resources.ts';
import { permissionTable } from './permissions.ts';

const permissions = Object.keys(permissionTable) as Permission[];
const known: ReadonlySet<string> = new Set(permissions);
const resourceOf = (permission: string): string => permission.slice(0, permission.indexOf(':'));
const verbOf = (permission: string): string => permission.slice(permission.indexOf(':') + 1);
const resources: ReadonlySet<string> = new Set(permissions.map(resourceOf));

const weightOf = (permission: Permission): Weight => permissionTable[permission].weight ?? 'plain';
const isPlain = (permission: Permission): boolean => weightOf(permission) === 'plain';
const isRead = (permission: Permission): boolean => verbOf(permission) === 'read';
const isCreateOrUpdate = (permission: Permission): boolean => ['create', 'update'].includes(verbOf(permission));

/** The words that stand for permissions of all resources. */
const words: Readonly<Record<string, readonly Permission[]>> = {
  read: permissions.filter(isRead),
  write: permissions.filter((p) => isRead(p) || (isCreateOrUpdate(p) && isPlain(p))),
  admin: permissions.filter((p) => weightOf(p) !== 'minting'),
};

/** What a token without scopes and permissions has of its owner's rights. */
const UNNAMED: readonly Permission[] = permissions.filter(isPlain);

/**
 * What an element of a token's `permissions` stands for: `secret:read` for itself, `secret:*` for all of the resource,
 * `*:read` for that of all resources (but what is sensitive only in reading). Empty for a name that means nothing.
 */
export function expandPermission(name: string): readonly Permission[] {
  if (known.has(name)) return [name as Permission];
  const [resource, verb, ...rest] = name.split(':');
  if (rest.length > 0 || !resource || !verb) return [];
  if (verb === '*') return resources.has(resource) ? permissions.filter((p) => resourceOf(p) === resource) : [];
  if (resource !== '*') return [];
  return permissions.filter((p) => verbOf(p) === verb && (isRead(p) || isPlain(p)));
}

/**
 * What an element of a token's `scopes` stands for: a word (`read`, `write`, `admin`), a resource, or a permission's
 * name.
 */
export function expandScope(name: string): readonly Permission[] {
  if (Object.hasOwn(words, name)) return words[name]!;
  return resources.has(name) ? expandPermission(`${name}:*`) : expandPermission(name);
}

/** Whether a name stands for whatever the owner may do of a kind, rather than for certain permissions. */
export const isWord = (name: string): boolean => Object.hasOwn(words, name);

/** Whether a name is that of one permission. */
export const isPermission = (name: string): name is Permission => known.has(name);

/**
 * What a token may do at most, whatever its owner may: everything but the sensitive where it names nothing. A name that
 * means nothing any more grants nothing, and never turns a list into an empty one.
 */
export function expand(scopes: readonly string[], names: readonly string[]): ReadonlySet<Permission> {
  if (scopes.length === 0 && names.length === 0) return unnamed;
  return new Set([...scopes.flatMap(expandScope), ...names.flatMap(expandPermission)]);
}

const unnamed: ReadonlySet<Permission> = new Set(UNNAMED);
