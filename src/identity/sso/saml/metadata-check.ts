import { isUnstorable } from '../../../kernel/constraints.ts';
import {
  certificateBlocks,
  MAX_CERTIFICATES,
  NoCertificates,
  readCertificates,
} from '../../identity-providers/certificates.ts';
import { addressFault } from '../../identity-providers/secure-address.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { checkForm } from './message-form.ts';
import { checkSignatures } from './message-rules.ts';
import { textOf } from './message-text.ts';
import { secondsOf } from './metadata-times.ts';
import { type OutlineElement, outlineOf } from './outline.ts';
import { verifiedXml } from './saml-xml.ts';
import { timestampOf } from './xml-element.ts';

/** What an identity provider publishes of itself, as far as it is used. */
export interface SamlMetadata {
  entityId: string;
  ssoUrl: string;
  sloUrl: string | null;
  /** The certificates of its signing keys (PEM), each once. */
  certificates: string[];
  wantsSignedRequests: boolean;
  /** When it ends, in milliseconds; `null` if it does not say. */
  validUntil: number | null;
  /** For how many seconds it may be kept; `null` if it does not say. */
  cacheSeconds: number | null;
}

/** A document, and what it has to be. */
export interface MetadataToRead {
  /** UTF-8. */
  document: Uint8Array;
  /** Certificates (PEM), by one of which it must be signed; `null`: it need not be. */
  signers: string | null;
  now: number;
}

const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol';
const REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
const ROOTS = ['EntityDescriptor', 'EntitiesDescriptor'];
const MAX_ENTITY_ID = 1_024;
const MAX_ADDRESS = 2_048;

const refuse = (reason: string): never => {
  throw new SsoRefusal(reason);
};

/**
 * Reads the metadata of one identity provider (SAML metadata, section 2.4) under the limits of messages.
 * @throws SsoRefusal for everything that is not as it must be
 */
export async function readMetadata({ document, signers, now }: MetadataToRead): Promise<SamlMetadata> {
  const sent = textOf(document).replace(/^\uFEFF/, '');
  // the reader of a signature has taken comments for something else before
  const outline = outlineOf(sent, { comments: signers === null });
  if (!ROOTS.includes(outline[0]?.name ?? '')) refuse('the document is no metadata of SAML');
  await checkForm(sent);
  const elements = signers === null ? outline : outlineOf(await signedPart(sent, outline, signers));
  const described = elements.filter(
    ({ name, parent, attributes }) =>
      name === 'IDPSSODescriptor' &&
      parent?.name === 'EntityDescriptor' &&
      (attributes.protocolSupportEnumeration ?? '').split(/\s+/).includes(PROTOCOL),
  );
  const [descriptor] = described;
  if (!descriptor || described.length > 1) return refuse('the metadata does not have exactly one identity provider');
  const validUntil = leastOf(above(descriptor), 'validUntil', timestampOf);
  if (validUntil !== null && validUntil <= now) refuse('the metadata has expired');
  return {
    entityId: entityIdOf(descriptor),
    ssoUrl: addressOf(elements, descriptor, 'SingleSignOnService') ?? refuse('the metadata has no sign-in by redirect'),
    sloUrl: addressOf(elements, descriptor, 'SingleLogoutService'),
    certificates: certificatesOf(elements, descriptor),
    wantsSignedRequests: ['true', '1'].includes(descriptor.attributes.WantAuthnRequestsSigned ?? ''),
    validUntil,
    cacheSeconds: leastOf(above(descriptor), 'cacheDuration', secondsOf),
  };
}

/** The bytes that the signature of the whole is over. @throws SsoRefusal */
async function signedPart(xml: string, outline: readonly OutlineElement[], signers: string): Promise<string> {
  const ofRoot = (element: OutlineElement) => element.name === 'Signature' && element.parent === outline[0];
  // keys also say what their owner can decrypt: only the algorithms of the signature are asked
  const ofSignature = outline.filter((element) => above(element).some(ofRoot));
  checkSignatures(outline, ROOTS, ofSignature);
  const signed = await verifiedXml(xml, certificateBlocks(signers));
  return signed ?? refuse('the metadata is not signed with the given certificate');
}

/** An element and what it is in, from the inside. */
function above(element: OutlineElement): OutlineElement[] {
  const found: OutlineElement[] = [];
  for (let at: OutlineElement | null = element; at; at = at.parent) found.push(at);
  return found;
}

/** The least of an attribute of some elements. @throws SsoRefusal for one that cannot be read */
function leastOf(
  elements: readonly OutlineElement[],
  name: string,
  read: (text: string) => number | null,
): number | null {
  const values = elements.flatMap(({ attributes }) => {
    const text = attributes[name];
    return text === undefined ? [] : [read(text) ?? refuse(`the metadata has an invalid ${name}`)];
  });
  return values.length === 0 ? null : Math.min(...values);
}

function entityIdOf({ parent }: OutlineElement): string {
  const entityId = parent?.attributes.entityID ?? '';
  return entityId === '' || entityId.length > MAX_ENTITY_ID || isUnstorable(entityId)
    ? refuse('the metadata has no usable entity id')
    : entityId;
}

/** Where browsers are redirected to; `null` if there is no such address. @throws SsoRefusal for one that is no good */
function addressOf(elements: readonly OutlineElement[], descriptor: OutlineElement, name: string): string | null {
  const service = elements.find(
    (element) => element.name === name && element.parent === descriptor && element.attributes.Binding === REDIRECT,
  );
  if (!service) return null;
  const address = service.attributes.Location ?? '';
  if (!URL.canParse(address) || address.length > MAX_ADDRESS || isUnstorable(address))
    return refuse(`the metadata has no usable address of ${name}`);
  const fault = addressFault(address);
  return fault === null ? address : refuse(`the metadata has an address of ${name} that is not accepted: ${fault}`);
}

/** The certificates of the keys that sign, each once. @throws SsoRefusal */
function certificatesOf(elements: readonly OutlineElement[], descriptor: OutlineElement): string[] {
  const signs = (element: OutlineElement) =>
    element.name === 'KeyDescriptor' &&
    element.parent === descriptor &&
    (element.attributes.use === undefined || element.attributes.use === 'signing');
  const texts = elements
    .filter((element) => element.name === 'X509Certificate' && above(element).some(signs))
    .map(({ text }) => text.replaceAll(/\s/g, ''));
  const distinct = [...new Set(texts)];
  if (distinct.length === 0) refuse('the metadata has no certificate of a key that signs');
  if (distinct.length > MAX_CERTIFICATES) refuse(`the metadata has more than ${MAX_CERTIFICATES} signing certificates`);
  try {
    return distinct.map((text) => readCertificates(text)[0]!.toString().trim());
  } catch (error) {
    if (error instanceof NoCertificates) return refuse('the metadata has a certificate that cannot be read');
    throw error;
  }
}
