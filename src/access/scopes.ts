import { type Permission, permissionTable } from './permissions.ts';

const permissions = Object.keys(permissionTable) as Permission[];
const known: ReadonlySet<string> = new Set(permissions);
const [resourceOf, verbOf] = [0, 1].map((part) => (permission: string) => permission.split(':')[part]!) as [
  (permission: string) => string,
  (permission: string) => string,
];
const resources: ReadonlySet<string> = new Set(permissions.map(resourceOf));

/**
 * How a token comes by a permission (defaults §3):
 * - `plain`: granted by wildcards, and by default when a token lists nothing;
 * - `sensitive`: manages people, tokens or sign-in, deletes the tenant, or shows what is locked away. It must be named: by itself, by its
 *   resource, or by `admin`; a read also by wildcards for reads. Never by `write`, `*:create` and the like, or by naming nothing. Members of
 *   the organization and invitations are sensitive as members of a workspace are: who may add a person could become any of them;
 * - `minting`: makes tokens. Not even `admin` stands for it: it must be named by itself or by its resource.
 */
type Weight = 'plain' | 'sensitive' | 'minting';

/** Every permission is weighed here: a new one does not compile without. */
const weights: Readonly<Record<Permission, Weight>> = {
  'organization:access': 'plain',
  'organization:update': 'plain',
  'organization:delete': 'sensitive',
  'organization_member:read': 'sensitive',
  'organization_member:create': 'sensitive',
  'organization_member:update': 'sensitive',
  'organization_member:delete': 'sensitive',
  'invitation:read': 'sensitive',
  'invitation:create': 'sensitive',
  'invitation:update': 'sensitive',
  'invitation:delete': 'sensitive',
  'user:read': 'plain',
  'user:create': 'sensitive',
  'user:update': 'sensitive',
  'user:delete': 'sensitive',
  'workspace:read': 'plain',
  'workspace:create': 'plain',
  'workspace:update': 'plain',
  'workspace:delete': 'plain',
  'workspace_member:read': 'sensitive',
  'workspace_member:create': 'sensitive',
  'workspace_member:update': 'sensitive',
  'workspace_member:delete': 'sensitive',
  'namespace:read': 'plain',
  'namespace:create': 'plain',
  'namespace:update': 'plain',
  'namespace:delete': 'plain',
  'app:read': 'plain',
  'app:create': 'plain',
  'app:update': 'plain',
  'app:delete': 'plain',
  'release:read': 'plain',
  'release:create': 'plain',
  'release:delete': 'plain',
  'thread:read': 'plain',
  'thread:create': 'plain',
  'thread:update': 'plain',
  'thread:delete': 'plain',
  'secret:read': 'plain',
  'secret:reveal': 'sensitive',
  'secret:create': 'plain',
  'secret:update': 'plain',
  'secret:rotate': 'plain',
  'secret:delete': 'plain',
  'secret:destroy': 'sensitive',
  'api_token:read': 'sensitive',
  'api_token:create': 'minting',
  'api_token:revoke': 'sensitive',
  'api_token:manage': 'sensitive',
  'app_token:read': 'sensitive',
  'app_token:create': 'minting',
  'app_token:revoke': 'sensitive',
  'environment:read': 'plain',
  'environment:create': 'plain',
  'environment:update': 'plain',
  'environment:delete': 'plain',
  'deployment:create': 'plain',
  'deployment:delete': 'plain',
  'model:read': 'plain',
  'model:create': 'plain',
  'model:update': 'plain',
  'model:delete': 'plain',
  'model:execute': 'plain',
  'provider_account:read': 'plain',
  'provider_account:create': 'plain',
  'provider_account:update': 'plain',
  'provider_account:delete': 'plain',
  'model_entitlement:read': 'plain',
  'model_entitlement:create': 'plain',
  'model_entitlement:update': 'plain',
  'model_entitlement:delete': 'plain',
  'sync:subscribe': 'plain',
};

const isPlain = (permission: Permission): boolean => weights[permission] === 'plain';
const isRead = (permission: Permission): boolean => verbOf(permission) === 'read';
const isCreateOrUpdate = (permission: Permission): boolean => ['create', 'update'].includes(verbOf(permission));

/** The words that stand for permissions of all resources. */
const words: Readonly<Record<string, readonly Permission[]>> = {
  read: permissions.filter(isRead),
  write: permissions.filter((p) => isRead(p) || (isCreateOrUpdate(p) && isPlain(p))),
  admin: permissions.filter((p) => weights[p] !== 'minting'),
};

/** What a token without scopes and permissions has of its owner's rights. */
const UNNAMED: readonly Permission[] = permissions.filter(isPlain);

/**
 * What an element of a token's `permissions` stands for: `secret:read` for itself, `secret:*` for all of the resource, `*:read` for that of
 * all resources (but what is sensitive only in reading). Empty for a name that means nothing.
 */
export function expandPermission(name: string): readonly Permission[] {
  if (known.has(name)) return [name as Permission];
  const [resource, verb, ...rest] = name.split(':');
  if (rest.length > 0 || !resource || !verb) return [];
  if (verb === '*') return resources.has(resource) ? permissions.filter((p) => resourceOf(p) === resource) : [];
  if (resource !== '*') return [];
  return permissions.filter((p) => verbOf(p) === verb && (isRead(p) || isPlain(p)));
}

/** What an element of a token's `scopes` stands for: a word (`read`, `write`, `admin`), a resource, or a permission's name. */
export function expandScope(name: string): readonly Permission[] {
  if (Object.hasOwn(words, name)) return words[name]!;
  return resources.has(name) ? expandPermission(`${name}:*`) : expandPermission(name);
}

/** Whether a name stands for whatever the owner may do of a kind, rather than for certain permissions. */
export const isWord = (name: string): boolean => Object.hasOwn(words, name);

/** Whether a name is that of one permission. */
export const isPermission = (name: string): name is Permission => known.has(name);

/**
 * What a token may do at most, whatever its owner may: everything but the sensitive where it names nothing. A name that means nothing any
 * more grants nothing, and never turns a list into an empty one.
 */
export function expand(scopes: readonly string[], names: readonly string[]): ReadonlySet<Permission> {
  if (scopes.length === 0 && names.length === 0) return unnamed;
  return new Set([...scopes.flatMap(expandScope), ...names.flatMap(expandPermission)]);
}

const unnamed: ReadonlySet<Permission> = new Set(UNNAMED);
