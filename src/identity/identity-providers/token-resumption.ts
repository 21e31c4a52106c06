import { demandsSso, isVouchedFor } from '../../access/sso-demand.ts';
import type { Changes } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, forbidden, notFound } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { asRole, atLeast } from '../../kernel/roles.ts';
import { lockOrganization } from '../../tenancy/organizations/membership.ts';

/** API tokens that work again. */
export interface ResumedTokens extends OrganizationPlace {
  userId: string;
  /** How many were suspended. */
  resumed: number;
}

const KNOWN = `select ${demandsSso('o', '$2::text')} or ${isVouchedFor('o.id', '$2::text')} as "isKnown"
  from organizations o where o.id = $1`;

/** The way back for suspended API tokens whose user no provider will sign in any more (docs/decisions/0067). */
export class TokenResumption {
  readonly #changes: Changes;

  constructor({ changes }: { changes: Changes }) {
    this.#changes = changes;
  }

  /**
   * Lets the suspended tokens of a member work again, by the decision of an administrator.
   * @throws FORBIDDEN for tokens, and for members with a higher role; RESOURCE_NOT_FOUND `user`; RESOURCE_CONFLICT
   * `known_to_provider` for who can sign in at a provider, or has to
   */
  async resume(caller: Caller, { orgId }: Checked<OrganizationPlace>, userId: string): Promise<ResumedTokens> {
    const principal = sessionOf(caller, 'api_token:manage');
    return this.#changes.run(caller, async (tx) => {
      // whoever demands single sign-on, or suspends tokens, waits, and then finds them
      await lockOrganization(tx, orgId, 'share');
      const member = await findRow(tx, 'organization_members', { orgId, userId });
      if (!member) throw notFound('user', userId);
      await tx.lock('users', { id: userId, isActive: true }, 'no key update', () => notFound('user', userId));
      const own = await findRow(tx, 'organization_members', { orgId, userId: principal.userId });
      if (!own || !atLeast(asRole(own.role), asRole(member.role)))
        throw forbidden('api_token:manage', 'You cannot do this for a member whose role is above your own.');
      const [found] = await tx.query<{ isKnown: boolean }>({ text: KNOWN, values: [orgId, userId] });
      if (found?.isKnown)
        throw conflict(
          'user',
          userId,
          'known_to_provider',
          'The user signs in at an identity provider of the organization: the tokens work again after that.',
        );
      const resumed = await tx.query(statement`update api_tokens set suspended_at = null
        where org_id = ${orgId} and created_by_user_id = ${userId} and suspended_at is not null returning id`);
      tx.audit({
        action: 'update',
        resourceType: 'organization_member',
        resourceId: userId,
        orgId,
        metadata: { tokens_resumed: resumed.length },
      });
      return { orgId, userId, resumed: resumed.length };
    });
  }
}
