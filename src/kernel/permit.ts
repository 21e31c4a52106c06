import type { Permission } from './resources.ts';
import type { Grant, Role } from './roles.ts';

/** What a check found for a caller in a place. */
export interface Permit {
  permission: Permission;
  /** The extent to which it is granted. */
  grant: Grant;
  /** The caller's role there: in the organization, or the effective one in the workspace. */
  role: Role;
}
