import { ACCEPT_ENCODING } from './exchange.ts';
import { OutboundError } from './outbound-error.ts';

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** What the connection decides: a caller that sets it means another host or another framing than was checked. */
const RESERVED =
  /^(host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|http2-settings|proxy-.*)$/;
const TOKEN = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const UNPRINTABLE = /[^\t\x20-\x7e\x80-\xff]/;

const OURS = { 'user-agent': 'platform-management-api' };
const DEFAULTS = { ...OURS, accept: '*/*', 'accept-encoding': ACCEPT_ENCODING };

/** @throws OutboundError invalid_request */
export function checkedMethod(method = 'GET'): string {
  const upper = method.toUpperCase();
  if (!METHODS.has(upper)) throw new OutboundError('invalid_request');
  return upper;
}

/** The headers to send, names in lower case. @throws OutboundError invalid_request */
export function checkedHeaders(
  given: Readonly<Record<string, string>> = {},
  defaults: Readonly<Record<string, string>> = DEFAULTS,
): Record<string, string> {
  const headers = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value] as const);
  // some servers read `_` as `-`
  for (const [name, value] of headers)
    if (!TOKEN.test(name) || RESERVED.test(name.replaceAll('_', '-')) || UNPRINTABLE.test(value))
      throw new OutboundError('invalid_request');
  return { ...defaults, ...Object.fromEntries(headers) };
}

/** The same for a request whose sender reads the answer itself. @throws OutboundError invalid_request */
export const passedHeaders = (given: Readonly<Record<string, string>>): Record<string, string> =>
  checkedHeaders(given, OURS);
