import { certificateBlocks } from '../../identity-providers/certificates.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { decrypted } from './decryption.ts';
import { acceptLogout, checkLogoutForm, checkName, type LogoutMessage } from './logout-message.ts';
import { checkForm } from './message-form.ts';
import { decoded, inflated } from './message-text.ts';
import { outlineOf } from './outline.ts';
import { verifiedRedirect } from './redirect-binding.ts';
import type { SamlProvider } from './saml-provider.ts';
import { objectOf, verifiedXml } from './saml-xml.ts';
import { isElement } from './xml-element.ts';

/** A message as it came: in the query of an address, or from a form, base64. */
export type SentLogout =
  | { query: string }
  | { name: 'SAMLRequest' | 'SAMLResponse'; message: string; relayState: string };

/** A message of a sign-out, and what it has to be. */
export interface LogoutToCheck {
  provider: SamlProvider;
  sent: SentLogout;
  /** The address that got it. */
  destination: string;
  /** Of the service (PEM). */
  privateKey: string;
  now: number;
}

const MAX_RELAY_STATE = 1_024;

/**
 * Verifies a message: nothing of it is read before its signature.
 * @returns it, and the `RelayState` that goes with the answer
 * @throws SsoRefusal for everything that is not as it must be
 */
export async function checkLogout(given: LogoutToCheck): Promise<LogoutMessage & { relayState: string }> {
  const { provider, sent, destination, privateKey, now } = given;
  const { name, xml, relayState } = await signedMessage(provider, sent);
  if (relayState.length > MAX_RELAY_STATE) throw new SsoRefusal('the message has a RelayState that is too long');
  const document = await objectOf(xml);
  const hidden = await hiddenName(document, xml, privateKey);
  return { ...acceptLogout(document, name, { issuer: provider.entityId, destination, now, hidden }), relayState };
}

async function signedMessage({ certificate }: SamlProvider, sent: SentLogout) {
  if ('query' in sent) {
    const { name, message, relayState } = verifiedRedirect(sent.query, certificate);
    const xml = await inflated(message);
    checkLogoutForm(outlineOf(xml), name);
    await checkForm(xml);
    return { name, xml, relayState };
  }
  const { name, message, relayState } = sent;
  const text = decoded(message);
  checkLogoutForm(outlineOf(text), name);
  await checkForm(text);
  return { name, xml: await signedPart(text, certificate), relayState };
}

/** The bytes of a message that its signature is over, which has to be over the whole. @throws SsoRefusal */
async function signedPart(xml: string, certificate: string): Promise<string> {
  const signed = await verifiedXml(xml, certificateBlocks(certificate));
  if (!signed) throw new SsoRefusal('the message is not signed by the identity provider');
  return signed;
}

/** The name of the user, as a document, if the request hides it. @throws SsoRefusal */
async function hiddenName(document: unknown, xml: string, privateKey: string): Promise<unknown> {
  const root = isElement(document) ? document.LogoutRequest : undefined;
  if (!isElement(root) || !Object.hasOwn(root, 'EncryptedID')) return null;
  const name = await decrypted(xml, 'name', privateKey);
  checkName(outlineOf(name));
  await checkForm(name);
  return objectOf(name);
}
