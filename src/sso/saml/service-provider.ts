import { type CacheProvider, SAML, type SamlConfig, ValidateInResponseTo } from '@node-saml/node-saml';
// the library decrypts by itself; what was encrypted is looked at before, like any other message
import { decryptXml, parseDomFromString, xpath } from '@node-saml/node-saml/lib/xml.js';
import { certificateBlocks } from '../../identity-providers/certificates.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { type AcceptedAssertion, acceptAssertion, SKEW_MS } from './assertion.ts';
import { checkDecrypted, checkResponse } from './message-rules.ts';
import { checkForm, decoded } from './message-text.ts';
import { outlineOf } from './outline.ts';
import type { SamlProvider } from './saml-provider.ts';
import type { ServiceKey } from './service-key.ts';

/** A sign-in ends ten minutes after it has begun (defaults §1). */
const REQUEST_MS = 600_000;

/**
 * The service as SAML service provider: web browser sign-in, with requests by redirect and responses by POST. An
 * assertion is accepted only if it is signed itself, with a certificate of its provider, whatever else is signed.
 */
export class ServiceProvider {
  readonly #publicUrl: () => string;
  readonly #key: ServiceKey;
  readonly #now: () => number;

  constructor({ publicUrl, key, now = Date.now }: { publicUrl: () => string; key: ServiceKey; now?: () => number }) {
    this.#publicUrl = publicUrl;
    this.#key = key;
    this.#now = now;
  }

  /** Where identity providers send responses. */
  get acsUrl(): string {
    return `${this.#publicUrl()}/v1/auth/sso/callback/saml`;
  }

  /** The name of the service towards one provider, which is the address of its metadata. */
  entityIdFor({ id }: Pick<SamlProvider, 'id'>): string {
    return `${this.#publicUrl()}/v1/auth/sso/metadata/${id}`;
  }

  /** The address that a browser opens in order to sign in. @param relayState comes back with the response */
  async authorizationUrl(
    provider: SamlProvider,
    { requestId, relayState }: { requestId: string; relayState: string },
  ): Promise<string> {
    const saml = await this.#library(provider, { requestId, signs: provider.signAuthnRequests });
    return saml.getAuthorizeUrlAsync(relayState, undefined, {});
  }

  /** Where an identity provider sends requests and responses of sign-outs. */
  sloUrlFor({ id }: Pick<SamlProvider, 'id'>): string {
    return `${this.#publicUrl()}/v1/auth/sso/logout/${id}`;
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

  /**
   * Verifies a response.
   * @param message base64, as it was posted
   * @param requestId the request that it must answer; `null` for a response that nobody asked for
   * @throws SsoRefusal for everything that is not as it must be
   */
  async finish(provider: SamlProvider, message: string, requestId: string | null): Promise<AcceptedAssertion> {
    const xml = decoded(message);
    const { acsUrl } = this;
    const { entityId: issuer, groupAttribute } = provider;
    const { isSigned, isEncrypted } = checkResponse(outlineOf(xml), { acsUrl, requestId, issuer });
    await checkForm(xml);
    if (isEncrypted) {
      const decrypted = await this.#decrypted(xml);
      checkDecrypted(outlineOf(decrypted));
      await checkForm(decrypted);
    }
    const saml = await this.#library(provider, { requestId, signs: false, isResponseSigned: isSigned });
    const SAMLResponse = Buffer.from(xml).toString('base64');
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse }).catch((error: unknown) => {
      throw refusalOf(error);
    });
    return acceptAssertion(profile?.getAssertion?.(), {
      issuer,
      acsUrl,
      audience: this.entityIdFor(provider),
      requestId,
      groupAttribute,
      now: this.#now(),
    });
  }

  /**
   * The provider that an unsolicited response is meant to come through, by its audience: nothing of it is proven yet.
   * `null` if the response names none, or hides it.
   */
  recipientOf(message: string): string | null {
    const prefix = this.entityIdFor({ id: '' });
    const audience = outlineOf(decoded(message)).find(
      ({ name, text }) => name === 'Audience' && text.startsWith(prefix),
    );
    return audience?.text.slice(prefix.length) ?? null;
  }

  async #decrypted(xml: string): Promise<string> {
    try {
      const document = await parseDomFromString(xml);
      const [encrypted]: { toString(): string }[] = xpath.selectElements(
        document,
        "/*/*[local-name()='EncryptedAssertion']",
      );
      if (!encrypted) throw new SsoRefusal('the assertion is not directly in the response');
      return await decryptXml(encrypted.toString(), (await this.#key.pair()).privateKey);
    } catch (error) {
      throw error instanceof SsoRefusal ? error : new SsoRefusal('the assertion cannot be decrypted');
    }
  }

  async #library(
    provider: SamlProvider,
    {
      requestId,
      signs,
      isResponseSigned = false,
    }: { requestId: string | null; signs: boolean; isResponseSigned?: boolean },
  ): Promise<SAML> {
    const { privateKey, certificate } = await this.#key.pair();
    return new SAML({
      callbackUrl: this.acsUrl,
      ...(provider.sloUrl === null ? {} : { logoutCallbackUrl: this.sloUrlFor(provider) }),
      entryPoint: provider.ssoUrl,
      issuer: this.entityIdFor(provider),
      audience: this.entityIdFor(provider),
      idpIssuer: provider.entityId,
      idpCert: certificateBlocks(provider.certificate),
      identifierFormat: provider.nameIdFormat,
      wantAssertionsSigned: true,
      wantAuthnResponseSigned: isResponseSigned,
      acceptedClockSkewMs: SKEW_MS,
      validateInResponseTo: requestId === null ? ValidateInResponseTo.never : ValidateInResponseTo.always,
      requestIdExpirationPeriodMs: REQUEST_MS,
      cacheProvider: onlyRequest(requestId ?? '', this.#now),
      generateUniqueId: () => requestId ?? '',
      disableRequestedAuthnContext: true,
      decryptionPvk: privateKey,
      signatureAlgorithm: 'sha256',
      digestAlgorithm: 'sha256',
      ...(signs ? { privateKey, publicCert: certificate } : {}),
    } satisfies SamlConfig);
  }
}

/**
 * The requests that the library may find: the one of the sign-in that is finished. The database has the sign-ins of all
 * nodes, and lets each be finished once.
 */
const onlyRequest = (requestId: string, now: () => number): CacheProvider => ({
  saveAsync: async (_key, value) => ({ value, createdAt: now() }),
  getAsync: async (key) => (key === requestId ? new Date(now()).toISOString() : null),
  removeAsync: async (key) => key,
});

/** The errors of the library may quote the message, so only their kind is kept. */
function refusalOf(error: unknown): SsoRefusal {
  if (error instanceof SsoRefusal) return error;
  const text = error instanceof Error ? error.message : '';
  return new SsoRefusal(
    REASONS.find(([pattern]) => pattern.test(text))?.[1] ?? 'the message is not a valid SAML response',
  );
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/signature|signed|digest|transforms/i, 'a signature is not one of the identity provider'],
  [/InResponseTo/, 'the assertion answers another request, or none'],
  [/confirmation|expired|not yet valid/i, 'the assertion has expired, or is not valid yet'],
  [/audience/i, 'the assertion is for another audience'],
];
