import { ApiError } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { Permission } from '../kernel/resources.ts';

export const stepUps = ['secret_reveal', 'sign_in_settings', 'organization_deletion'] as const;
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
  'organization:delete': 'organization_deletion',
};

/** Whether an organization may ask a fresh factor for a change with this permission. */
export const isSteppedUp = (permission: Permission): boolean => ASKED[permission] !== undefined;

/** Whether a permission lets values of secrets out: it asks for a fresh factor wherever it is checked. */
export const letsSecretsOut = (permission: Permission): boolean =>
  permission === 'secret:reveal' || permission === 'connection:use';

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
 * @throws FORBIDDEN `fresh_factor`
 */
export function demandStepUp(principal: Principal, asked: readonly StepUp[], permission: Permission): void {
  const word = ASKED[permission];
  if (word === undefined || !asked.includes(word)) return;
  const { token } = principal;
  const isFresh = token
    ? word === 'secret_reveal' && token.applicationId === undefined
    : (principal.factorAt ?? 0) > Date.now() - FRESH_MINUTES * 60_000;
  if (!isFresh) throw new FreshFactorNeeded(permission);
}
