import {
  constants,
  createCipheriv,
  createHmac,
  generateKeyPairSync,
  publicEncrypt,
  randomBytes,
  verify,
  X509Certificate,
} from 'node:crypto';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import samlify from 'samlify';
import { selfSigned } from '../../../src/identity/sso/saml/self-signed.ts';

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

let usual: IdpKey | undefined;

/** The key of the providers of a process that need none of their own: making one takes as long as a test. */
export function usualIdpKey(): IdpKey {
  usual ??= newIdpKey();
  return usual;
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

/** Signs the metadata of a provider, whose root has an `ID`, before all else that is in it. */
export const signMetadata = (xml: string, key: IdpKey, algorithm = SHA256): string =>
  SamlLib.constructSAMLSignature({
    rawSamlMessage: xml,
    referenceTagXPath: "/*[local-name(.)='EntityDescriptor']",
    privateKey: key.privateKey,
    signingCert: bare(key.certificate),
    signatureAlgorithm: algorithm,
    isBase64Output: false,
    signatureConfig: {
      prefix: 'ds',
      location: { reference: "/*/*[local-name(.)='IDPSSODescriptor']", action: 'before' },
    },
  });

const endpoint = { Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect', Location: 'https://idp.test' };
const DSIG = 'http://www.w3.org/2000/09/xmldsig#';
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

/** Something, such as a name, that only whom the metadata describes can read. */
export function encryptedId(text: string, metadata: string, { keys = OAEP } = {}): string {
  const [, certificate = ''] = /use="encryption"[\s\S]*?X509Certificate>([^<]+)</.exec(metadata) ?? [];
  const { publicKey } = new X509Certificate(Buffer.from(certificate, 'base64'));
  const [key, iv] = [randomBytes(32), randomBytes(12)];
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const data = Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  const wrapped = publicEncrypt({ key: publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha1' }, key);
  const value = (bytes: Buffer) =>
    `<xenc:CipherData><xenc:CipherValue>${bytes.toString('base64')}</xenc:CipherValue></xenc:CipherData>`;
  return (
    '<saml:EncryptedID><xenc:EncryptedData xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" ' +
    'Type="http://www.w3.org/2001/04/xmlenc#Element">' +
    '<xenc:EncryptionMethod Algorithm="http://www.w3.org/2009/xmlenc11#aes256-gcm"/>' +
    `<ds:KeyInfo xmlns:ds="${DSIG}"><xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="${keys}"/>` +
    `${value(wrapped)}</xenc:EncryptedKey></ds:KeyInfo>${value(data)}</xenc:EncryptedData></saml:EncryptedID>`
  );
}

export const base64 = (xml: string): string => Buffer.from(xml).toString('base64');

/** The XML of a message that came by redirect. */
export const inflated = async (url: string, name = 'SAMLRequest'): Promise<string> =>
  (await promisify(inflateRaw)(Buffer.from(new URL(url).searchParams.get(name) ?? '', 'base64'))).toString();

/** Where the provider takes messages of sign-outs. */
export const SLO_URL = 'https://idp.test/slo?tenant=1';

/** What of samlify's identity provider the tests change. */
interface Peer {
  entityId: string;
  algorithm?: string;
  isEncrypted?: boolean;
}

type IdpSettings = Parameters<typeof samlify.IdentityProvider>[0];

/** An identity provider of samlify's own. */
export function peerIdp(key: IdpKey, { entityId, algorithm = SHA256, isEncrypted = false }: Peer) {
  samlify.setSchemaValidator({ validate: async () => 'not checked' });
  const settings = {
    entityID: entityId,
    signingCert: key.certificate,
    privateKey: key.privateKey,
    requestSignatureAlgorithm: algorithm,
    nameIDFormat: [EMAIL_FORMAT],
    isAssertionEncrypted: isEncrypted,
    dataEncryptionAlgorithm: 'http://www.w3.org/2009/xmlenc11#aes256-gcm',
    keyEncryptionAlgorithm: OAEP,
    wantLogoutRequestSigned: true,
    wantLogoutResponseSigned: true,
    singleSignOnService: [endpoint],
    singleLogoutService: [{ ...endpoint, Location: SLO_URL }],
  };
  return samlify.IdentityProvider(settings as IdpSettings);
}

/** The service as samlify reads its metadata. @param isSigned whether the provider signs what it sends */
export const peerSp = (metadata: string, isSigned = true) =>
  samlify.ServiceProvider({ metadata, wantLogoutRequestSigned: isSigned, wantLogoutResponseSigned: isSigned });

/** samlify's own response to a request, with the statement that it leaves to its users. */
export async function peerResponse(
  key: IdpKey,
  facts: ResponseFacts,
  { metadata, isEncrypted }: { metadata: string; isEncrypted: boolean },
): Promise<string> {
  const at = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString();
  const values = {
    ID: newId(),
    AssertionID: newId(),
    Destination: facts.acsUrl,
    Audience: facts.audience,
    SubjectRecipient: facts.acsUrl,
    Issuer: facts.issuer,
    IssueInstant: at(0),
    StatusCode: 'urn:oasis:names:tc:SAML:2.0:status:Success',
    ConditionsNotBefore: at(-60),
    ConditionsNotOnOrAfter: at(300),
    SubjectConfirmationDataNotOnOrAfter: at(300),
    NameIDFormat: EMAIL_FORMAT,
    NameID: facts.nameId,
    InResponseTo: facts.requestId ?? '',
    AttributeStatement: '',
  };
  const statement =
    `<saml:AuthnStatement AuthnInstant="${at(0)}"><saml:AuthnContext><saml:AuthnContextClassRef>` +
    'urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified</saml:AuthnContextClassRef></saml:AuthnContext>' +
    '</saml:AuthnStatement>';
  const fill = (template: string) => ({
    id: values.ID,
    context: SamlLib.replaceTagsByValue(template.replace('{AuthnStatement}', statement), values),
  });
  const idp = peerIdp(key, { entityId: facts.issuer, isEncrypted });
  const requestInfo = { extract: { request: { id: values.InResponseTo } } };
  const user = { email: facts.nameId };
  return (await idp.createLoginResponse(peerSp(metadata), requestInfo, 'post', user, { customTagReplacement: fill }))
    .context;
}

/**
 * The message with a signature that is right, by a secret that everybody knows: the certificate. Who takes the key of
 * the provider for the secret accepts it.
 */
export function hmacSigned(xml: string, { certificate }: IdpKey, { secret }: { secret: string | Buffer }): string {
  const canonical = (text: string) =>
    (/<ds:SignedInfo>.*<\/ds:SignedInfo>/s.exec(text)?.[0] ?? '')
      .replace('<ds:SignedInfo>', `<ds:SignedInfo xmlns:ds="${DSIG}">`)
      .replace(/<([\w:]+)([^<>]*)\/>/g, '<$1$2></$1>');
  const value = /(<ds:SignatureValue>)([^<]+)/;
  const [, , own = ''] = value.exec(xml) ?? [];
  if (!verify('sha256', Buffer.from(canonical(xml)), certificate, Buffer.from(own, 'base64')))
    throw new Error('The canonical form is not what was signed.');
  const other = xml.replace(SHA256, SHA256.replace('rsa', 'hmac'));
  const tag = createHmac('sha256', secret).update(canonical(other)).digest('base64');
  return other.replace(value, `$1${tag}`);
}
