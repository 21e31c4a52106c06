import {
  declarationOf,
  type Permission,
  type PermissionRule,
  type ResourceWord,
  resourceWords,
} from '../kernel/resources.ts';
import { atLeast, type Grant, type Role, roles } from '../kernel/roles.ts';

/** Who may do what: each permission from the table of resources, with its rule. */
export const permissionTable: Readonly<Record<Permission, PermissionRule>> = Object.fromEntries(
  resourceWords.flatMap((word) =>
    Object.entries(declarationOf(word).may ?? {}).map(([verb, rule]) => [
      `${word}:${verb}`,
      typeof rule === 'string' ? { from: rule } : rule,
    ]),
  ),
) as Record<Permission, PermissionRule>;

/** Whether a name is that of a single permission. */
export const isPermission = (name: string): name is Permission => Object.hasOwn(permissionTable, name);

const readPermissions = new Map(
  resourceWords.map((word) => {
    const { readWith } = declarationOf(word);
    const permission = readWith ?? `${word}:read`;
    if (isPermission(permission)) return [word, permission];
    if (readWith) throw new Error(`Reading a ${word} asks for '${readWith}', which is no permission.`);
    return [word, null];
  }),
);

/** The permission to read what a word names. `null` if none lets read it. */
export const readPermissionOf = (word: ResourceWord): Permission | null => readPermissions.get(word) ?? null;

/** The grant of a role for a permission: everything, own content, or nothing. */
export function granted(role: Role, permission: Permission): Grant {
  const { from, ownFrom } = permissionTable[permission];
  if (from && atLeast(role, from)) return 'all';
  return ownFrom && atLeast(role, ownFrom) ? 'own' : 'none';
}

/** The roles with a permission for everything, for statements about many members at once. */
export const rolesWith = (permission: Permission): readonly Role[] =>
  roles.filter((role) => granted(role, permission) === 'all');
