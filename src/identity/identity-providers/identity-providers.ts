import { findRows } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { IdentityProvider } from '../../generated/prisma/client.ts';
import { ApiError } from '../../kernel/errors.ts';
import type { Owner } from '../../kernel/owner.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { clientSecretIn } from '../../platform/outbound/client-secret.ts';
import { isLiveOrganization } from '../../tenancy/views.ts';
import { VaultFault } from '../../vault/secrets/envelope.ts';
import type { Vault } from '../../vault/secrets/vault.ts';

/** A provider that signs users in: it is active and configured, and its organization is there. */
const SIGNS_IN = `t.is_active and coalesce(t.saml_entity_id, t.oidc_client_id) is not null
  and ${isLiveOrganization('t.org_id')}`;

/** The providers as sign-ins find them, by no tenant: whoever signs in is nobody yet. */
export class IdentityProviders implements Owner {
  readonly retention = [
    `delete from sso_codes where expires_at < now() - interval '1 day'`,
    `delete from sso_states where expires_at < now() - interval '1 day'`,
    `delete from sso_assertions where expires_at < now()`,
    `delete from identity_provider_tests where expires_at < now()`,
    // what a provider knows somebody by goes with the rest of their personal data
    `delete from identity_links l using users u where u.id = l.user_id and u.purged_at is not null`,
  ];
  readonly #deps: { sql: Sql; vault: Vault };

  constructor(deps: { sql: Sql; vault: Vault }) {
    this.#deps = deps;
  }

  /** A provider that signs users in; `null` if there is none with this identifier. */
  async byId(id: string): Promise<IdentityProvider | null> {
    return this.#find(statement`t.id = ${id}`);
  }

  /**
   * The provider that signs in whoever has a mail address in this domain; `null` if there is none.
   * @param domain as `domainOfEmail` gives it
   */
  async byDomain(domain: string | null): Promise<IdentityProvider | null> {
    if (domain === null) return null;
    return this.#find(
      statement`t.id = (select d.identity_provider_id from identity_provider_domains d where d.domain = ${domain})`,
    );
  }

  /**
   * The secret of the client of an OpenID provider; `null` for a client without one.
   * @throws ClientSecretUnusable
   */
  async clientSecret({ id, orgId, oidcClientSecretRef }: IdentityProvider): Promise<string | null> {
    if (oidcClientSecretRef === null) return null;
    try {
      const value = await this.#deps.vault.open(systemCaller('sign-in'), orgId, oidcClientSecretRef);
      const secret = clientSecretIn(value);
      if (secret !== null) return secret;
    } catch (error) {
      if (!(error instanceof VaultFault) && !(error instanceof ApiError)) throw error;
      throw new ClientSecretUnusable(id, { cause: error });
    }
    throw new ClientSecretUnusable(id);
  }

  async #find({ text, values }: Statement): Promise<IdentityProvider | null> {
    const [found] = await findRows(this.#deps.sql, 'identity_providers', { text: `${text} and ${SIGNS_IN}`, values });
    return found ?? null;
  }
}

/** The secret that a provider refers to is missing, disabled, expired, without a value, or nothing of the vault. */
export class ClientSecretUnusable extends Error {
  override readonly name = 'ClientSecretUnusable';

  constructor(providerId: string, options?: ErrorOptions) {
    super(`The client secret of the identity provider '${providerId}' cannot be used.`, options);
  }
}
