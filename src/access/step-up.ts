import { ApiError } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { Permission } from '../kernel/resources.ts';

export const stepUps = ['secret_reveal', 'sign_in_settings', 'organization_deletion', 'member_changes'] as const;
/** What an organization may ask a fresh factor for. */
export type StepUp = (typeof stepUps)[number];

/** For this long after a factor was proven, nobody is asked for it again. */
export const FRESH_MINUTES = 10;

const ASKED: Partial<Record<Permission, StepUp>> = {
  'secret:reveal': 'secret_reveal',
  'connection:use': 'secret_reveal',
  'identity_provider:create': 'sign_in_settings',
  'identity_provider:update': 'sign_in_settings',
  'identity_provider:delete': 'sign_in_settings',
  'scim_token:create': 'sign_in_settings',
  'scim_token:delete': 'sign_in_settings',
  // whose redirects and secrets decide who is signed in elsewhere, and who gets what is granted
  'application:create': 'sign_in_settings',
  'application:update': 'sign_in_settings',
  'webhook:create': 'secret_reveal',
  'audit_stream:create': 'secret_reveal',
  // the address of what the secret is sent to
  'audit_stream:update': 'secret_reveal',
  'organization:delete': 'organization_deletion',
  // who may come in, and with which role
  'organization_member:create': 'member_changes',
  'organization_member:update': 'member_changes',
  'workspace_member:create': 'member_changes',
  'workspace_member:update': 'member_changes',
  'invitation:create': 'member_changes',
  'invitation:update': 'member_changes',
  'user:create': 'member_changes',
};

/** What an organization may ask a fresh factor for, of each change with this permission. */
export const stepUpOf = (permission: Permission): StepUp | undefined => ASKED[permission];

/**
 * SQL: what an organization asks a fresh factor for. One that demands a factor asks it for sign-in settings too: who
 * changes them lets people in whom no factor is asked of. So does one that asks it for changes of members: a directory
 * or a provider makes the same changes. @param organization alias of its row
 */
export const stepUpAsked = (organization: string): string =>
  `case when 'sign_in_settings' = any(${organization}.step_up)
      or ${organization}.factor_required_at is null and 'member_changes' <> all(${organization}.step_up)
    then ${organization}.step_up else ${organization}.step_up || '{sign_in_settings}'::text[] end`;

/** Whether a permission lets values of secrets out: it asks for a fresh factor wherever it is checked. */
export const letsSecretsOut = (permission: Permission): boolean =>
  permission === 'secret:reveal' || permission === 'connection:use';

/** What somebody does that a fresh factor may be asked for. */
export interface SteppedUp {
  permission: Permission;
  stepUp: StepUp;
}

/** 403 for what asks for a factor that was proven a moment ago. Only who has the permission is asked. */
export class FreshFactorNeeded extends ApiError {
  constructor(permission: Permission) {
    super(
      'FORBIDDEN',
      { required_permission: permission, reason: 'fresh_factor', minutes: FRESH_MINUTES },
      `Prove your second factor again: this takes one that was proven within the last ${FRESH_MINUTES} minutes.`,
    );
  }
}

/**
 * Demands a fresh factor of a caller who may do something, if the organization asks for it (docs/decisions/0072). API
 * tokens prove none: they keep what they were made for, the values of secrets, and do nothing else of it.
 * @param asked what the organization asks it for
 * @param act what the caller does
 * @throws FORBIDDEN `fresh_factor`
 */
export function demandStepUp(principal: Principal, asked: readonly StepUp[], { permission, stepUp }: SteppedUp): void {
  if (!asked.includes(stepUp)) return;
  const { token } = principal;
  const isFresh = token
    ? stepUp === 'secret_reveal' && token.applicationId === undefined
    : (principal.factorAt ?? 0) > Date.now() - FRESH_MINUTES * 60_000;
  if (!isFresh) throw new FreshFactorNeeded(permission);
}
