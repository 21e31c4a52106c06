import type { FastifyInstance, FastifyRequest, onSendHookHandler } from 'fastify';
import { html, page, pageHeadersFor } from '../identity/pages/page.ts';
import { CALLBACK, OWN_CALLBACK } from '../tools/connections/own-client.ts';
import { isOfEndUser } from './connect-pages.ts';

/** What people open or send a form of: everything else here is for programs. */
const PAGES: ReadonlySet<string> = new Set([
  '/account',
  '/account/factors',
  '/account/sign-in',
  '/oauth/device',
  '/oauth/device/:uid',
  '/oauth/interaction/:uid',
]);

/** The pages of end users, who have no account here. */
const CONNECT = '/connect';
/** Where they come back to, as members do. */
const RETURNS: ReadonlySet<string> = new Set([CALLBACK, OWN_CALLBACK]);

interface ToldError {
  error: string;
  message: string;
  details: { retry_after?: number };
}

/** Whose page a request is for; `null` for what programs ask for. */
function readerOf({ routeOptions: { url = '' }, caller, query }: FastifyRequest): 'user' | 'end user' | null {
  if (caller.request.browser?.wantsPage !== true) return null;
  if (PAGES.has(url)) return 'user';
  const isReturn = RETURNS.has(url) && isOfEndUser((query as Record<string, unknown>).state);
  return url === CONNECT || isReturn ? 'end user' : null;
}

/**
 * Shows people a page in place of an error in JSON. Call it before the pages are added.
 * @param base the path of the address of the service, without a slash at its end
 */
export function addRefusedPages(server: FastifyInstance, base: () => string): void {
  const show: onSendHookHandler = (request, reply, payload, done) => {
    const reader = reply.errorCode === undefined || typeof payload !== 'string' ? null : readerOf(request);
    if (reader === null) return done(null, payload);
    // the address of a page of an end user has the secret of its link
    reply.headers({ ...pageHeadersFor(), ...(reader === 'end user' && { 'referrer-policy': 'no-referrer' }) });
    done(null, refusedPage(JSON.parse(payload as string) as ToldError, base(), reader));
  };
  server.addHook('onRoute', (route) => {
    if (PAGES.has(route.url) || route.url === CONNECT || RETURNS.has(route.url))
      route.onSend = [route.onSend ?? [], show].flat();
  });
}

function refusedPage({ error, message, details }: ToldError, base: string, reader: 'user' | 'end user'): string {
  const isSignedOut = error === 'AUTHENTICATION_FAILED';
  const minutes = Math.ceil((details.retry_after ?? 60) / 60);
  const text = isSignedOut
    ? 'You are no longer signed in.'
    : error === 'RATE_LIMIT_EXCEEDED'
      ? `Too many tries. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`
      : message;
  const onward =
    reader === 'end user'
      ? html`<p>If it does not work then, go back to where you got the link, and ask for a new one.</p>`
      : html`<p><a href="${base}/account">${isSignedOut ? 'Sign in' : 'Your account'}</a></p>`;
  return page(
    'This does not work',
    html`<p class="problem" role="alert">${text}</p>
      ${onward}`,
    { root: `${base}/account/` },
  );
}
