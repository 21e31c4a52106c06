const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
/**
 * A scheme of an application's own is a reversed domain name, and has a path after it, no authority (RFC 8252, 7.1).
 * Others belong to the system.
 */
const OWN_SCHEME = /^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+:\/(?!\/)/;
const LIKE_OF_SYSTEM = /^(?:javascript|vbscript|data|blob|file|about|https?|wss?|ftp)\./;

/** Why an answer may not go to an address; `null` for one that may be registered. */
export function redirectProblem(uri: string): string | null {
  if (!URL.canParse(uri)) return 'must be an absolute address';
  const { href, protocol, hostname, username, password } = new URL(uri);
  if (uri.includes('#')) return 'must have no fragment';
  if (username !== '' || password !== '') return 'must have no user name or password';
  if (/[*\\\s]/.test(uri)) return "must be exact: without '*', backslashes and blanks";
  // what people are shown is what was registered: nothing reads from right to left, or as another host
  if (!/^[!-~]+$/.test(uri)) return 'must have ASCII characters only';
  if (protocol !== 'https:' && protocol !== 'http:') return ownSchemeProblem(uri);
  if (href !== uri) return `must be written as '${href}'`;
  const isOfMachine = LOOPBACK.has(hostname);
  if (protocol === 'https:') return isOfMachine ? 'must begin with http on the own machine' : null;
  return isOfMachine ? null : 'must begin with https, except on the own machine';
}

function ownSchemeProblem(uri: string): string | null {
  if (!OWN_SCHEME.test(uri) || LIKE_OF_SYSTEM.test(uri))
    return "must have a scheme of its own and a path, like 'com.example.app:/done'";
  return new URL(uri).href === uri ? null : `must be written as '${new URL(uri).href}'`;
}
