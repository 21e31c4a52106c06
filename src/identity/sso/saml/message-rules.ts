import { SsoRefusal } from '../sso-refusal.ts';
import type { OutlineElement } from './outline.ts';

const DSIG = 'http://www.w3.org/2000/09/xmldsig#';
const MORE = 'http://www.w3.org/2001/04/xmldsig-more#';
const ENC = 'http://www.w3.org/2001/04/xmlenc#';
const ENC11 = 'http://www.w3.org/2009/xmlenc11#';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';

/** By element: what its `Algorithm` may be. Neither SHA-1 nor a shared secret signs, and PKCS #1 1.5 hides no key. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  SignatureMethod: [`${MORE}rsa-sha256`, `${MORE}rsa-sha512`],
  DigestMethod: [`${ENC}sha256`, `${ENC}sha512`],
  CanonicalizationMethod: [EXCLUSIVE],
  Transform: [`${DSIG}enveloped-signature`, EXCLUSIVE],
  EncryptionMethod: [
    `${ENC}aes128-cbc`,
    `${ENC}aes256-cbc`,
    `${ENC11}aes128-gcm`,
    `${ENC11}aes256-gcm`,
    `${ENC}rsa-oaep-mgf1p`,
  ],
};
/** Within `EncryptionMethod` the digest is a parameter of OAEP, where SHA-1 is sound. */
const OAEP_DIGESTS = [`${DSIG}sha1`, `${ENC}sha256`, `${DSIG}sha256`, `${ENC}sha512`, `${DSIG}sha512`];

const IDS = new Set(['id', 'xml:id']);

const refuse = (reason: string): never => {
  throw new SsoRefusal(reason);
};

/**
 * What is the same for messages of all kinds, decrypted assertions too: every id once, every algorithm one of those
 * that are accepted, and each signature a child of what it may sign, with one reference to it.
 * @param algorithmsIn the elements whose algorithms are asked: all, unless some only say what their writer supports
 * @throws SsoRefusal
 */
export function checkSignatures(
  elements: readonly OutlineElement[],
  signable: readonly string[],
  algorithmsIn: readonly OutlineElement[] = elements,
): void {
  const ids = elements.flatMap(({ attributes }) =>
    Object.entries(attributes).flatMap(([name, value]) => (IDS.has(name.toLowerCase()) ? [value] : [])),
  );
  if (new Set(ids).size !== ids.length) refuse('the message has an id twice');
  for (const element of algorithmsIn) checkAlgorithm(element);
  for (const signature of elements.filter(({ name }) => name === 'Signature')) {
    const { parent } = signature;
    if (!parent || !signable.includes(parent.name)) refuse('a signature is in a place where no signature is allowed');
    if (elements.filter((other) => other.name === 'Signature' && other.parent === parent).length > 1)
      refuse('an element has several signatures');
    const references = elements.filter(
      ({ name, parent: info }) => name === 'Reference' && info?.name === 'SignedInfo' && info.parent === signature,
    );
    const id = parent?.attributes.ID ?? '';
    if (references.length !== 1 || id === '' || references[0]?.attributes.URI !== `#${id}`)
      refuse('a signature does not refer to the element that it is in');
  }
}

function checkAlgorithm({ name, parent, attributes }: OutlineElement): void {
  const { Algorithm: algorithm } = attributes;
  const accepted = name === 'DigestMethod' && parent?.name === 'EncryptionMethod' ? OAEP_DIGESTS : ALGORITHMS[name];
  if (accepted ? algorithm === undefined || !accepted.includes(algorithm) : algorithm !== undefined)
    refuse(
      name === 'Transform' || name === 'CanonicalizationMethod'
        ? 'the message has a transformation that is not accepted'
        : 'the message is signed or encrypted with an algorithm that is not accepted',
    );
}

const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success';

/** What a response says outside its assertion, which need not be signed. */
export interface ResponseFacts {
  isSigned: boolean;
  isEncrypted: boolean;
}

/**
 * The rules for a response to a sign-in (SAML profiles, section 4.1.4): one assertion and no other anywhere, success,
 * and meant for this address.
 * @param acsUrl the address that got it
 * @param requestId the request that it must be the answer to; `null` for one that nobody asked for
 * @throws SsoRefusal
 */
export function checkResponse(
  elements: readonly OutlineElement[],
  { acsUrl, requestId, issuer }: { acsUrl: string; requestId: string | null; issuer: string },
): ResponseFacts {
  const named = (name: string) => elements.filter((element) => element.name === name);
  const [root] = elements;
  if (root?.name !== 'Response' || named('Response').length !== 1)
    refuse('the message is not exactly one SAML response');
  const { attributes } = root!;
  if (attributes.Version !== '2.0') refuse('the response has another version of SAML');
  const codes = named('StatusCode').filter(({ parent }) => parent?.name === 'Status' && parent.parent === root);
  if (codes.length !== 1) refuse('the response has no status');
  if (codes[0]!.attributes.Value !== SUCCESS) refuse('the identity provider did not sign the user in');
  const assertions = [...named('Assertion'), ...named('EncryptedAssertion')];
  if (assertions.length !== 1) refuse('the response does not have exactly one assertion');
  if (assertions[0]!.parent !== root) refuse('the assertion is not directly in the response');
  checkSignatures(elements, ['Response', 'Assertion']);
  const isSigned = named('Signature').some(({ parent }) => parent === root);
  if (attributes.Destination === undefined ? isSigned : attributes.Destination !== acsUrl)
    refuse('the response is meant for another address');
  if ((attributes.InResponseTo ?? null) !== requestId) refuse('the response answers another request, or none');
  const issuers = named('Issuer').filter(({ parent }) => parent === root);
  if (issuers.some(({ text }) => text.trim() !== issuer)) refuse('the response is from another identity provider');
  return { isSigned, isEncrypted: assertions[0]!.name === 'EncryptedAssertion' };
}

/** The rules for an assertion that was encrypted. @throws SsoRefusal */
export function checkDecrypted(elements: readonly OutlineElement[]): void {
  const inside = elements.filter(({ name }) => ['Assertion', 'EncryptedAssertion', 'Response'].includes(name));
  if (elements[0]?.name !== 'Assertion' || inside.length !== 1)
    refuse('the encrypted part is not exactly one assertion');
  checkSignatures(elements, ['Assertion']);
  if (!elements.some(({ name }) => name === 'Signature')) refuse('the assertion is not signed');
}
