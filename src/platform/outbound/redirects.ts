import { OutboundError } from './outbound-error.ts';
import { parseUrl } from './target-rules.ts';

const STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** What may go to another port of the host. Everything else could be a credential. */
const HARMLESS: ReadonlySet<string> = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent']);
const ABOUT_THE_BODY = /^content-/;

/** What a request sends, which a redirect may change. */
export interface Sent {
  url: URL;
  method: string;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
  body?: string | Uint8Array | undefined;
}

/** The `Location` of an answer that is a redirect; null for every other answer. */
export function redirectOf({ status, headers }: { status: number; headers: Headers }): string | null {
  return STATUSES.has(status) ? headers.get('location') : null;
}

/**
 * The request that follows a redirect.
 * @throws OutboundError redirect when it leads to another host, away from https, or nowhere
 */
export function redirected(sent: Sent, status: number, location: string): Sent {
  const url = locationOf(sent.url, location);
  const isSameOrigin = url.origin === sent.url.origin;
  const becomesGet = status === 303 ? sent.method !== 'HEAD' : status < 303 && sent.method === 'POST';
  const headers = Object.entries(sent.headers).filter(
    ([name]) =>
      (isSameOrigin || HARMLESS.has(name) || ABOUT_THE_BODY.test(name)) && !(becomesGet && ABOUT_THE_BODY.test(name)),
  );
  return {
    url,
    method: becomesGet ? 'GET' : sent.method,
    headers: Object.fromEntries(headers),
    body: becomesGet ? undefined : sent.body,
  };
}

function locationOf(from: URL, location: string): URL {
  try {
    const url = parseUrl(new URL(location, from));
    const isDowngrade = from.protocol === 'https:' && url.protocol !== 'https:';
    if (url.hostname === from.hostname && !isDowngrade) return url;
  } catch {
    // no URL, a scheme that nobody calls, credentials: refused like every other place
  }
  throw new OutboundError('redirect');
}
