import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Admission } from '../access/admission.ts';
import { isSameSecret } from '../access/random-token.ts';
import { isFromSameOrigin } from '../access/same-origin.ts';
import type { SessionCaller } from '../identity/oauth/authorization-server.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import { forbidden, rateLimited } from '../kernel/errors.ts';
import type { Seal } from '../platform/keys/seal.ts';

const COOKIE = /^[\w-]{43}$/;
/** The header that pages of this origin send with calls: no form and no link of another page can add it. */
export const CSRF_HEADER = 'x-csrf';

interface PageSessionOptions {
  admission: Admission;
  seal: Seal;
  /** As the operator has set it. */
  publicUrl: string | undefined;
}

/** The cookie of a browser that is signed in to the pages of this origin (docs/decisions/0063). */
export class PageSessions {
  readonly #options: PageSessionOptions;
  readonly #isSecure: boolean;
  readonly #name: string;

  constructor(options: PageSessionOptions) {
    this.#options = options;
    this.#isSecure = options.publicUrl?.startsWith('https:') ?? false;
    this.#name = this.#isSecure ? '__Host-session' : 'session';
  }

  /** What the cookie of a request holds, whoever sent it. */
  cookieOf({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
    const values = (headers.cookie ?? '').split(';').flatMap((text) => {
      const [name = '', value = ''] = text.trim().split('=');
      return name === this.#name ? [value] : [];
    });
    // two of one name: one of them was put there by somebody else
    return values.length === 1 && COOKIE.test(values[0]!) ? values[0]! : null;
  }

  /**
   * The same for a call of the API: only of a page of this origin, with the header that no other page can send. A
   * WebSocket cannot send that header: its `Origin`, which a browser always sends and no page can change, has to do.
   */
  cookieOfCall(request: Pick<FastifyRequest, 'headers' | 'url'>): string | null {
    const { headers, url } = request;
    const isGraphQL = url === '/graphql' || url.startsWith('/graphql?');
    const isMeant =
      headers.upgrade === undefined
        ? (isGraphQL || url.startsWith('/v1/')) && headers[CSRF_HEADER] === '1'
        : isGraphQL && headers.upgrade.toLowerCase() === 'websocket' && headers.origin !== undefined;
    return isMeant && this.isOwn(request) ? this.cookieOf(request) : null;
  }

  /** Whether a page of this origin has sent a request. */
  isOwn({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
    return isFromSameOrigin(headers, this.#options.publicUrl);
  }

  /** Who is signed in, for a page; `null` for nobody. @throws RATE_LIMIT_EXCEEDED for many cookies that are none */
  async callerOf(request: FastifyRequest): Promise<SessionCaller | null> {
    const cookie = this.cookieOf(request);
    if (!cookie) return null;
    const caller: AnyCaller = { request: request.caller.request, principal: null };
    const bucket = await this.#options.admission.identify(caller, undefined, cookie);
    if (bucket && !bucket.allowed) throw rateLimited(bucket.retryAfter);
    const { principal } = caller;
    return principal && !principal.token ? { request: caller.request, principal } : null;
  }

  /** What a form of a page must send back: it is of this browser alone, and of one purpose. */
  formToken(request: FastifyRequest, purpose: string): string {
    const holder = this.cookieOf(request) ?? request.caller.request.browser?.token ?? '';
    return this.#token(holder, purpose);
  }

  /** The same for a browser that is not signed in: it gets a cookie that the token belongs to. */
  strangersToken(request: FastifyRequest, purpose: string): string {
    const mark = request.caller.request.browser?.mark() ?? '';
    return this.#token(this.cookieOf(request) ?? mark, purpose);
  }

  #token(holder: string, purpose: string): string {
    return this.#options.seal.fingerprint(`${purpose} ${holder}`);
  }

  /** @throws FORBIDDEN for a form that no page of this origin has given to this browser */
  demandOwn(request: FastifyRequest, purpose: string, given: string | null): void {
    const isRight = isSameSecret(given ?? '', this.formToken(request, purpose));
    if (!isRight || !this.isOwn(request)) throw forbidden('user:update', 'Open the page again, and send its own form.');
  }

  set(reply: FastifyReply, token: string): void {
    reply.header('set-cookie', `${this.#name}=${token}; ${this.#attributes}`);
  }

  clear(reply: FastifyReply): void {
    reply.header('set-cookie', `${this.#name}=; Max-Age=0; ${this.#attributes}`);
  }

  get #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`;
  }
}

/**
 * Where a page goes on: a path of this origin, and nothing that a browser could take for the address of another one.
 * @returns `account` for anything else
 */
export function returnPath(given: unknown): string {
  const isPath = typeof given === 'string' && given.length <= 2_048 && /^\/(?![/\\])[\x21-\x7e]*$/.test(given);
  return isPath && !given.includes('\\') ? given : '/account';
}
