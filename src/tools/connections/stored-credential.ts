import type { SecretValue } from '../../vault/secrets/envelope.ts';
import type { OAuthGrant } from './oauth-provider.ts';

/** What a connection keeps secret. */
export type StoredCredential = { api_key: string } | { access_token: string; refresh_token: string | null };

/** The tokens of a grant. A provider that sends no new refresh token goes on with the old one. */
export const tokensOf = (
  { accessToken, refreshToken }: Pick<OAuthGrant, 'accessToken' | 'refreshToken'>,
  before: string | null = null,
): StoredCredential => ({ access_token: accessToken, refresh_token: refreshToken ?? before });

export const keyOf = (apiKey: string): StoredCredential => ({ api_key: apiKey });

/** A stored value as what it is; `null` if a connection has none. @throws Error for one that the service never wrote */
export function credentialIn(value: SecretValue | null): StoredCredential | null {
  if (value === null) return null;
  const { api_key, access_token, refresh_token } = value;
  if (typeof api_key === 'string') return { api_key };
  if (typeof access_token !== 'string') throw new Error('A connection has neither a key nor a token.');
  return { access_token, refresh_token: typeof refresh_token === 'string' ? refresh_token : null };
}
