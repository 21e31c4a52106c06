import { z } from 'zod';
import { lruOf } from '../../../kernel/lru.ts';
import type { Outbound } from '../../../platform/outbound/outbound.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import type { OidcProvider } from './oidc-provider.ts';
import { ProviderKeys, SIGNING_ALGORITHMS } from './provider-keys.ts';

const WELL_KNOWN = '/.well-known/openid-configuration';
const FRESH_MS = 600_000;
const MAX_PROVIDERS = 1_000;

const endpoint = z.url({ protocol: /^https?$/ }).max(2_048);

/** The members of OpenID Connect Discovery 1.0, section 3, that a sign-in uses. */
const document = z.object({
  issuer: endpoint,
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  jwks_uri: endpoint,
  userinfo_endpoint: endpoint.optional(),
  // RP-Initiated Logout 1.0; a provider with a wrong one can still be signed in at
  end_session_endpoint: endpoint.optional().catch(undefined),
  id_token_signing_alg_values_supported: z.array(z.string()).default(['RS256']),
  token_endpoint_auth_methods_supported: z.array(z.string()).default(['client_secret_basic']),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});

/** What a provider publishes, as far as it is used. */
export type ProviderMetadata = z.infer<typeof document>;

/** A provider that was asked. */
export interface DiscoveredProvider {
  metadata: ProviderMetadata;
  keys: ProviderKeys;
}

/** Reads what providers publish of themselves: each at most once in ten minutes. */
export class Discovery {
  readonly #outbound: Outbound;
  readonly #now: () => number;
  readonly #documents = lruOf<Promise<ProviderMetadata>>(MAX_PROVIDERS, { ttl: FRESH_MS });
  /** Live longer than the documents: looking for unknown keys is limited over all of them. */
  readonly #keys = lruOf<ProviderKeys>(MAX_PROVIDERS);

  constructor(outbound: Outbound, now: () => number = Date.now) {
    this.#outbound = outbound;
    this.#now = now;
  }

  /**
   * @throws SsoRefusal if the document is not what it should be, or is that of another issuer
   * @throws OutboundError if the provider does not answer
   */
  async of(provider: OidcProvider): Promise<DiscoveredProvider> {
    const key = `${provider.id} ${provider.discoveryUrl}`;
    let reading = this.#documents.get(key);
    if (!reading) {
      reading = this.#read(provider);
      this.#documents.set(key, reading);
      reading.catch(() => this.#documents.delete(key));
    }
    const metadata = await reading;
    return { metadata, keys: this.#keysOf(provider, metadata) };
  }

  async #read({ orgId, discoveryUrl }: OidcProvider): Promise<ProviderMetadata> {
    const issuer = issuerOf(discoveryUrl);
    const read = document.safeParse(await this.#json(orgId, `${issuer}${WELL_KNOWN}`));
    if (!read.success) throw new SsoRefusal('the configuration document of the provider is not valid');
    const metadata = read.data;
    // an issuer may end with a slash, which is not part of the address of its document
    if (metadata.issuer !== issuer && metadata.issuer !== `${issuer}/`)
      throw new SsoRefusal('the configuration document of the provider names another issuer');
    const accepted = metadata.id_token_signing_alg_values_supported.filter((name) => SIGNING_ALGORITHMS.includes(name));
    if (accepted.length === 0)
      throw new SsoRefusal('the provider supports no signing algorithm that the service accepts');
    return { ...metadata, id_token_signing_alg_values_supported: accepted };
  }

  #keysOf({ id, orgId }: OidcProvider, { jwks_uri: url }: ProviderMetadata): ProviderKeys {
    const key = `${id} ${url}`;
    let keys = this.#keys.get(key);
    if (!keys) {
      keys = new ProviderKeys(() => this.#json(orgId, url), this.#now);
      this.#keys.set(key, keys);
    }
    return keys;
  }

  async #json(owner: string, url: string): Promise<unknown> {
    const answer = await this.#outbound.request({ owner, url, headers: { accept: 'application/json' } });
    if (answer.status !== 200) throw new SsoRefusal('the provider did not answer with status 200');
    return answer.json();
  }
}

/** The issuer behind a discovery address, without a slash at the end. */
const issuerOf = (discoveryUrl: string): string => {
  const address = discoveryUrl.replace(/\/+$/, '');
  return (address.endsWith(WELL_KNOWN) ? address.slice(0, -WELL_KNOWN.length) : address).replace(/\/+$/, '');
};
