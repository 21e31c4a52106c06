/** What the service knows of an OpenID provider. */
export interface OidcProvider {
  id: string;
  orgId: string;
  clientId: string;
  /** `null` for a public client. */
  clientSecret: string | null;
  /** The address of its configuration document, or its issuer. */
  discoveryUrl: string;
  /** What is asked for beside `openid`. None asks for `email` and `profile`. */
  scopes: readonly string[];
  /** The claim that lists the groups of the user. */
  groupAttribute: string;
}
