import { randomBytes } from 'node:crypto';
import { SAML } from '@node-saml/node-saml';
import { getVerifiedXml, parseDomFromString, parseXml2JsFromString } from '@node-saml/node-saml/lib/xml.js';
import { certificateBlocks } from '../../identity-providers/certificates.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { acceptLogout, checkLogoutForm, type LogoutMessage } from './logout-message.ts';
import { checkForm, decoded, inflated } from './message-text.ts';
import { outlineOf } from './outline.ts';
import { signedRedirect, verifiedRedirect } from './redirect-binding.ts';
import type { SamlProvider } from './saml-provider.ts';
import type { ServiceKey } from './service-key.ts';
import type { ServiceProvider } from './service-provider.ts';

/** A provider that hears of sign-outs. */
export type LogoutProvider = SamlProvider & { sloUrl: string };

/** A message as it came: in the query of an address, or in the fields of a form. */
export type LogoutInput = { query: string } | { fields: URLSearchParams };

const MAX_RELAY_STATE = 1_024;
const UNSPECIFIED = 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified';

/** Single logout of a SAML service provider: messages come by redirect or POST, and leave by redirect, all signed. */
export class LogoutProfile {
  readonly #service: ServiceProvider;
  readonly #key: ServiceKey;
  readonly #now: () => number;

  constructor({ service, key, now = Date.now }: { service: ServiceProvider; key: ServiceKey; now?: () => number }) {
    this.#service = service;
    this.#key = key;
    this.#now = now;
  }

  /**
   * Verifies a message: nothing of it is read before its signature.
   * @returns it, and the `RelayState` that goes with the answer
   * @throws SsoRefusal for everything that is not as it must be
   */
  async read(provider: LogoutProvider, input: LogoutInput): Promise<LogoutMessage & { relayState: string }> {
    const { name, xml, relayState } = await this.#signed(provider, input);
    if (relayState.length > MAX_RELAY_STATE) throw new SsoRefusal('the message has a RelayState that is too long');
    const document: unknown = await parseXml2JsFromString(xml);
    const expected = {
      issuer: provider.entityId,
      destination: this.#service.sloUrlFor(provider),
      now: this.#now(),
    };
    return { ...acceptLogout(document, name, expected), relayState };
  }

  /** The address of the provider with a request to end the session that it has made. */
  async requestUrl(
    provider: LogoutProvider,
    session: { requestId: string; subject: string; nameIdFormat: string | null; sessionIndex: string | null },
  ): Promise<string> {
    const { requestId, subject: nameID, sessionIndex } = session;
    const user = {
      issuer: provider.entityId,
      nameID,
      nameIDFormat: session.nameIdFormat ?? UNSPECIFIED,
      ...(sessionIndex === null ? {} : { sessionIndex }),
    };
    const url = await this.#library(provider, requestId).getLogoutUrlAsync(user, '', {});
    return this.#sign(provider, 'SAMLRequest', url, '');
  }

  /** The address of the provider with the answer to its request, which has succeeded. */
  async responseUrl(
    provider: LogoutProvider,
    { requestId, relayState }: { requestId: string; relayState: string },
  ): Promise<string> {
    const request = { ID: requestId, issuer: provider.entityId, nameID: '', nameIDFormat: UNSPECIFIED };
    const id = `_${randomBytes(20).toString('hex')}`;
    const url = await this.#library(provider, id).getLogoutResponseUrlAsync(request, '', {}, true);
    return this.#sign(provider, 'SAMLResponse', url, relayState);
  }

  async #signed({ certificate }: LogoutProvider, input: LogoutInput) {
    if ('query' in input) {
      const { name, message, relayState } = verifiedRedirect(input.query, certificate);
      const xml = await inflated(message);
      checkLogoutForm(outlineOf(xml), name);
      await checkForm(xml);
      return { name, xml, relayState };
    }
    const [requests, responses, states] = ['SAMLRequest', 'SAMLResponse', 'RelayState'].map((key) =>
      input.fields.getAll(key),
    ) as [string[], string[], string[]];
    const [message] = [...requests, ...responses];
    if (message === undefined || requests.length + responses.length > 1 || states.length > 1)
      throw new SsoRefusal('the form has not exactly one message');
    const name = requests.length === 1 ? ('SAMLRequest' as const) : ('SAMLResponse' as const);
    const text = decoded(message);
    checkLogoutForm(outlineOf(text), name);
    await checkForm(text);
    return { name, xml: await signedPart(text, certificate), relayState: states[0] ?? '' };
  }

  async #sign(
    { sloUrl }: LogoutProvider,
    name: 'SAMLRequest' | 'SAMLResponse',
    url: string,
    relayState: string,
  ): Promise<string> {
    const message = new URL(url).searchParams.get(name) ?? '';
    const { privateKey } = await this.#key.pair();
    return signedRedirect(sloUrl, { name, message, relayState }, privateKey);
  }

  #library(provider: LogoutProvider, id: string): SAML {
    return new SAML({
      callbackUrl: this.#service.acsUrl,
      entryPoint: provider.ssoUrl,
      logoutUrl: provider.sloUrl,
      issuer: this.#service.entityIdFor(provider),
      idpCert: certificateBlocks(provider.certificate),
      generateUniqueId: () => id,
    });
  }
}

/** The bytes of a message that its signature is over, which has to be over the whole. @throws SsoRefusal */
async function signedPart(xml: string, certificate: string): Promise<string> {
  const { documentElement } = await parseDomFromString(xml);
  const signed = documentElement && verifiedBytes(xml, documentElement, certificateBlocks(certificate));
  if (!signed) throw new SsoRefusal('the message is not signed, or by another than the identity provider');
  return signed;
}

function verifiedBytes(...given: Parameters<typeof getVerifiedXml>): string | null {
  try {
    return getVerifiedXml(...given);
  } catch {
    return null; // its errors may quote the message, and mean that the signature is none
  }
}
