const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
/** A scheme of an application's own is a reversed domain name (RFC 8252, 7.1): others belong to the system. */
const OWN_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:$/;

/** Why an answer may not go to an address; `null` for one that may be registered. */
export function redirectProblem(uri: string): string | null {
  if (!URL.canParse(uri)) return 'must be an absolute address';
  const { protocol, hostname, username, password } = new URL(uri);
  if (uri.includes('#')) return 'must have no fragment';
  if (username !== '' || password !== '') return 'must have no user name or password';
  if (/[*\\\s]/.test(uri)) return "must be exact: without '*', backslashes and blanks";
  if (protocol === 'https:') return null;
  if (protocol === 'http:') return LOOPBACK.has(hostname) ? null : 'must begin with https, except on the own machine';
  return OWN_SCHEME.test(protocol) ? null : "must have a scheme of its own like 'com.example.app'";
}
