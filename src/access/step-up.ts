import { ApiError } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { Permission } from '../kernel/resources.ts';

export const stepUps = ['secret_reveal', 'sign_in_settings', 'organization_deletion'] as const;
/** What an organization may ask a fresh factor for. */
export type StepUp = (typeof stepUps)[number];

/** For this long after a factor was proven, nobody is asked for it again. */
export const FRESH_MINUTES = 10;

/** The permissions of changes, by what they are. */
const CHANGES: Partial<Record<Permission, StepUp>> = {
  'identity_provider:create': 'sign_in_settings',
  'identity_provider:update': 'sign_in_settings',
  'identity_provider:delete': 'sign_in_settings',
  'scim_token:create': 'sign_in_settings',
  'scim_token:delete': 'sign_in_settings',
  'organization:delete': 'organization_deletion',
};

/** Whether a change with this permission is one that an organization may ask a fresh factor for. */
export const isSteppedUp = (permission: Permission): boolean => CHANGES[permission] !== undefined;

/** 403 for what asks for a factor that was proven a moment ago. */
export const freshFactorNeeded = (permission: Permission): ApiError =>
  new ApiError(
    'FORBIDDEN',
    { required_permission: permission, reason: 'fresh_factor', minutes: FRESH_MINUTES },
    `Prove your second factor again: this takes one that was proven within the last ${FRESH_MINUTES} minutes.`,
  );

/**
 * Demands a fresh factor of a caller who may do something, if the organization asks for it (docs/decisions/0072). API
 * tokens prove none: they keep what they were made for, the values of secrets, and do nothing else of it.
 * @param asked what the organization asks it for
 * @throws FORBIDDEN `fresh_factor`
 */
export function demandStepUp(principal: Principal, asked: readonly StepUp[], permission: Permission): void {
  const word = permission === 'secret:reveal' ? 'secret_reveal' : CHANGES[permission];
  if (word === undefined || !asked.includes(word)) return;
  const { token } = principal;
  const isFresh = token
    ? word === 'secret_reveal' && token.applicationId === undefined
    : (principal.factorAt ?? 0) > Date.now() - FRESH_MINUTES * 60_000;
  if (!isFresh) throw freshFactorNeeded(permission);
}
