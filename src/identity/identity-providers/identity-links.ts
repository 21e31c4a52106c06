import type { Authentication } from '../../access/authentication.ts';
import { brokenUnique, type Changes } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { whileTaken } from '../../data/while-taken.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityLink, IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, forbidden, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { asRole, atLeast } from '../../kernel/roles.ts';
import { demandMember } from '../../tenancy/organizations/membership.ts';
import type { ContentOwner, RemovedMember } from '../../tenancy/removals.ts';
import { endLinks, returnAddresses, settleAddress } from '../auth/held-addresses.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';
import { domainOfEmail } from './domain-name.ts';
import { ACCOUNT_BY_ID, belongsElsewhere, type KnownAccount } from './sign-in-admission.ts';
import { suspendTokens } from './token-suspension.ts';

interface IdentityLinkDeps {
  sql: Sql;
  changes: Changes;
  sessions: Sessions;
  authentication: Authentication;
  factorEnds: FactorEnds;
}

/** A link that was removed. */
type EndedLink = Deleted<OrganizationPlace & Pick<IdentityLink, 'identityProviderId' | 'userId'>>;

/** Why an account is linked, as its link says it. */
const BY_HAND = 'administrator';

/** Which accounts identities at providers are, as administrators decide it. */
export class IdentityLinks implements ContentOwner {
  readonly #deps: IdentityLinkDeps;

  constructor(deps: IdentityLinkDeps) {
    this.#deps = deps;
  }

  /** Ends the links of members who leave, and gives them their addresses back. */
  async memberRemoved(tx: Tx, { orgId, userId }: RemovedMember): Promise<void> {
    await endLinks(tx, orgId, userId);
  }

  /** The link of a member at a provider; `null` if there is none. @throws RESOURCE_NOT_FOUND */
  async find({ orgId }: Checked<OrganizationPlace>, id: string, userId: string): Promise<IdentityLink | null> {
    const { sql } = this.#deps;
    if (!(await findRow(sql, 'identity_providers', { id, orgId }))) throw notFound('identity_provider', id);
    if (!(await findRow(sql, 'organization_members', { orgId, userId }))) throw notFound('user', userId);
    return findRow(sql, 'identity_links', { identityProviderId: id, userId, endedAt: null });
  }

  /**
   * Links a member of the organization to an identity, without a proof of their address. All that led to an account
   * whose address was never proven ends: whoever registered it may be somebody else.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an account above the caller, of other organizations too, or that
   * administers the platform; RESOURCE_ALREADY_EXISTS for an identity or a user that is linked
   */
  async link(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    id: string,
    { userId, subject }: { userId: string; subject: string },
  ): Promise<IdentityLink> {
    try {
      return await this.#deps.changes.run(caller, async (tx) => {
        demandMember(tx, orgId, userId, () => notFound('user', userId));
        // what decides about the account must not change meanwhile
        await tx.lock('users', { id: userId }, 'no key update', () => notFound('user', userId));
        const [account] = await tx.query<KnownAccount>({
          text: ACCOUNT_BY_ID,
          values: [id, orgId, userId],
        });
        const provider = await tx.lock('identity_providers', { id, orgId }, 'share', () =>
          notFound('identity_provider', id),
        );
        if (!account?.role) throw notFound('user', userId);
        const isProven = await this.#demandAuthority(tx, caller, provider, account);
        await refuseLinked(tx, { id, userId, subject });
        const ended = await settleAddress(tx, this.#deps, account, { isProven, isNew: true, orgId });
        recordChange(tx, 'update', 'identity_provider', provider, { linked: userId, ...ended });
        tx.announce({
          type: 'user.identity_linked',
          orgId: null,
          resourceType: 'user',
          resourceId: userId,
          facts: { name: provider.name },
        });
        removeEndedLinks(tx, { id, userId, subject });
        return tx.create('identity_links', {
          id: newId('identity_link'),
          orgId,
          identityProviderId: id,
          subject,
          userId,
          reason: BY_HAND,
          linkedBy: caller.principal.userId,
        });
      });
    } catch (error) {
      if (brokenUnique(error)) await refuseLinked(this.#deps.sql, { id, userId, subject });
      throw error;
    }
  }

  /** Removes the link of a user, and ends the sessions that it made. @throws RESOURCE_NOT_FOUND */
  async unlink(caller: Caller, { orgId }: Checked<OrganizationPlace>, id: string, userId: string): Promise<EndedLink> {
    const { changes, sessions, authentication } = this.#deps;
    return whileTaken(() =>
      changes.run(caller, async (tx) => {
        await tx.lock('users', { id: userId }, 'no key update', () => notFound('user', userId));
        const provider = await tx.lock('identity_providers', { id, orgId }, 'share', () =>
          notFound('identity_provider', id),
        );
        // while the link is there: it says whose tokens they are
        const whose = { identityProviderId: id, orgId, userId };
        const suspended = provider.suspendsTokens ? await suspendTokens(tx, whose) : 0;
        const [link] = await tx.query<{ id: string }>(statement`delete from identity_links
          where identity_provider_id = ${id} and user_id = ${userId} returning id`);
        if (!link) throw notFound('user', userId);
        returnAddresses(tx, [userId]);
        sessions.revokeOfProvider(tx, id, 'identity_unlinked', userId);
        tx.afterCommit(() => authentication.sessionsChanged());
        const metadata = { unlinked: userId, ...(provider.suspendsTokens ? { tokens_suspended: suspended } : {}) };
        recordChange(tx, 'update', 'identity_provider', provider, metadata);
        return { id: link.id, orgId, identityProviderId: id, userId };
      }),
    );
  }

  /**
   * Whoever controls the provider signs in to the account from then on.
   * @returns whether the organization has proven the domain of the account's address
   * @throws FORBIDDEN
   */
  async #demandAuthority(
    tx: Tx,
    { principal }: Caller,
    { orgId }: ProviderRow,
    account: KnownAccount,
  ): Promise<boolean> {
    const own = await findRow(tx, 'organization_members', { orgId, userId: principal.userId });
    if (!own || !atLeast(asRole(own.role), account.role!))
      throw refusal('You cannot link an account whose role is above your own.');
    if (account.isPlatformAdmin) throw refusal('Accounts of platform administrators cannot be linked.');
    const domain = domainOfEmail(account.email);
    const claim = domain && (await findRow(tx, 'identity_provider_domains', { domain, orgId, state: 'proven' }));
    if (!claim && (await belongsElsewhere(tx, account, orgId)))
      throw refusal(
        'The account belongs to other organizations too: prove the domain of its e-mail address first, if it is yours.',
      );
    return claim !== null;
  }
}

/** Makes room for a link in place of one that has ended. */
export function removeEndedLinks(
  tx: Tx,
  { id, userId, subject }: { id: string; userId: string; subject: string },
): void {
  tx.write(statement`delete from identity_links
    where identity_provider_id = ${id} and (user_id = ${userId} or subject = ${subject}) and ended_at is not null`);
}

const refusal = (message: string) => forbidden('identity_provider:update', message);

/** @throws RESOURCE_ALREADY_EXISTS for an identity or a user that is linked at the provider */
async function refuseLinked(
  db: Pick<Tx, 'query'>,
  { id, userId, subject }: { id: string; userId: string; subject: string },
): Promise<void> {
  const [found] = await db.query<{ userId: string }>(statement`
    select user_id as "userId" from identity_links
    where identity_provider_id = ${id} and (user_id = ${userId} or subject = ${subject}) and ended_at is null
    limit 1`);
  if (!found) return;
  throw found.userId === userId
    ? alreadyExists('identity_link', 'user_id', userId)
    : alreadyExists('identity_link', 'subject', subject);
}
