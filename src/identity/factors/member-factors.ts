import { factorDemandedSince, factorGraceEnds, hasFactor } from '../../access/factor-demand.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { isVouchedFor } from '../../access/sso-demand.ts';
import { findRow } from '../../data/find-row.ts';
import { Reads } from '../../data/reads.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { User } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, notFound } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import type { Role } from '../../kernel/roles.ts';
import { lockOrganization } from '../../tenancy/organizations/membership.ts';
import { isActiveAccount } from '../../tenancy/views.ts';
import type { AuthDeps } from '../auth/auth.service.ts';
import { demandRankOver } from '../auth/member-rank.ts';
import { domainOfEmail } from '../identity-providers/domain-name.ts';
import { revokeGrantsOf } from '../oauth/grant-revocation.ts';
import type { FactorMethod, FactorProofs } from './factor-proofs.ts';
import { demandFreshFactor } from './fresh-factor.ts';

/** What has happened to the factors, for the notice. */
const RESET = 'reset';

/** A member of an organization whose account has no second factor. */
export interface MemberWithoutFactor extends OrganizationPlace {
  /** Of the membership. */
  id: string;
  userId: string;
  username: string;
  role: Role;
  /** Since when the organization demands one of the member, and until when it waits; `null` if it does not. */
  since: Date | null;
  until: Date | null;
  /** Whether a provider of the organization knows the member: who signs in there needs no factor here. */
  hasIdentity: boolean;
}

/** The factors that an administrator has removed. */
export interface ResetFactors extends OrganizationPlace {
  userId: string;
  methods: FactorMethod[];
}

interface MemberFactorDeps extends ServiceDeps, Pick<AuthDeps, 'sessions' | 'authentication' | 'factorEnds'> {
  proofs: FactorProofs;
}

/** The second factors of members, for those who administer their organization (docs/decisions/0072). */
export class MemberFactors {
  readonly missing: Reads<MemberWithoutFactor, OrganizationPlace>;
  readonly #deps: MemberFactorDeps;

  constructor(deps: MemberFactorDeps) {
    this.#deps = deps;
    this.missing = new Reads(deps, {
      kind: 'organization_member',
      name: 'members_without_factor',
      from: `organization_members t join users u on u.id = t.user_id join organizations o on o.id = t.org_id`,
      columns: {
        id: 't.id',
        orgId: 't.org_id',
        userId: 't.user_id',
        username: 'u.username',
        role: 't.role',
        since: factorDemandedSince('o', 't'),
        until: factorGraceEnds('o', 't'),
        hasIdentity: isVouchedFor('t.org_id', 't.user_id'),
      },
      below: ['orgId'],
      known: { by: 'userId' },
      always: [isActiveAccount('u'), `not ${hasFactor('t.user_id')}`],
      order: 'asc',
    });
  }

  /**
   * Removes all factors of a member, and ends their sessions and what they granted to applications: for who has lost
   * them and the recovery codes. Only of an account that is the organization's alone, because it is weaker from then on
   * wherever it belongs.
   * @throws FORBIDDEN for tokens, without a fresh factor of the caller's own, and for members with a higher role;
   * RESOURCE_NOT_FOUND `user`; RESOURCE_CONFLICT `account_not_managed`, `no_factor`
   */
  async reset(caller: Caller, { orgId }: Checked<OrganizationPlace>, userId: string): Promise<ResetFactors> {
    const { changes, proofs, factorEnds, sessions, access, authentication } = this.#deps;
    const principal = sessionOf(caller, 'identity_provider:update');
    return changes.run(caller, async (tx) => {
      await demandFreshFactor(tx, caller);
      await lockOrganization(tx, orgId, 'share');
      const member = await findRow(tx, 'organization_members', { orgId, userId });
      if (!member) throw notFound('user', userId);
      const user = await tx.lock('users', { id: userId, isActive: true, deactivatedAt: null }, 'no key update', () =>
        notFound('user', userId),
      );
      await demandRankOver(tx, caller, member, 'identity_provider:update');
      if (userId === principal.userId || !(await isOwnAccount(tx, user, orgId))) throw notManaged(userId);
      const methods = await proofs.methodsOf(tx, userId);
      if (methods.length === 0) throw conflict('user', userId, 'no_factor', 'The user has no second factor.');
      factorEnds.removeAll(tx, userId);
      sessions.revokeAll(tx, userId, 'factors_reset');
      // also what was let in with a factor that somebody else holds now: it would count again with the next one
      revokeGrantsOf(tx, authentication, { userId }, 'factors_reset');
      record(tx, { orgId, userId, methods });
      tx.afterCommit(() => {
        access.facts.factorsChanged(userId);
        authentication.sessionsChanged();
      });
      return { orgId, userId, methods };
    });
  }
}

const notManaged = (userId: string) =>
  conflict(
    'user',
    userId,
    'account_not_managed',
    'Factors are reset only for accounts of other people that belong to your organization alone: it has made the ' +
      'account, or has proven the domain of its confirmed address, and no other organization has it as a member.',
  );

/**
 * Whether an account is an organization's alone: made by it, or with a confirmed address in a domain that it has
 * proven; and of nobody else, also of no organization that was deleted and may come back. Nobody resets who administers
 * the platform.
 */
async function isOwnAccount(tx: Tx, user: User, orgId: string): Promise<boolean> {
  if (user.isPlatformAdmin || (user.homeOrgId !== null && user.homeOrgId !== orgId)) return false;
  const others = await tx.query(statement`
    select from organization_members where user_id = ${user.id} and org_id <> ${orgId} limit 1`);
  if (others.length > 0) return false;
  if (user.homeOrgId === orgId) return true;
  if (!user.isVerified || user.emailKey === null) return false;
  const domain = domainOfEmail(user.emailKey);
  if (domain === null) return false;
  return (await findRow(tx, 'identity_provider_domains', { domain, orgId, state: 'proven' })) !== null;
}

/** Records it for the organization, and tells the user by mail. */
function record(tx: Tx, { orgId, userId, methods }: ResetFactors): void {
  tx.audit({
    action: 'update',
    resourceType: 'organization_member',
    resourceId: userId,
    orgId,
    metadata: { factors_reset: methods },
  });
  tx.announce({
    type: 'user.factors_changed',
    orgId: null,
    resourceType: 'user',
    resourceId: userId,
    facts: { reason: RESET },
  });
}
