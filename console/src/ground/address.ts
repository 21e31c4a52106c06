import { begunStates } from './begun-states';
import { keptUploads } from './kept-uploads';

const here = import.meta.url;

/** The path of the console, such as `/console/`, wherever a proxy has put the service: its files are in `assets`. */
export const consolePath = new URL('../', here).pathname;

/** The address of the service, with a slash at its end. */
export const serviceUrl = new URL('../../', here).href;

let isLeaving = false;

/**
 * Leaves the console for another page. Only the first call counts: several streams tell that a session or a place is
 * gone, and a second navigation would abort the first, after which a browser may never close the page.
 */
export function leave(to: string): void {
  if (isLeaving) return;
  isLeaving = true;
  location.assign(to);
}

/**
 * Leaves for the page to sign in, which comes back to where the reader is now. The browser may keep the page that is
 * left, to go back to: nothing stays in it, and neither an address for an upload nor a begun authorization in the tab.
 */
export function goToSignIn(): void {
  keptUploads.forgetAll();
  begunStates.forgetAll();
  const below = location.href.slice(new URL(consolePath, here).href.length);
  const to = new URL('account/sign-in', serviceUrl);
  to.searchParams.set('return_to', `/console/${below}`);
  addEventListener('pagehide', () => document.getElementById('root')?.replaceChildren());
  leave(to.href);
}
