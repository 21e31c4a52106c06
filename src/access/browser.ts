import type { Browser } from '../kernel/caller.ts';
import { randomToken } from './random-token.ts';

const TOKEN = /^[\w-]{43}$/;
/** Longer than a sign-in takes. */
const MAX_AGE_SECONDS = 900;

/** The parts of a request and its answer that are needed for it. */
export interface CookieJar {
  headers: Record<string, string | string[] | undefined>;
  setCookie: (text: string) => void;
  /** Whether browsers reach the service over https. */
  isSecure: boolean;
}

/**
 * The browser behind a request. Identity providers send SAML answers by a form of their own page, and a browser adds to
 * those only cookies with `SameSite=None`, which must be `Secure`. Without https the attribute is left out: a browser
 * adds such cookies for two minutes after they were set, or always.
 */
export function browserOf({ headers, setCookie, isSecure }: CookieJar): Browser {
  const name = isSecure ? '__Host-sso' : 'sso';
  const given = tokenIn(headers.cookie, name);
  return {
    token: given,
    isBrowser: headers.origin !== undefined || headers['sec-fetch-site'] !== undefined,
    wantsPage: prefersPage(typeof headers.accept === 'string' ? headers.accept : ''),
    mark() {
      const token = given ?? randomToken();
      const attributes = `Path=/; HttpOnly; Max-Age=${MAX_AGE_SECONDS}${isSecure ? '; Secure; SameSite=None' : ''}`;
      setCookie(`${name}=${token}; ${attributes}`);
      return token;
    },
  };
}

function tokenIn(header: string | string[] | undefined, name: string): string | null {
  const cookies = (Array.isArray(header) ? header.join(';') : (header ?? '')).split(';');
  const values = cookies.map((cookie) => cookie.trim().split('=')).filter(([key]) => key === name);
  const [value] = values.map(([, text = '']) => text).filter((text) => TOKEN.test(text));
  return value ?? null;
}

/** What a header such as `Accept` names, each with its weight; 0 for what is refused. */
export function weightsOf(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const range of header.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    weights.set(type, Number(weight) || 0);
  }
  return weights;
}

/** Whether `Accept` names HTML and prefers it to JSON. */
export function prefersPage(accept = ''): boolean {
  const weights = weightsOf(accept);
  return (weights.get('text/html') ?? 0) > (weights.get('application/json') ?? 0);
}
