import type { WorkspacePlace } from '../kernel/checked-place.ts';
import { atLeast } from '../kernel/roles.ts';
import type { Context } from './context.ts';

/** What a field of free-form data says about secrets in it. */
export const MASKED =
  'Callers whose role is below editor see `********` in place of texts that are most likely secrets.';

/**
 * Whether the caller sees secrets that somebody wrote into what an app runs with: whoever may change it does. By the
 * role, not by the scopes of a token: what runs an app reads it with a token that only reads. Models never
 * see them.
 */
export async function maySeeSecrets(
  { caller, services, hidesSecrets }: Context,
  { orgId, workspaceId }: WorkspacePlace,
) {
  if (hidesSecrets) return false;
  const role = await services.access.workspaceRole(caller, orgId, workspaceId);
  return role !== null && atLeast(role, 'editor');
}
