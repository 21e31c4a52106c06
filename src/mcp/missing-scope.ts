import type { ExecutionResult } from 'graphql';
import type { Access } from '../access/access.ts';
import { isPermission } from '../access/permissions.ts';
import type { Permission } from '../kernel/resources.ts';
import { grants, type TokenGrant } from '../kernel/token-grant.ts';
import type { McpRequest } from './tool.ts';
import { shownError } from './tool-results.ts';

/**
 * A request needs permissions that its user has, and its access token does not: the client may ask its user for them.
 * It is no error of the tool, which its model would read.
 */
export class MissingScope extends Error {
  override readonly name = 'MissingScope';
  readonly permissions: readonly Permission[];

  constructor(permissions: readonly Permission[]) {
    super(`The access token lacks ${permissions.join(' ')}.`);
    this.permissions = permissions;
  }
}

export interface ScopeRules {
  access: Pick<Access, 'rightsSomewhere'>;
  /** Whether applications may ask for a scope. */
  isGrantable: (scope: string) => boolean;
}

/**
 * Demands that the access token of an application names permissions. Other tokens are as somebody made them: nobody
 * can be asked. Nor can users who have a right nowhere.
 * @throws MissingScope
 */
export async function demandScopes(
  { access, isGrantable }: ScopeRules,
  { caller }: McpRequest,
  permissions: readonly (string | null)[],
): Promise<void> {
  const { token, orgId } = caller.principal;
  if (token?.applicationId === undefined || orgId === null) return;
  const named = [...new Set(permissions)].filter((name): name is Permission => name !== null && isPermission(name));
  const missing = named.filter((permission) => !grants(token, permission) && isGrantable(permission));
  if (missing.length === 0) return;
  const mayUser = await access.rightsSomewhere(caller, orgId);
  const useful = missing.filter(mayUser);
  if (useful.length > 0) throw new MissingScope(useful);
}

/** The permissions that an operation was refused for. */
export const permissionsAskedBy = ({ errors = [] }: ExecutionResult): (string | null)[] =>
  errors.map((error) => {
    const shown = shownError(error);
    if (shown?.code !== 'FORBIDDEN') return null;
    const { required_permission: permission } = (shown.details ?? {}) as { required_permission?: unknown };
    return typeof permission === 'string' ? permission : null;
  });

/** What a client must ask its user for: also what it has, because a new token replaces the old one (RFC 6750, 3.1). */
export function challengeOf(token: TokenGrant, { permissions }: MissingScope, metadata: string): string {
  const scope = [...new Set([...(token.names ?? []), ...permissions])].join(' ');
  const description = 'The access token does not name what this needs.';
  return (
    `Bearer error="insufficient_scope", error_description="${description}", ` +
    `scope="${scope}", resource_metadata="${metadata}"`
  );
}
