/** What a provider has said of somebody, after everything that proves it was checked. */
export interface VerifiedIdentity {
  /** What the provider knows the user by, and keeps: `sub`, or the name identifier of SAML. */
  subject: string;
  email: string | null;
  /** Whether the provider says that the address is the user's. Never true for what it does not say. */
  emailVerified: boolean;
  username?: string;
  fullName?: string;
  avatarUrl?: string;
  locale?: string;
  groups: string[];
  /** Everything that it said, bounded; only a test sign-in shows it. */
  claims: Record<string, unknown>;
  /** The session at the provider, and the format of a SAML name identifier: for a sign-out at either end. */
  sessionIndex?: string;
  nameIdFormat?: string;
  /** The ID token of an OpenID provider, which it wants to see at a sign-out. */
  idToken?: string;
}
