import type { FastifyInstance, onSendHookHandler } from 'fastify';
import { html, page, pageHeadersFor } from '../identity/pages/page.ts';

/** What people open or send a form of: everything else here is for programs. */
const PAGES: ReadonlySet<string> = new Set([
  '/account',
  '/account/factors',
  '/account/sign-in',
  '/oauth/device',
  '/oauth/device/:uid',
  '/oauth/interaction/:uid',
]);

interface ToldError {
  error: string;
  message: string;
  details: { retry_after?: number };
}

/**
 * Shows people a page in place of an error in JSON. Call it before the pages are added.
 * @param base the path of the address of the service, without a slash at its end
 */
export function addRefusedPages(server: FastifyInstance, base: () => string): void {
  const show: onSendHookHandler = ({ caller }, reply, payload, done) => {
    if (reply.errorCode === undefined || typeof payload !== 'string' || !caller.request.browser?.wantsPage)
      return done(null, payload);
    reply.headers(pageHeadersFor());
    done(null, refusedPage(JSON.parse(payload) as ToldError, base()));
  };
  server.addHook('onRoute', (route) => {
    if (PAGES.has(route.url)) route.onSend = [route.onSend ?? [], show].flat();
  });
}

function refusedPage({ error, message, details }: ToldError, base: string): string {
  const isSignedOut = error === 'AUTHENTICATION_FAILED';
  const minutes = Math.ceil((details.retry_after ?? 60) / 60);
  const text = isSignedOut
    ? 'You are no longer signed in.'
    : error === 'RATE_LIMIT_EXCEEDED'
      ? `Too many tries. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`
      : message;
  return page(
    'This does not work',
    html`<p class="problem" role="alert">${text}</p>
      <p><a href="${base}/account">${isSignedOut ? 'Sign in' : 'Your account'}</a></p>`,
    { root: `${base}/account/` },
  );
}
