/** What the service knows of a SAML identity provider. */
export interface SamlProvider {
  id: string;
  orgId: string;
  entityId: string;
  ssoUrl: string;
  /** `null`: a logout is not told to the identity provider, and none of it is heard. */
  sloUrl: string | null;
  /** One or several certificates (PEM). A signature of any of them counts. */
  certificate: string;
  signAuthnRequests: boolean;
  nameIdFormat: string | null;
  /** The attribute that lists the groups of the user. */
  groupAttribute: string;
}
