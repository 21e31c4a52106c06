import { ApiError } from '../kernel/errors.ts';
import type { Principal } from '../kernel/principal.ts';
import type { OrganizationAccess } from './membership-facts.ts';

/** What a member is to an organization that demands single sign-on and did not get it. */
const SHUT_OUT: OrganizationAccess = { role: null, isUnused: false, demand: 'sso' };

/** What a caller is in an organization: nothing, if it demands single sign-on and nobody vouches for the caller. */
export function admitted(principal: Principal, orgId: string, access: OrganizationAccess): OrganizationAccess {
  if (access.demand === '-' || access.role === null || principal.vouchedBy === orgId) return access;
  return access.demand === 'glass' && access.role === 'owner' && hasBrokenGlass(principal, orgId) ? access : SHUT_OUT;
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
