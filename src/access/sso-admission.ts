import { ApiError, forbidden } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { OrganizationAccess } from './membership-facts.ts';

const OUT = { role: null, isUnused: false, demand: '-', factor: '-', stepUp: [] } as const;
/** What a member is to an organization that demands single sign-on and did not get it. */
const WITHOUT_PROVIDER: OrganizationAccess = { ...OUT, demand: 'sso' };
/** The same of a second factor, which the member lacks or has not proven. */
const WITHOUT_FACTOR = {
  lacking: { ...OUT, factor: 'lacking' },
  held: { ...OUT, factor: 'held' },
} as const satisfies Record<string, OrganizationAccess>;

/**
 * What a caller is in an organization: nothing, if it demands single sign-on or a factor, and did not get it. Whom its
 * own provider vouches for has a factor there, if the provider wants one.
 */
export function admitted(principal: Principal, orgId: string, access: OrganizationAccess): OrganizationAccess {
  const { demand, factor, role } = access;
  if ((demand === '-' && factor === '-') || role === null || principal.vouchedBy === orgId) return access;
  const isIn = demand === '-' || (demand === 'glass' && role === 'owner' && hasBrokenGlass(principal, orgId));
  if (!isIn) return WITHOUT_PROVIDER;
  if (factor === '-' || (factor === 'held' && principal.provesFactor === true)) return access;
  return WITHOUT_FACTOR[factor];
}

/** Why somebody without a role is refused: no member, or one who was not admitted. */
export function refusalOf({ demand, factor }: OrganizationAccess): ApiError {
  if (demand !== '-') return ssoRequired();
  return factor === '-' ? forbidden('organization:access') : factorDemanded(factor);
}

/** Whether the caller is in an organization only because they have opened it with their password, for an hour. */
export const isBehindBrokenGlass = (principal: Principal, orgId: string): boolean =>
  principal.vouchedBy !== orgId && hasBrokenGlass(principal, orgId);

function hasBrokenGlass({ token, ...principal }: Principal, orgId: string): boolean {
  if (token !== null || !('brokenGlass' in principal)) return false;
  const { brokenGlass } = principal;
  return brokenGlass?.orgId === orgId && brokenGlass.until > Date.now();
}

/** 403 for a member whom no provider of the organization vouches for. */
export const ssoRequired = (): ApiError =>
  new ApiError(
    'FORBIDDEN',
    { required_permission: 'organization:access', reason: 'sso_required' },
    'The organization demands a sign-in at its identity provider. Sign in there.',
  );

/** 403 for a member without a second factor, or with a session that was opened without it. */
const factorDemanded = (factor: 'held' | 'lacking'): ApiError =>
  factor === 'lacking'
    ? new ApiError(
        'FORBIDDEN',
        { required_permission: 'organization:access', reason: 'factor_missing' },
        'The organization demands a second factor. Add one to your account, at /account/factors.',
      )
    : new ApiError(
        'FORBIDDEN',
        { required_permission: 'organization:access', reason: 'factor_unproven' },
        'The organization demands a second factor. Prove yours in this session, or sign in with it.',
      );
