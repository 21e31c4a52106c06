/** Where this service describes itself as a client, below its address. */
export const CLIENT_DOCUMENT = '/connections/client-metadata.json';
/** Where providers send users back to, below its address. */
export const CALLBACK = '/connections/callback';
/** The same for this service as a client by its own document, and for nothing else. */
export const OWN_CALLBACK = '/connections/own-callback';

/**
 * By what this service is a client at authorization servers that read such documents (Client ID Metadata Documents);
 * `null` if it is not at an https address: no other will do.
 */
export const ownClientIdAt = (publicUrl: string): string | null =>
  publicUrl.startsWith('https://') ? `${publicUrl}${CLIENT_DOCUMENT}` : null;

/** Where an authorization comes back to, and whether it is of the client by the own document. */
export interface Return {
  redirectUri: string;
  isOwnClient: boolean;
}

/** Where authorizations of a client come back to. @param callbackUrl in place of our own addresses */
export function returnOf(publicUrl: string, clientId: string, callbackUrl: string | null = null): Return {
  const own = `${publicUrl}${OWN_CALLBACK}`;
  const isOwnClient = clientId === ownClientIdAt(publicUrl) && (callbackUrl ?? own) === own;
  return { isOwnClient, redirectUri: isOwnClient ? own : (callbackUrl ?? `${publicUrl}${CALLBACK}`) };
}

/**
 * What the document says. The client is public: everybody can begin authorizations in its name. Its address for codes
 * is its own, where none is taken of a server that does not say who it is: another server, which sent the browser on to
 * that one, would get it. PKCE is no help there, since it is the other server that began.
 */
export const ownClientAt = (publicUrl: string) => ({
  client_id: `${publicUrl}${CLIENT_DOCUMENT}`,
  client_name: `Platform at ${new URL(publicUrl).host}`,
  client_uri: publicUrl,
  redirect_uris: [`${publicUrl}${OWN_CALLBACK}`],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  application_type: 'web',
});
