import { sign, verify, X509Certificate } from 'node:crypto';
import { certificateBlocks } from '../../identity-providers/certificates.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { bytesOf } from './message-text.ts';

const RSA_SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256';
/** The digests of the signatures that are accepted: the same as in documents. */
const DIGESTS: Readonly<Record<string, string>> = {
  [RSA_SHA256]: 'sha256',
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512': 'sha512',
};
const NAMES = ['SAMLRequest', 'SAMLResponse', 'RelayState', 'SigAlg', 'Signature'] as const;
type Name = (typeof NAMES)[number];

const refuse = (reason: string): never => {
  throw new SsoRefusal(reason);
};

/** What is in an address whose signature is right. */
export interface RedirectedMessage {
  name: 'SAMLRequest' | 'SAMLResponse';
  /** Base64 of what was compressed. */
  message: string;
  relayState: string;
}

/**
 * Verifies the signature of a message in an address (SAML bindings, section 3.4.4.1). It is over the query as it was
 * sent: the message, `RelayState` if there is one, and `SigAlg`, in this order, each encoded as the sender did. A
 * parameter that is there twice is refused, so that nobody has one verified and another one read.
 * @param query the address behind `?`, as it came
 * @param certificate one or several (PEM)
 * @throws SsoRefusal
 */
export function verifiedRedirect(query: string, certificate: string): RedirectedMessage {
  const raw = parametersOf(query);
  if (raw.has('SAMLRequest') === raw.has('SAMLResponse')) refuse('the URL does not have exactly one message');
  const name = raw.has('SAMLRequest') ? 'SAMLRequest' : 'SAMLResponse';
  if (!raw.has('Signature')) refuse('the message is not signed');
  const hash = DIGESTS[textOf(raw, 'SigAlg')] ?? refuse('the message is signed with an algorithm that is not accepted');
  const signed = [name, 'RelayState', 'SigAlg'] as const;
  const content = signed.flatMap((key) => (raw.has(key) ? [`${key}=${raw.get(key)}`] : [])).join('&');
  const signature = bytesOf(textOf(raw, 'Signature'));
  const isOf = (pem: string) => {
    const { publicKey } = new X509Certificate(pem);
    return publicKey.asymmetricKeyType === 'rsa' && verify(hash, Buffer.from(content), publicKey, signature);
  };
  if (!certificateBlocks(certificate).some(isOf)) refuse('the signature is not from the identity provider');
  return { name, message: textOf(raw, name), relayState: textOf(raw, 'RelayState') };
}

/** The values of the parameters that matter, as they were sent. */
function parametersOf(query: string): Map<Name, string> {
  const found = new Map<Name, string>();
  for (const part of query.split('&')) {
    const name = NAMES.find((key) => part.startsWith(`${key}=`));
    if (name === undefined) continue;
    if (found.has(name)) refuse('the URL has a parameter twice');
    found.set(name, part.slice(name.length + 1));
  }
  return found;
}

function textOf(raw: ReadonlyMap<Name, string>, name: Name): string {
  try {
    return decodeURIComponent((raw.get(name) ?? '').replaceAll('+', ' '));
  } catch {
    return refuse('the URL has a parameter that cannot be decoded');
  }
}

/** Browsers would encode the apostrophe, after it was signed. */
const encoded = (text: string): string => encodeURIComponent(text).replaceAll("'", '%27');

/**
 * An address with a signed message. The library would sign other characters than it sends.
 * @param address where it goes, perhaps with a query of its own
 * @param message base64 of what was compressed
 */
export function signedRedirect(
  address: string,
  { name, message, relayState }: RedirectedMessage,
  privateKey: string,
): string {
  const values: [Name, string][] = [[name, message]];
  if (relayState !== '') values.push(['RelayState', relayState]);
  values.push(['SigAlg', RSA_SHA256]);
  const content = values.map(([key, value]) => `${key}=${encoded(value)}`).join('&');
  const signature = encoded(sign('sha256', Buffer.from(content), privateKey).toString('base64'));
  const url = new URL(address);
  url.hash = '';
  return `${url.href}${url.search === '' ? '?' : '&'}${content}&Signature=${signature}`;
}
