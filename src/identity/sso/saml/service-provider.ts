import type { SAML } from '@node-saml/node-saml';
import type { AcceptedAssertion } from './assertion.ts';
import type { MessageChecks } from './message-checks.ts';
import type { ServiceAddresses } from './saml-library.ts';
import type { SamlProvider } from './saml-provider.ts';
import type { ServiceKey } from './service-key.ts';

interface ServiceProviderDeps {
  publicUrl: () => string;
  key: ServiceKey;
  checks: MessageChecks;
  now?: () => number;
}

/**
 * The service as SAML service provider: web browser sign-in, with requests by redirect and responses by POST. An
 * assertion is accepted only if it is signed itself, with a certificate of its provider, whatever else is signed.
 */
export class ServiceProvider {
  readonly #publicUrl: () => string;
  readonly #key: ServiceKey;
  readonly #checks: MessageChecks;
  readonly #now: () => number;

  constructor({ publicUrl, key, checks, now = Date.now }: ServiceProviderDeps) {
    this.#publicUrl = publicUrl;
    this.#key = key;
    this.#checks = checks;
    this.#now = now;
  }

  /**
   * The names and addresses of the service towards one provider: where that one sends responses, and messages of
   * sign-outs. The name is the address of the metadata.
   */
  addressesFor({ id }: Pick<SamlProvider, 'id'>): ServiceAddresses {
    const sso = `${this.#publicUrl()}/v1/auth/sso`;
    return { acsUrl: `${sso}/callback/saml`, entityId: `${sso}/metadata/${id}`, sloUrl: `${sso}/logout/${id}` };
  }

  /** The address that a browser opens in order to sign in. @param relayState comes back with the response */
  async authorizationUrl(
    provider: SamlProvider,
    { requestId, relayState }: { requestId: string; relayState: string },
  ): Promise<string> {
    const saml = await this.#library(provider, { requestId, signs: provider.signAuthnRequests });
    return saml.getAuthorizeUrlAsync(relayState, undefined, {});
  }

  /** What an identity provider has to know of the service, as XML. */
  async metadata(provider: SamlProvider): Promise<string> {
    const { signAuthnRequests, sloUrl } = provider;
    const saml = await this.#library(provider, { requestId: '', signs: signAuthnRequests || sloUrl !== null });
    const { certificate } = await this.#key.pair();
    const xml = saml.generateServiceProviderMetadata(certificate, certificate);
    if (sloUrl === null) return xml;
    // the library takes whoever signs anything for one that signs these requests, and knows one binding of sign-outs
    return (
      signAuthnRequests ? xml : xml.replace(' AuthnRequestsSigned="true"', ' AuthnRequestsSigned="false"')
    ).replace(/<SingleLogoutService [^>]*>/, (post) => `${post.replace('HTTP-POST', 'HTTP-Redirect')}${post}`);
  }

  /** Refuses a response before anything is used up. @throws SERVICE_UNAVAILABLE while too many wait for their check */
  demandRoom(): void {
    this.#checks.demandRoom();
  }

  /**
   * Verifies a response.
   * @param message base64, as it was posted
   * @param requestId the request that it must answer; `null` for a response that nobody asked for
   * @throws SsoRefusal for everything that is not as it must be; SERVICE_UNAVAILABLE
   */
  async finish(provider: SamlProvider, message: string, requestId: string | null): Promise<AcceptedAssertion> {
    const { privateKey } = await this.#key.pair();
    const addresses = this.addressesFor(provider);
    return this.#checks.run('signIn', { provider, message, requestId, addresses, privateKey, now: this.#now() });
  }

  /**
   * The provider that an unsolicited response is meant to come through, by its audience: nothing of it is proven yet.
   * `null` if the response names none. @throws SsoRefusal; SERVICE_UNAVAILABLE
   */
  async recipientOf(message: string): Promise<string | null> {
    const { privateKey } = await this.#key.pair();
    const { entityId: prefix } = this.addressesFor({ id: '' });
    return this.#checks.run('recipient', { message, prefix, privateKey });
  }

  async #library(provider: SamlProvider, { requestId, signs }: { requestId: string; signs: boolean }): Promise<SAML> {
    const pair = await this.#key.pair();
    const { samlLibrary } = await import('./saml-library.ts'); // large, and few organizations have such a provider
    return samlLibrary(provider, {
      addresses: this.addressesFor(provider),
      requestId,
      now: this.#now(),
      privateKey: pair.privateKey,
      signsAs: signs ? pair : null,
    });
  }
}
