import { SAML_ENTITY } from './companies.ts';
import type { IdpKey } from './saml-idp.ts';

/** What a provider says of itself. */
export interface MetadataFacts {
  keys: readonly IdpKey[];
  entityId?: string;
  ssoUrl?: string;
  sloUrl?: string;
  /** More attributes of the root, and of the descriptor. */
  root?: string;
  descriptor?: string;
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
const bare = (certificate: string) => certificate.replaceAll(/-----[A-Z ]+-----/g, '');
const REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
const POST = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST';

/** The metadata of a SAML provider, as providers write it. */
export function metadataXml(facts: MetadataFacts): string {
  const { keys, entityId = SAML_ENTITY, ssoUrl = 'https://idp.test/sso', sloUrl } = facts;
  const keyXml = ({ certificate }: IdpKey) =>
    '<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>' +
    `${bare(certificate).trim()}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`;
  const service = (name: string, binding: string, location: string) =>
    `<md:${name} Binding="${binding}" Location="${escaped(location)}"/>`;
  return (
    '<?xml version="1.0" encoding="UTF-8"?>' +
    '<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" ' +
    `xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="${escaped(entityId)}" ${facts.root ?? ''}>` +
    '<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol" ' +
    `${facts.descriptor ?? ''}>` +
    keys.map(keyXml).join('') +
    (sloUrl === undefined ? '' : service('SingleLogoutService', REDIRECT, sloUrl)) +
    service('SingleSignOnService', POST, 'https://idp.test/post') +
    service('SingleSignOnService', REDIRECT, ssoUrl) +
    '</md:IDPSSODescriptor></md:EntityDescriptor>'
  );
}
