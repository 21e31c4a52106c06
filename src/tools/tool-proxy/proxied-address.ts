import { isUtf8 } from 'node:buffer';

/** Why an address cannot be asked. */
export type AddressFault = 'path' | 'query';

/** What a path may be written with (RFC 3986, `pchar` and slashes). */
const PATH = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/;
/** The same of a query; some clients write brackets and bars as they are. */
const QUERY = /^[\x21\x22\x24-\x7e]*$/;
const MAX_LENGTH = 8_192;
/** How often a path may be encoded: servers and what stands before them decode it once each. */
const MAX_ENCODINGS = 4;

/**
 * Whether a path leads out of where it begins: for any server, also one that decodes it twice, that takes a backslash
 * for a slash, that takes away what follows a semicolon, a question mark or a hash, that trims, or that reads signs
 * which are written too long.
 */
function leadsOut(path: string): boolean {
  let text = path;
  for (let times = 0; times < MAX_ENCODINGS; times++) {
    if (!isUtf8(Buffer.from(text, 'latin1')) || isUnreadable(text)) return true;
    const segments = text.split('/');
    const isBad = (segment: string, index: number) => {
      const [name] = segment.split(/[;?#]/, 1) as [string];
      return (name === '' && index < segments.length - 1) || /^\.{1,2}$/.test(name.trim());
    };
    if (segments.some(isBad)) return true;
    const decoded = decodedOnce(text);
    if (decoded === text) return false;
    text = decoded;
  }
  return true;
}

/** Backslashes, what ends a path for some servers, and escapes that only some of them know. */
const isUnreadable = (text: string): boolean =>
  /%u[\da-f]{4}/i.test(text) || [...text].some((sign) => sign === '\\' || sign < ' ' || sign === '\u007f');

/** The bytes of a text whose escapes are undone; a sign that begins none stands for itself. */
const decodedOnce = (text: string): string =>
  text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/**
 * The address below a base that a path and a query name, as they were sent. Nothing in them chooses another host, or
 * leads out of the base.
 * @param path without the slash at its beginning
 * @param credentials goes into the query, in place of what has the same names there
 */
export function addressBelow(
  base: URL,
  path: string,
  query: string,
  credentials: ReadonlyMap<string, string>,
): URL | AddressFault {
  if (path.length > MAX_LENGTH || !PATH.test(path) || leadsOut(path)) return 'path';
  if (query.length > MAX_LENGTH || !QUERY.test(query)) return 'query';
  const url = new URL(base);
  url.pathname = `${base.pathname}${path}`;
  url.search = queryWith(query, credentials);
  // what the parser of addresses reads otherwise than we do
  if (url.origin !== base.origin || url.pathname !== `${base.pathname}${path}` || url.hash !== '') return 'path';
  return url;
}

/** A query, pair by pair as it was sent, with the credentials at its end. */
function queryWith(query: string, credentials: ReadonlyMap<string, string>): string {
  const isTheirs = (pair: string) => {
    if (credentials.size === 0) return true;
    const [name] = new URLSearchParams(pair).keys();
    return name === undefined || !credentials.has(name);
  };
  const pairs = query === '' ? [] : query.split('&').filter(isTheirs);
  const own = [...credentials].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  return [...pairs, ...own].join('&');
}
