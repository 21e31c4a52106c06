import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import samlify from 'samlify';
import { selfSigned } from '../../src/sso/saml/self-signed.ts';

const { SamlLib } = samlify;
export const SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256';
export const SHA1 = 'http://www.w3.org/2000/09/xmldsig#rsa-sha1';
const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

/** A key of an identity provider, with its certificate (PEM). */
export interface IdpKey {
  privateKey: string;
  certificate: string;
}

export function newIdpKey(): IdpKey {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const times = { from: new Date(Date.now() - 86_400_000), until: new Date(Date.now() + 31_536_000_000) };
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate: selfSigned(privateKey, 'identity provider', times),
  };
}

/** What a response says. */
export interface ResponseFacts {
  issuer: string;
  acsUrl: string;
  audience: string;
  /** `null` leaves it out. */
  requestId: string | null;
  nameId: string;
  nameIdFormat?: string;
  attributes?: Record<string, string[]>;
  sessionIndex?: string;
  /** Milliseconds by which the clock of the provider is ahead. */
  ahead?: number;
  responseId?: string;
  assertionId?: string;
}

const newId = () => `_${randomBytes(16).toString('hex')}`;
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const attributeXml = ([name, values]: [string, string[]]) =>
  `<saml:Attribute Name="${escaped(name)}">${values
    .map((value) => `<saml:AttributeValue>${escaped(value)}</saml:AttributeValue>`)
    .join('')}</saml:Attribute>`;

/** A response without signatures, with one assertion. */
export function responseXml(facts: ResponseFacts): string {
  const { issuer, acsUrl, audience, requestId, nameId, nameIdFormat = EMAIL_FORMAT, ahead = 0 } = facts;
  const at = (seconds: number) => new Date(Date.now() + ahead + seconds * 1_000).toISOString();
  const inResponseTo = requestId === null ? '' : ` InResponseTo="${requestId}"`;
  const values = Object.entries(facts.attributes ?? {})
    .map(attributeXml)
    .join('');
  return (
    '<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ' +
    `xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="${facts.responseId ?? newId()}" Version="2.0" ` +
    `IssueInstant="${at(0)}" Destination="${acsUrl}"${inResponseTo}><saml:Issuer>${issuer}</saml:Issuer>` +
    '<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>' +
    `<saml:Assertion ID="${facts.assertionId ?? newId()}" Version="2.0" IssueInstant="${at(0)}">` +
    `<saml:Issuer>${issuer}</saml:Issuer><saml:Subject>` +
    `<saml:NameID Format="${nameIdFormat}">${escaped(nameId)}</saml:NameID>` +
    '<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">' +
    `<saml:SubjectConfirmationData NotOnOrAfter="${at(300)}" Recipient="${acsUrl}"${inResponseTo}/>` +
    `</saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="${at(-60)}" NotOnOrAfter="${at(300)}">` +
    `<saml:AudienceRestriction><saml:Audience>${audience}</saml:Audience></saml:AudienceRestriction>` +
    `</saml:Conditions><saml:AuthnStatement AuthnInstant="${at(0)}" SessionIndex="${facts.sessionIndex ?? '_s'}">` +
    '<saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified' +
    '</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>' +
    `${values === '' ? '' : `<saml:AttributeStatement>${values}</saml:AttributeStatement>`}` +
    '</saml:Assertion></samlp:Response>'
  );
}

const bare = (certificate: string) => certificate.replaceAll(/-----[A-Z ]+-----|\s/g, '');

const PLACES = {
  response: "/*[local-name(.)='Response']",
  assertion: "//*[local-name(.)='Assertion']",
  logout: "/*[local-name(.)='LogoutRequest' or local-name(.)='LogoutResponse']",
} as const;

/** Signs the response or its assertion, below its issuer. */
export function signXml(
  xml: string,
  what: keyof typeof PLACES,
  key: IdpKey,
  { algorithm = SHA256, transforms }: { algorithm?: string; transforms?: string[] } = {},
): string {
  const reference = `${PLACES[what]}/*[local-name(.)='Issuer']`;
  return SamlLib.constructSAMLSignature({
    rawSamlMessage: xml,
    referenceTagXPath: PLACES[what],
    privateKey: key.privateKey,
    signingCert: bare(key.certificate),
    signatureAlgorithm: algorithm,
    isBase64Output: false,
    signatureConfig: { prefix: 'ds', location: { reference, action: 'after' } },
    ...(transforms ? { transformationAlgorithms: transforms } : {}),
  });
}

const endpoint = { Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect', Location: 'https://idp.test' };
const OAEP = 'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p';

/** Encrypts the assertion for whom the metadata describes. */
export async function encryptXml(
  xml: string,
  key: IdpKey,
  metadata: string,
  { data = 'http://www.w3.org/2009/xmlenc11#aes256-gcm', keys = OAEP }: { data?: string; keys?: string } = {},
): Promise<string> {
  const settings = {
    entityID: 'https://idp.test',
    signingCert: key.certificate,
    privateKey: key.privateKey,
    isAssertionEncrypted: true,
    dataEncryptionAlgorithm: data,
    keyEncryptionAlgorithm: keys,
    singleSignOnService: [endpoint],
    singleLogoutService: [endpoint],
  };
  // the types of the library lack the algorithms of encryption
  const idp = samlify.IdentityProvider(settings as Parameters<typeof samlify.IdentityProvider>[0]);
  const encrypted = await SamlLib.encryptAssertion(idp, samlify.ServiceProvider({ metadata }), xml);
  return Buffer.from(encrypted, 'base64').toString();
}

export const base64 = (xml: string): string => Buffer.from(xml).toString('base64');

/** The XML of a message that came by redirect. */
export const inflated = async (url: string, name = 'SAMLRequest'): Promise<string> =>
  (await promisify(inflateRaw)(Buffer.from(new URL(url).searchParams.get(name) ?? '', 'base64'))).toString();
