import type { ClientAuth } from 'openid-client';

/** `client_secret`, or the only value that a secret has; `null` for a secret without either. */
export function clientSecretIn(value: Readonly<Record<string, unknown>>): string | null {
  const [only, ...others] = Object.values(value);
  const secret = value.client_secret ?? (others.length === 0 ? only : undefined);
  return typeof secret === 'string' && secret !== '' ? secret : null;
}

/** As a form has it. The library's own encoding also changes `-`, `_` and `.`, and some providers decode nothing. */
const formEncoded = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1);

/** How a client tells a provider its secret in the header of a request (RFC 6749, 2.3.1). */
export const clientSecretBasic =
  (secret: string): ClientAuth =>
  (_server, { client_id: id }, _body, headers) => {
    const credentials = Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64');
    headers.set('authorization', `Basic ${credentials}`);
  };
