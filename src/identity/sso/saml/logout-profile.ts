import { randomBytes } from 'node:crypto';
import type { SAML } from '@node-saml/node-saml';
import { certificateBlocks } from '../../identity-providers/certificates.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import type { SentLogout } from './logout-check.ts';
import type { LogoutMessage } from './logout-message.ts';
import type { MessageChecks } from './message-checks.ts';
import { signedRedirect } from './redirect-binding.ts';
import type { SamlProvider } from './saml-provider.ts';
import type { ServiceKey } from './service-key.ts';
import type { ServiceProvider } from './service-provider.ts';

/** A provider that hears of sign-outs. */
export type LogoutProvider = SamlProvider & { sloUrl: string };

/** A message as it came: in the query of an address, or in the fields of a form. */
export type LogoutInput = { query: string } | { fields: URLSearchParams };

const UNSPECIFIED = 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified';

interface LogoutProfileDeps {
  service: ServiceProvider;
  key: ServiceKey;
  checks: MessageChecks;
  now?: () => number;
}

/** Single logout of a SAML service provider: messages come by redirect or POST, and leave by redirect, all signed. */
export class LogoutProfile {
  readonly #service: ServiceProvider;
  readonly #key: ServiceKey;
  readonly #checks: MessageChecks;
  readonly #now: () => number;

  constructor({ service, key, checks, now = Date.now }: LogoutProfileDeps) {
    this.#service = service;
    this.#key = key;
    this.#checks = checks;
    this.#now = now;
  }

  /**
   * Verifies a message: nothing of it is read before its signature.
   * @returns it, and the `RelayState` that goes with the answer
   * @throws SsoRefusal for everything that is not as it must be; SERVICE_UNAVAILABLE
   */
  async read(provider: LogoutProvider, input: LogoutInput): Promise<LogoutMessage & { relayState: string }> {
    const sent = 'query' in input ? input : postedIn(input.fields);
    const { privateKey } = await this.#key.pair();
    const { sloUrl: destination } = this.#service.addressesFor(provider);
    return this.#checks.run('logout', { provider, sent, destination, privateKey, now: this.#now() });
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
    const saml = await this.#library(provider, requestId);
    const url = await saml.getLogoutUrlAsync(user, '', {});
    return this.#sign(provider, 'SAMLRequest', url, '');
  }

  /** The address of the provider with the answer to its request, which has succeeded. */
  async responseUrl(
    provider: LogoutProvider,
    { requestId, relayState }: { requestId: string; relayState: string },
  ): Promise<string> {
    const request = { ID: requestId, issuer: provider.entityId, nameID: '', nameIDFormat: UNSPECIFIED };
    const id = `_${randomBytes(20).toString('hex')}`;
    const saml = await this.#library(provider, id);
    const url = await saml.getLogoutResponseUrlAsync(request, '', {}, true);
    return this.#sign(provider, 'SAMLResponse', url, relayState);
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

  async #library(provider: LogoutProvider, id: string): Promise<SAML> {
    const { SAML } = await import('@node-saml/node-saml'); // large: not before there is a provider
    const { acsUrl, entityId } = this.#service.addressesFor(provider);
    return new SAML({
      callbackUrl: acsUrl,
      entryPoint: provider.ssoUrl,
      logoutUrl: provider.sloUrl,
      issuer: entityId,
      idpCert: certificateBlocks(provider.certificate),
      generateUniqueId: () => id,
    });
  }
}

/** The message of a form. @throws SsoRefusal */
function postedIn(fields: URLSearchParams): SentLogout {
  const [requests, responses, states] = ['SAMLRequest', 'SAMLResponse', 'RelayState'].map((key) =>
    fields.getAll(key),
  ) as [string[], string[], string[]];
  const [message] = [...requests, ...responses];
  if (message === undefined || requests.length + responses.length > 1 || states.length > 1)
    throw new SsoRefusal('the form does not have exactly one message');
  return { name: requests.length === 1 ? 'SAMLRequest' : 'SAMLResponse', message, relayState: states[0] ?? '' };
}
