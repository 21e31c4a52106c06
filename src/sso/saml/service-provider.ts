import { isUtf8 } from 'node:buffer';
import { type CacheProvider, SAML, type SamlConfig, ValidateInResponseTo } from '@node-saml/node-saml';
// the library decrypts by itself; what was encrypted is looked at before, like any other message
import { decryptXml, parseDomFromString, parseXml2JsFromString, xpath } from '@node-saml/node-saml/lib/xml.js';
import { SsoRefusal } from '../sso-refusal.ts';
import { type AcceptedAssertion, acceptAssertion, SKEW_MS } from './assertion.ts';
import { checkDecrypted, checkResponse } from './message-rules.ts';
import { outlineOf } from './outline.ts';
import type { SamlProvider } from './saml-provider.ts';
import type { ServiceKey } from './service-key.ts';

/** Bytes of a message. Honest ones have a few thousand; checking a signature takes longer with each. */
const MAX_MESSAGE = 256 * 1024;
/** A sign-in ends ten minutes after it has begun (defaults §1). */
const REQUEST_MS = 600_000;

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

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

  /** What an identity provider has to know of the service, as XML. */
  async metadata(provider: SamlProvider): Promise<string> {
    const saml = await this.#library(provider, { requestId: '', signs: provider.signAuthnRequests });
    const { certificate } = await this.#key.pair();
    return saml.generateServiceProviderMetadata(certificate, certificate);
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
      entryPoint: provider.ssoUrl,
      issuer: this.entityIdFor(provider),
      audience: this.entityIdFor(provider),
      idpIssuer: provider.entityId,
      idpCert: provider.certificate.match(CERTIFICATE) ?? [],
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

/** The XML of a message. @throws SsoRefusal */
function decoded(message: string): string {
  const text = message.replaceAll(/\s+/g, '');
  if (text.length > (MAX_MESSAGE / 3) * 4 + 4) throw new SsoRefusal('the message is too long');
  if (text === '' || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text))
    throw new SsoRefusal('the message is not base64');
  const bytes = Buffer.from(text, 'base64');
  if (!isUtf8(bytes)) throw new SsoRefusal('the message is not UTF-8');
  return bytes.toString('utf8');
}

/**
 * XML that is not well-formed goes no further: the parser that checks signatures would only warn, on the console.
 * @throws SsoRefusal
 */
async function checkForm(xml: string): Promise<void> {
  await parseXml2JsFromString(xml).catch(() => {
    throw new SsoRefusal('the message is not well-formed XML');
  });
}

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
