import type { Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';

/**
 * Refuses applications that a user has granted rights to. What decides where records go would go on when the grant has
 * ended, as a token would that it had made. API tokens may decide: a user made them by hand, and what they set up acts
 * for this user (docs/decisions/0071).
 * @throws FORBIDDEN `granted_application`
 */
export function refuseApplications({ principal: { token } }: Caller, permission: Permission): void {
  if (token?.applicationId === undefined) return;
  throw new ApiError(
    'FORBIDDEN',
    { required_permission: permission, reason: 'granted_application' },
    'An application cannot decide where something is sent: that would outlive its grant. Sign in, or use an API token.',
  );
}
