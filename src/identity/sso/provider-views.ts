import type { IdentityProvider } from '../../generated/prisma/client.ts';
import type { OidcProvider } from './oidc/oidc-provider.ts';
import type { SamlProvider } from './saml/saml-provider.ts';

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

/** A provider as its protocol sees it. @throws Error if it is of the other protocol, or not configured */
export function oidcView(row: IdentityProvider, clientSecret: string | null): OidcProvider {
  const { id, orgId, oidcClientId: clientId, oidcDiscoveryUrl: discoveryUrl, oidcScopes, groupAttribute } = row;
  if (clientId === null || discoveryUrl === null) throw new Error(`'${id}' is not configured for OpenID Connect.`);
  return { id, orgId, clientId, clientSecret, discoveryUrl, scopes: oidcScopes, groupAttribute };
}

/** The same for SAML. */
export function samlView(row: IdentityProvider): SamlProvider {
  const { id, orgId, samlEntityId: entityId, samlSsoUrl: ssoUrl, samlCertificate: certificate, groupAttribute } = row;
  if (entityId === null || ssoUrl === null || certificate === null)
    throw new Error(`'${id}' is not configured for SAML.`);
  return {
    id,
    orgId,
    entityId,
    ssoUrl,
    sloUrl: row.samlSloUrl,
    certificate,
    signAuthnRequests: row.samlSignAuthnRequests,
    nameIdFormat: row.samlNameIdFormat ?? EMAIL_FORMAT,
    groupAttribute,
  };
}
