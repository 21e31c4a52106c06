import { X509Certificate } from 'node:crypto';
import {
  base64,
  encryptXml,
  hmacSigned,
  type IdpKey,
  type ResponseFacts,
  responseXml,
  SHA1,
  signXml,
} from './saml-idp.ts';

/** What a bad answer is made of. */
export interface Making {
  facts: ResponseFacts;
  key: IdpKey;
  /** A key that the provider does not have. */
  stranger: IdpKey;
  /** The metadata of the service, as XML. */
  metadata: string;
}

/** @returns the message as it is posted */
type Make = (making: Making) => string | Promise<string>;
type BadAnswer = readonly [name: string, make: Make, reason: RegExp];

const signed = (xml: string, key: IdpKey) => signXml(xml, 'assertion', key);
/** An honest response with changes in the facts. */
const saying =
  (more: Partial<ResponseFacts>): Make =>
  ({ facts, key }) =>
    base64(signed(responseXml({ ...facts, ...more }), key));
/** A response whose XML is changed before it is signed. */
const writing =
  (change: (xml: string) => string): Make =>
  ({ facts, key }) =>
    base64(signed(changedBy(responseXml(facts), change), key));
/** A response whose XML is changed after it was signed. */
const tampering =
  (change: (xml: string) => string): Make =>
  ({ facts, key }) =>
    base64(changedBy(signed(responseXml(facts), key), change));

function changedBy(xml: string, change: (xml: string) => string): string {
  const other = change(xml);
  if (other === xml) throw new Error('The change changes nothing.');
  return other;
}

const ASSERTION = /<saml:Assertion[\s\S]*<\/saml:Assertion>/;
const SIGNATURE = /<ds:Signature [\s\S]*?<\/ds:Signature>/;
const found = (pattern: RegExp, xml: string): string => {
  const [text] = pattern.exec(xml) ?? [];
  if (text === undefined) throw new Error(`Nothing is like ${pattern.source}.`);
  return text;
};
const unsigned = (xml: string): string => xml.replace(SIGNATURE, '');
/** The same about somebody else, under another id. */
const forged = (xml: string): string =>
  xml.replace(/ann@[\w.]+/g, 'mallory@example.test').replace(/ ID="_/, ' ID="_forged');

/** The eight classes of signature wrapping (SAML Raider), over a message whose signatures are right. */
const wrappings: readonly [name: string, wrap: (xml: string) => string][] = [
  ['1', (xml) => forgedAround(xml, (sig, copy) => sig.replace('</ds:Signature>', `${copy}</ds:Signature>`))],
  ['2', (xml) => forgedAround(xml, (sig, copy) => `${copy}${sig}`)],
  ['3', (xml) => xml.replace(ASSERTION, (own) => `${forged(unsigned(own))}${own}`)],
  [
    '4',
    (xml) =>
      xml.replace(ASSERTION, (own) => forged(unsigned(own)).replace('</saml:Assertion>', `${own}</saml:Assertion>`)),
  ],
  ['5', (xml) => xml.replace(ASSERTION, (own) => `${forged(own)}${unsigned(own)}`)],
  [
    '6',
    (xml) =>
      xml.replace(ASSERTION, (own) =>
        forged(own).includes('</ds:Signature>')
          ? forged(own).replace('</ds:Signature>', `${unsigned(own)}</ds:Signature>`)
          : `${forged(own)}${own}`,
      ),
  ],
  [
    '7',
    (xml) => xml.replace(ASSERTION, (own) => `<samlp:Extensions>${forged(unsigned(own))}</samlp:Extensions>${own}`),
  ],
  [
    '8',
    (xml) =>
      xml.replace(ASSERTION, (own) => {
        const object = `<ds:Object xmlns:ds="http://www.w3.org/2000/09/xmldsig#">${unsigned(own)}</ds:Object>`;
        return forged(own).includes('</ds:Signature>')
          ? forged(own).replace('</ds:Signature>', `${object}</ds:Signature>`)
          : `${forged(own)}${object}`;
      }),
  ],
];

/** A forged response around the signature of the real one, with a copy of the real one somewhere. */
function forgedAround(xml: string, place: (signature: string, copy: string) => string): string {
  const signature = found(SIGNATURE, xml);
  return forged(xml).replace(signature, place(signature, unsigned(xml)));
}

const modes: readonly [name: string, sign: (xml: string, key: IdpKey) => string][] = [
  ['response', (xml, key) => signXml(xml, 'response', key)],
  ['assertion', signed],
  ['both', (xml, key) => signXml(signed(xml, key), 'response', key)],
];

const wrapped: readonly BadAnswer[] = modes.flatMap(([mode, sign]) =>
  wrappings.map(
    ([name, wrap]): BadAnswer => [
      `signature wrapping ${name}, signed: ${mode}`,
      ({ facts, key }) => base64(changedBy(sign(responseXml(facts), key), wrap)),
      /./,
    ],
  ),
);

const FUTURE = 3_600_000;
const bytes = (count: number, text = 'x') => text.repeat(count);
const withoutElement = (name: string) => (xml: string) =>
  xml.replace(new RegExp(`<saml:${name}[ >][\\s\\S]*?</saml:${name}>`), '');
const doctype = (declaration: string) => (xml: string) => `<!DOCTYPE r [${declaration}]>${xml}`;
const ANOTHER = 'https://elsewhere.test/callback';

/** Answers that must not be accepted, each with its reason in the log. */
export const badAnswers: readonly BadAnswer[] = [
  ...wrapped,
  ['nothing', () => '', /not base64/],
  ['no base64', () => '<samlp:Response/>', /not base64/],
  ['no XML', () => base64('hello'), /not exactly one SAML response/],
  ['no UTF-8', () => Buffer.from([60, 97, 62, 0xff, 0xfe, 60, 47, 97, 62, 32]).toString('base64'), /not base64|UTF-8/],
  ['UTF-16', ({ facts, key }) => Buffer.from(signed(responseXml(facts), key), 'utf16le').toString('base64'), /./],
  ['too long', () => base64(`<a>${bytes(1_100_000)}</a>`), /too long/],
  ['nested deeply', () => base64(bytes(5_000, '<a>')), /nested too deeply/],
  ['many elements', () => base64(`<a>${bytes(50_000, '<b/>')}</a>`), /too many parts/],
  ['many namespaces', () => base64(`<a>${bytes(1_000, '<b xmlns:x="y"/>')}</a>`), /too many parts/],
  ['another root', () => base64('<html/>'), /not exactly one SAML response/],
  ['not signed at all', ({ facts }) => base64(responseXml(facts)), /not from the identity provider/],
  [
    'only the response signed',
    ({ facts, key }) => base64(signXml(responseXml(facts), 'response', key)),
    /not from the identity provider/,
  ],
  ["a stranger's key", ({ facts, stranger }) => base64(signed(responseXml(facts), stranger)), /not from the identity/],
  [
    "the response signed with a stranger's key",
    ({ facts, key, stranger }) => base64(signXml(signed(responseXml(facts), key), 'response', stranger)),
    /not from the identity provider/,
  ],
  [
    'SHA-1',
    ({ facts, key }) => base64(signXml(responseXml(facts), 'assertion', key, { algorithm: SHA1 })),
    /algorithm that is not accepted/,
  ],
  [
    'HMAC',
    tampering((xml) => xml.replace(/xmldsig-more#rsa-sha256/, 'xmldsig-more#hmac-sha256')),
    /algorithm that is not accepted/,
  ],
  [
    'HMAC, keyed with the text of the certificate',
    ({ facts, key }) => base64(hmacSigned(signed(responseXml(facts), key), key, { secret: key.certificate })),
    /algorithm that is not accepted/,
  ],
  [
    'HMAC, keyed with the bytes of the certificate',
    ({ facts, key }) => {
      const { raw: secret } = new X509Certificate(key.certificate);
      return base64(hmacSigned(signed(responseXml(facts), key), key, { secret }));
    },
    /algorithm that is not accepted/,
  ],
  ['digest by SHA-1', tampering((xml) => xml.replace(/xmlenc#sha256/, 'xmldsig#sha1')), /algorithm that is not/],
  [
    'a transformation by XPath',
    tampering((xml) =>
      xml.replace(
        /http:\/\/www.w3.org\/2001\/10\/xml-exc-c14n#"\/><\/ds:Tr/,
        'http://www.w3.org/TR/1999/REC-xpath-19991116"/></ds:Tr',
      ),
    ),
    /transformation that is not accepted/,
  ],
  [
    'canonical form with comments',
    ({ facts, key }) =>
      base64(
        signXml(responseXml(facts), 'assertion', key, {
          transforms: [
            'http://www.w3.org/2000/09/xmldsig#enveloped-signature',
            'http://www.w3.org/2001/10/xml-exc-c14n#WithComments',
          ],
        }),
      ),
    /transformation that is not accepted/,
  ],
  ['another name after signing', tampering((xml) => xml.replace(/ann@/, 'bob@')), /not from the identity provider/],
  [
    'a signature of another message',
    ({ facts, key }) => {
      const other = found(SIGNATURE, signed(responseXml({ ...facts, nameId: 'bob@example.test' }), key));
      return base64(signed(responseXml(facts), key).replace(SIGNATURE, () => other));
    },
    /does not refer to the element/,
  ],
  ['two signatures', tampering((xml) => xml.replace(SIGNATURE, (own) => own + own)), /several signatures/],
  [
    'a signature elsewhere',
    tampering((xml) => xml.replace(SIGNATURE, '').replace('<samlp:Status>', `<samlp:Status>${found(SIGNATURE, xml)}`)),
    /place where no signature is allowed/,
  ],
  [
    'an id twice',
    tampering((xml) => xml.replace('<samlp:Status>', `<samlp:Status ID="${/Assertion ID="([^"]+)/.exec(xml)![1]!}">`)),
    /id twice/,
  ],
  [
    'the assertion twice',
    tampering((xml) => xml.replace(ASSERTION, (own) => own + own)),
    /not (have )?exactly one assertion/,
  ],
  ['no assertion', tampering((xml) => xml.replace(ASSERTION, '')), /not (have )?exactly one assertion/],
  [
    'a response in a response',
    tampering((xml) => `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol">${xml}</samlp:Response>`),
    /not exactly one SAML response/,
  ],
  ['a comment in the name', tampering((xml) => xml.replace(/ann@/, 'ann@<!-- -->')), /a comment/],
  ['a comment that was there when it was signed', writing((xml) => xml.replace(/ann@/, 'ann@<!-- -->')), /a comment/],
  ['CDATA in the name', tampering((xml) => xml.replace(/ann@/, '<![CDATA[ann@]]>')), /CDATA|document type/],
  ['a processing instruction', tampering((xml) => xml.replace(/ann@/, '<?x y?>ann@')), /processing instruction/],
  ['a document type', tampering(doctype('')), /document type/],
  ['an external entity', tampering(doctype('<!ENTITY x SYSTEM "file:///etc/passwd">')), /document type/],
  [
    'a bomb of entities',
    tampering(doctype('<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">')),
    /document type/,
  ],
  [
    'status not Success',
    writing((xml) => xml.replace('status:Success', 'status:Responder')),
    /did not sign the user in/,
  ],
  ['no status', writing((xml) => xml.replace(/<samlp:Status>.*<\/samlp:Status>/, '')), /has no status/],
  ['another version', writing((xml) => xml.replace('Version="2.0"', 'Version="1.1"')), /version of SAML/],
  ['expired', saying({ ahead: -FUTURE }), /expired/],
  ['not valid yet', saying({ ahead: FUTURE }), /not valid yet|expired/],
  ['never expires', writing((xml) => xml.replace(/(ConfirmationData) NotOnOrAfter="[^"]*"/, '$1')), /./],
  ['a time that is none', writing((xml) => xml.replace(/NotBefore="[^"]*"/, 'NotBefore="soon"')), /./],
  ['no conditions', writing(withoutElement('Conditions')), /./],
  ['other audience', saying({ audience: ANOTHER }), /another audience/],
  ['no audience', writing(withoutElement('AudienceRestriction')), /another audience/],
  ['other recipient', writing((xml) => xml.replace(/Recipient="[^"]*"/, `Recipient="${ANOTHER}"`)), /recipient/],
  ['no recipient', writing((xml) => xml.replace(/ Recipient="[^"]*"/, '')), /recipient/],
  [
    'other destination',
    writing((xml) => xml.replace(/Destination="[^"]*"/, `Destination="${ANOTHER}"`)),
    /another address/,
  ],
  ['not a bearer', writing((xml) => xml.replace('cm:bearer', 'cm:holder-of-key')), /no valid subject confirmation/],
  ['no confirmation', writing(withoutElement('SubjectConfirmation')), /./],
  ['nobody asked', saying({ requestId: null }), /another request, or none/],
  ['the answer to another request', saying({ requestId: '_another' }), /another request, or none/],
  [
    'an assertion for another request',
    writing((xml) => xml.replace(/(Recipient="[^"]*") InResponseTo="[^"]*"/, '$1 InResponseTo="_another"')),
    /another request/,
  ],
  [
    'an assertion for no request',
    writing((xml) => xml.replace(/(Recipient="[^"]*") InResponseTo="[^"]*"/, '$1')),
    /another request, or none/,
  ],
  ['another issuer', saying({ issuer: 'https://another.test' }), /another identity provider/],
  [
    'an assertion of another issuer',
    writing((xml) => xml.replace(/(<saml:Assertion[^>]*><saml:Issuer>)[^<]*/, '$1https://another.test')),
    /another identity provider/,
  ],
  [
    'no issuer of the assertion',
    writing((xml) => xml.replace(/(<saml:Assertion[^>]*>)<saml:Issuer>[^<]*<\/saml:Issuer>/, '$1<saml:Issuer/>')),
    /another identity provider/,
  ],
  ['no subject', writing(withoutElement('Subject')), /./],
  ['no name', saying({ nameId: '' }), /no usable NameID/],
  ['NUL in the name', saying({ nameId: 'ann\0@example.test' }), /no usable NameID|not well-formed/],
  [
    'NUL in the name, as a reference',
    writing((xml) => xml.replace(/ann@/, 'ann@&#0;')),
    /no usable NameID|well-formed/,
  ],
  ['NUL in the name, after signing', tampering((xml) => xml.replace(/ann@/, 'ann@&#0;')), /not well-formed/],
  ['a name that is too long', saying({ nameId: bytes(256) }), /no usable NameID/],
  ['a name for once', saying({ nameIdFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient' }), /transient/],
  ['no sign-in', writing(withoutElement('AuthnStatement')), /has no AuthnStatement/],
  [
    'the session of the provider has ended',
    writing((xml) =>
      xml.replace('<saml:AuthnStatement', '<saml:AuthnStatement SessionNotOnOrAfter="2020-01-01T00:00:00Z"'),
    ),
    /expired/,
  ],
  [
    'an encrypted assertion that is not signed',
    async ({ facts, key, metadata }) => base64(await encryptXml(responseXml(facts), key, metadata)),
    /is not signed/,
  ],
  [
    'an encrypted assertion, only the response signed',
    async ({ facts, key, metadata }) =>
      base64(signXml(await encryptXml(responseXml(facts), key, metadata), 'response', key)),
    /is not signed/,
  ],
  [
    "an encrypted assertion with a stranger's signature",
    async ({ facts, key, stranger, metadata }) =>
      base64(await encryptXml(signed(responseXml(facts), stranger), key, metadata)),
    /not from the identity provider/,
  ],
  [
    'an encrypted assertion, signed with SHA-1',
    async ({ facts, key, metadata }) =>
      base64(await encryptXml(signXml(responseXml(facts), 'assertion', key, { algorithm: SHA1 }), key, metadata)),
    /algorithm that is not accepted/,
  ],
  [
    'encrypted with RSA PKCS #1 1.5',
    async ({ facts, key, metadata }) => {
      const keys = 'http://www.w3.org/2001/04/xmlenc#rsa-1_5';
      return base64(await encryptXml(signed(responseXml(facts), key), key, metadata, { keys }));
    },
    /algorithm that is not accepted/,
  ],
  [
    'an encrypted assertion that was changed',
    async ({ facts, key, metadata }) => {
      const xml = await encryptXml(signed(responseXml(facts), key), key, metadata);
      const values = [...xml.matchAll(/CipherValue>([\w+/=]+)</g)];
      const [, data = ''] = values.at(-1)!;
      return base64(xml.replace(data, `${data.slice(0, 40)}${data[40] === 'A' ? 'B' : 'A'}${data.slice(41)}`));
    },
    /cannot be decrypted/,
  ],
];
