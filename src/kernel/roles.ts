/** The roles of members, lowest first. */
export const roles = ['viewer', 'member', 'editor', 'admin', 'owner'] as const;
export type Role = (typeof roles)[number];

/** A stored role. @throws Error for any other text */
export function asRole(text: string): Role {
  const role = roles.find((known) => known === text);
  if (!role) throw new Error(`'${text}' is no role.`);
  return role;
}

const rank: Record<Role, number> = { viewer: 0, member: 1, editor: 2, admin: 3, owner: 4 };

/** Whether `role` is at least `least`. */
export const atLeast = (role: Role, least: Role): boolean => rank[role] >= rank[least];

/** The higher of two roles; `null` is none. */
export function higherRole(a: Role | null, b: Role | null): Role | null {
  if (!a || !b) return a ?? b;
  return rank[a] >= rank[b] ? a : b;
}

/** The extent of a grant: everything, content that the caller created, or nothing. */
export type Grant = 'all' | 'own' | 'none';
