import type { Budgets } from '../../access/budgets.ts';
import type { MailBudgets } from '../../access/mail-budgets.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import type { Changes } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import { loaderOf } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import type { RequestCache } from '../../data/request-cache.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProviderDomain } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { ApiError, conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import { textsOf } from '../../platform/outbound/texts.ts';
import { domainKey } from './domain-name.ts';

/** How an organization shows that a domain is its own. */
export const proofMethods = ['dns', 'mail'] as const;
export type ProofMethod = (typeof proofMethods)[number];

/** Where the DNS record of a proof stands, and what it says. */
export const recordNameOf = (domain: string): string => `_platform-verification.${domain}`;
export const recordValueOf = (token: string): string => `platform-verification=${token}`;
/** Who gets the mail of a proof. */
export const postmasterOf = (domain: string): string => `postmaster@${domain}`;

const DAYS: Record<ProofMethod, number> = { dns: 30, mail: 1 };
const DAY_MS = 86_400_000;
/** Mails to a postmaster per hour, and looks at the DNS and tries of codes per minute. */
const MAILS_PER_HOUR = 3;
const CHECKS_PER_MINUTE = 20;

interface DomainProofDeps {
  sql: Sql;
  changes: Changes;
  mail: AccountMail;
  mailBudgets: MailBudgets;
  budgets: Budgets;
  config: Pick<Config, 'outboundDns'>;
}

/** A domain of a provider, in its organization. */
interface ProviderDomain {
  orgId: string;
  id: string;
  domain: string;
}

/** Proofs that the mail domains of providers belong to their organizations: only in these, accounts are linked. */
export class DomainProofs {
  readonly #deps: DomainProofDeps;
  readonly #mails: Budget;
  readonly #checks: Budget;

  constructor(deps: DomainProofDeps) {
    this.#deps = deps;
    this.#mails = deps.budgets.of('domain_mails', MAILS_PER_HOUR, 3_600);
    this.#checks = deps.budgets.of('domain_checks', CHECKS_PER_MINUTE, 60);
  }

  /** The domains of a provider, by name. */
  async domainsOf(context: RequestCache, providerId: string): Promise<IdentityProviderDomain[]> {
    return loaderOf(context, 'domains of identity providers', async (keys) => {
      const ids = keys.map(([id]) => id!);
      const rows = await this.#deps.sql.query<IdentityProviderDomain>(statement`
        select domain, org_id as "orgId", identity_provider_id as "identityProviderId", state,
          proof_method as "proofMethod", proof_token as "proofToken", proof_started_at as "proofStartedAt",
          proven_at as "provenAt", proven_by as "provenBy", created_at as "createdAt"
        from identity_provider_domains where identity_provider_id = any(${ids}::text[]) order by domain`);
      return ids.map((id) => rows.filter(({ identityProviderId }) => identityProviderId === id));
    }).load([providerId]);
  }

  /**
   * Starts a proof, in place of one that was started before. A proof that was made stays.
   * @throws RESOURCE_NOT_FOUND, InputError for a domain that the provider does not have, RATE_LIMIT_EXCEEDED
   */
  async start(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    id: string,
    input: { domain: string; method: ProofMethod },
  ): Promise<IdentityProviderDomain> {
    const { changes, mail, mailBudgets } = this.#deps;
    const named = { orgId, id, domain: keyOf(input.domain) };
    const { method } = input;
    if (method === 'mail') {
      await this.#mails.demand(named.domain);
      await mailBudgets.demand(caller, { to: postmasterOf(named.domain), orgId });
    }
    return changes.run(caller, async (tx) => {
      const { organization } = await lock(tx, named);
      const token = randomToken();
      if (method === 'mail') {
        const { username: by } = caller.principal;
        mail.domainProof(tx, postmasterOf(named.domain), { domain: named.domain, organization, by, code: token });
      }
      record(tx, named, { proof_started: named.domain, method });
      return tx.change(
        'identity_provider_domains',
        { domain: named.domain },
        {
          proofMethod: method,
          proofToken: method === 'dns' ? token : null,
          proofCodeHash: method === 'mail' ? tokenHash(token) : null,
          proofStartedAt: new Date(),
        },
        () => notFound('identity_provider', id),
      );
    });
  }

  /**
   * Looks whether a started proof is there: in the DNS, or the code from the mail.
   * @throws RESOURCE_NOT_FOUND; InputError for a domain that the provider does not have, and for a wrong code;
   * RESOURCE_CONFLICT `proof_not_started`, `proof_not_found`; UPSTREAM_TIMEOUT if no DNS server answers;
   * RATE_LIMIT_EXCEEDED
   */
  async check(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    id: string,
    input: { domain: string; code?: string | null | undefined },
  ): Promise<IdentityProviderDomain> {
    const named = { orgId, id, domain: keyOf(input.domain) };
    await this.#checks.demand(orgId);
    const started = await findRow(this.#deps.sql, 'identity_provider_domains', {
      domain: named.domain,
      identityProviderId: id,
      orgId,
    });
    // the lock below tells what is missing
    if (started?.proofMethod === 'dns') await this.#demandRecord(named, started);
    return this.#deps.changes.run(caller, async (tx) => {
      const { row } = await lock(tx, named);
      const method = row.proofMethod as ProofMethod | null;
      const endsAt = method && row.proofStartedAt ? row.proofStartedAt.getTime() + DAYS[method] * DAY_MS : 0;
      if (!method || endsAt < Date.now()) throw notStarted(named);
      // started anew since it was looked for
      if (method === 'dns' && row.proofToken !== started?.proofToken) throw notStarted(named);
      if (method === 'mail' && (!input.code || tokenHash(input.code.trim()) !== row.proofCodeHash))
        throw invalidInput(['input', 'code'], 'it is not the code of the latest mail to the postmaster');
      record(tx, named, { proven: named.domain, method });
      return tx.change(
        'identity_provider_domains',
        { domain: named.domain },
        {
          state: 'proven',
          provenAt: row.provenAt ?? new Date(),
          provenBy: caller.principal.userId,
          proofMethod: null,
          proofToken: null,
          proofCodeHash: null,
          proofStartedAt: null,
        },
        () => notFound('identity_provider', id),
      );
    });
  }

  async #demandRecord({ id, domain }: ProviderDomain, { proofToken }: IdentityProviderDomain): Promise<void> {
    const name = recordNameOf(domain);
    const found = await textsOf(name, this.#deps.config.outboundDns).catch((error: unknown) => {
      if (!(error instanceof OutboundError)) throw error;
      throw new ApiError('UPSTREAM_TIMEOUT', { upstream: 'dns' }, `No DNS server answered for '${name}'. Try again.`);
    });
    const wanted = recordValueOf(proofToken ?? '');
    if (found.some((text) => text.trim() === wanted)) return;
    const others = found.length > 0 ? 'It has other TXT records.' : 'It has no TXT record.';
    throw conflict(
      'identity_provider',
      id,
      'proof_not_found',
      `The DNS has no TXT record '${wanted}' at '${name}' yet. ${others} ` +
        'A new record may take minutes to become visible.',
    );
  }
}

/** @throws InputError for a text that is no domain */
function keyOf(domain: string): string {
  const key = domainKey(domain);
  if (key === null) throw invalidInput(['input', 'domain'], 'it is not a domain: write it like example.com');
  return key;
}

const notStarted = ({ id, domain }: ProviderDomain) =>
  conflict(
    'identity_provider',
    id,
    'proof_not_started',
    `No proof of the domain '${domain}' was started, or the proof has expired: start it.`,
  );

/**
 * Locks the provider and its domain, and raises the version of the provider, which shows it.
 * @throws RESOURCE_NOT_FOUND, InputError for a domain of others
 */
async function lock(
  tx: Tx,
  { orgId, id, domain }: ProviderDomain,
): Promise<{ row: IdentityProviderDomain; organization: string }> {
  await tx.lock('identity_providers', { id, orgId }, 'no key update', () => notFound('identity_provider', id));
  await tx.expectVersion({ table: 'identity_providers', key: { id } });
  const row = await tx.lock('identity_provider_domains', { domain, identityProviderId: id }, 'no key update', () =>
    invalidInput(['input', 'domain'], "it is not in the provider's 'verifiedDomains': add it there first"),
  );
  const organization = await findRow(tx, 'organizations', { id: orgId });
  return { row, organization: organization?.name ?? orgId };
}

function record(tx: Tx, { orgId, id }: ProviderDomain, metadata: Record<string, unknown>): void {
  tx.write(statement`update identity_providers set updated_at = clock_timestamp() where id = ${id}`);
  recordChange(tx, 'update', 'identity_provider', { id, orgId }, metadata);
}
