import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a page of this origin has sent a request: by `Origin`, which browsers send with everything but plain reading,
 * else by `Sec-Fetch-Site`. Without both it counts as from elsewhere.
 * @param publicUrl the address of the service; without one, its origin is that of the `Host` that the browser asked
 */
export function isFromSameOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean {
  const { origin, host = '' } = headers;
  if (origin === undefined) return headers['sec-fetch-site'] === 'same-origin';
  if (publicUrl !== undefined) return origin === new URL(publicUrl).origin;
  return origin === `http://${host}` || origin === `https://${host}`;
}
