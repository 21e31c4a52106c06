import type { OAuthService } from '../tools/tool-shapes.ts';

/** How a look for the OAuth service of a server ended, with what it means. */
export const authorizationOutcomes = {
  found: 'The server says how to get tokens for it: the tool has an entry for that.',
  none: 'The server publishes nothing of OAuth.',
  unusable: 'The server publishes something of OAuth that this service does not use: the message says why.',
} as const;

/** What of the entry of an OAuth service a server says. */
export type DiscoveredService = Omit<OAuthService, 'name'> &
  Required<Pick<OAuthService, 'scopes' | 'resource' | 'issuer' | 'token_endpoint_auth_method'>>;

/** What a server says of OAuth. It is plain data, and part of what an import looks at. */
export interface ServerAuthorization {
  outcome: keyof typeof authorizationOutcomes;
  /** For people. Addresses in it are those of the server. */
  message: string;
  /** `null` unless it was found. */
  service: DiscoveredService | null;
  /**
   * Whether the address of a document may be the id of a public client (Client ID Metadata Documents), and codes for
   * such a client say who made them.
   */
  takesClientDocuments: boolean;
}

/** The outcome of a look that found nothing to use. */
export const withoutService = (outcome: 'none' | 'unusable', message: string): ServerAuthorization => ({
  outcome,
  message,
  service: null,
  takesClientDocuments: false,
});
