/** Where this service describes itself as a client, below its address. */
export const CLIENT_DOCUMENT = '/connections/client-metadata.json';
/** Where providers send users back to, below its address. */
export const CALLBACK = '/connections/callback';

/**
 * By what this service is a client at authorization servers that read such documents (Client ID Metadata Documents);
 * `null` if it is not at an https address: no other will do.
 */
export const ownClientIdAt = (publicUrl: string): string | null =>
  publicUrl.startsWith('https://') ? `${publicUrl}${CLIENT_DOCUMENT}` : null;

/** What the document says. The client is public: everybody can read it. PKCE keeps others from using its codes. */
export const ownClientAt = (publicUrl: string) => ({
  client_id: `${publicUrl}${CLIENT_DOCUMENT}`,
  client_name: `Platform at ${new URL(publicUrl).host}`,
  client_uri: publicUrl,
  redirect_uris: [`${publicUrl}${CALLBACK}`],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  application_type: 'web',
});
