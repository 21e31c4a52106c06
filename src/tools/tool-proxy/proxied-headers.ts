import type { Redactor } from '../tool-actions/redactor.ts';

/** Headers as Node and the HTTP client have them. */
export type WireHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Names the host of a tool that has several. */
export const HOST_HEADER = 'x-tool-host';
/** Names the end user whose connection is used. */
export const END_USER_HEADER = 'x-tool-end-user';

const among = (...patterns: string[]): RegExp => new RegExp(`^(?:${patterns.join('|')})$`);

/** What is about one connection, and not about the message. */
const OF_THE_CONNECTION = among(
  'connection',
  'proxy-.*',
  'keep-alive',
  'te',
  'trailers?',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  'host',
  'content-length',
);
/** Credentials of the platform, and what browsers send by themselves. */
const OF_THE_PLATFORM = among(
  'authorization',
  'cookie2?',
  'x-csrf.*',
  'x-trace-id',
  'x-consistency',
  'x-tool-.*',
  'x-platform-.*',
  'origin',
  'referer',
  'sec-.*',
  'access-control-.*',
  'early-data',
  'priority',
);
/** Who called, by which way and within what: nobody outside needs to know. */
const OF_THE_WAY = among(
  'forwarded',
  'via',
  'x-forwarded.*',
  'x-original-.*',
  'x-rewrite-.*',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-remote-.*',
  'true-client-ip',
  'cf-.*',
  'cdn-.*',
  'fastly-.*',
  'x-envoy-.*',
  'x-amzn-.*',
  'x-azure-.*',
  'x-appengine-.*',
  'x-cloud-trace-context',
  'x-b3-.*',
  'b3',
  'traceparent',
  'tracestate',
  'baggage',
  'uber-trace-id',
  'x-request-id',
  'x-correlation-id',
  'max-forwards',
);

/** Some servers read an underscore as a hyphen. */
const meant = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** Names that a header `Connection` takes along. */
const namedIn = (connection: string | string[] | undefined): Set<string> =>
  new Set([connection ?? []].flat().flatMap((text) => text.split(',').map((name) => meant(name.trim()))));

/**
 * The headers of a request that go on to the provider: all but what is about this connection, this platform, or the way
 * here, and without what the credentials of the instance stand for.
 * @param defaults of the configuration; a caller may send others
 * @param credentials in place of whatever the caller sends
 */
export function sentHeaders(
  given: WireHeaders,
  defaults: ReadonlyMap<string, string>,
  credentials: ReadonlyMap<string, string>,
): Record<string, string> {
  const named = namedIn(given.connection);
  const taken = new Set([...credentials.keys()].map(meant));
  const sent = new Map(defaults);
  for (const [name, value] of Object.entries(given)) {
    const read = meant(name);
    if (value === undefined || named.has(read) || taken.has(read)) continue;
    if (OF_THE_CONNECTION.test(read) || OF_THE_PLATFORM.test(read) || OF_THE_WAY.test(read)) continue;
    sent.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  for (const [name, value] of credentials) sent.set(name, value);
  return Object.fromEntries(sent);
}

/** What of an answer goes back: what says something about its content, its version or the limits of the provider. */
const SAFE = among(
  'content-(?:type|length|encoding|language|range|disposition)',
  'accept-(?:ranges|patch|post)',
  'allow',
  'age',
  'date',
  'etag',
  'expires',
  'last-modified',
  'link',
  'retry-after',
  'warning',
  'deprecation',
  'sunset',
  'preference-applied',
  '(?:repr-|content-)?digest',
  '(?:[a-z0-9]+-)*(?:request-id|version|model|processing-ms)',
  '(?:x-)?(?:[a-z0-9]+-)*rate-?limit(?:-[a-z0-9-]+)?',
  'x-.+',
);
/** Such names that a browser, or what stands before this service, acts upon. */
const ACTIVE = among(
  'x-frame-.*',
  'x-xss-.*',
  'x-content-.*',
  'x-webkit-.*',
  'x-dns-.*',
  'x-download-.*',
  'x-permitted-.*',
  'x-ua-.*',
  'x-powered-.*',
  'x-robots-.*',
  'x-accel-.*',
  'x-sendfile.*',
  'x-lighttpd-.*',
  'x-litespeed-.*',
  'x-reproxy-.*',
  'x-proxy-.*',
  'x-forwarded.*',
  'x-original-.*',
  'x-rewrite-.*',
  'x-real-ip',
  'x-client-ip',
  'x-http-method.*',
  'x-csrf.*',
  'x-xsrf.*',
  'x-trace-id',
  'x-consistency',
  'x-tool-.*',
  'x-platform-.*',
  'x-sourcemap',
  'x-sitemap',
  'x-cache.*',
  'x-envoy-.*',
  'x-varnish.*',
  'x-amzn-.*',
);
/** What the service says of an answer, for browsers. */
export const PROXY_HEADERS = [
  'x-tool-status',
  'x-tool-location',
  'x-tool-ratelimit-limit',
  'x-tool-ratelimit-remaining',
  'x-tool-ratelimit-reset',
];
/** What the service itself says in its answers, under the same names. */
const OURS = /^x-ratelimit-(?:limit|remaining|reset)$/;
/** Where a provider says where something is. */
const ADDRESSES: ReadonlySet<string> = new Set(['link', 'content-location']);

/**
 * The headers of an answer that go back. What could be taken for one of the service's own goes back as `x-tool-…`, and
 * so does the address of a redirect: whoever follows it by itself would bring its token there.
 * @param redactor removes credentials that a provider repeats
 */
export function answeredHeaders(
  status: number,
  given: WireHeaders,
  redactor: Pick<Redactor, 'clean'>,
): Record<string, string> {
  const named = namedIn(given.connection);
  const answered: Record<string, string> = { 'x-tool-status': String(status) };
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || named.has(meant(name))) continue;
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (name === 'location') answered['x-tool-location'] = printable(redactor.clean(text));
    else if (OURS.test(name)) answered[`x-tool-${name.slice(2)}`] = printable(text);
    else if (SAFE.test(name) && !ACTIVE.test(name))
      answered[name] = printable(ADDRESSES.has(name) || name.startsWith('x-') ? redactor.clean(text) : text);
  }
  return answered;
}

/** What Node writes into a header. */
const printable = (text: string): string => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '?');
