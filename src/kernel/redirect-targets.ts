/** Where a sign-in may send a browser afterwards. */
export interface RedirectTargets {
  /** Origins, of which every page may be named, and addresses without query. */
  readonly listed: readonly string[];
  /** The address of the service: its own pages may always be named. */
  readonly publicUrl: string;
}

/** Whether a browser may be sent to an address: it is exactly a listed one, with any query, or of a listed origin. */
export function mayRedirectTo(address: string, { listed, publicUrl }: RedirectTargets): boolean {
  const page = pageOf(address);
  return page !== null && (page === `${publicUrl}/account/sign-in` || isListed(page, listed));
}

/**
 * Whether a browser may be sent to an address after a sign-in that nobody here began. The service's own pages are none,
 * even if their origin is listed: they would sign in whoever is sent there, as whoever the answer is about.
 */
export function mayFollowUnasked(address: string, { listed, publicUrl }: RedirectTargets): boolean {
  const page = pageOf(address);
  return page !== null && isListed(page, listed) && !isOfAccount(page, publicUrl);
}

/** Whether an address is one of the pages of this service by which somebody signs in, however it is written. */
export function isOwnPage(address: string, publicUrl: string): boolean {
  const page = pageOf(address);
  return page !== null && isOfAccount(page, publicUrl);
}

function isOfAccount(page: string, publicUrl: string): boolean {
  try {
    return `${decodeURIComponent(page)}/`.startsWith(`${decodeURIComponent(publicUrl)}/account/`);
  } catch {
    return true; // it is escaped in a way that has no meaning
  }
}

const isListed = (page: string, listed: readonly string[]): boolean =>
  listed.includes(new URL(page).origin) || listed.includes(page);

/** An address without its query; `null` for one that no browser is sent to. */
function pageOf(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, username, password, hash, origin, pathname } = new URL(address);
  const isPage = /^https?:$/.test(protocol) && username === '' && password === '' && hash === '';
  return isPage && !address.includes('#') ? `${origin}${pathname}` : null;
}

/** An entry of the list: an origin, or an address without query and fragment. */
export function isRedirectTarget(item: string): boolean {
  if (!URL.canParse(item)) return false;
  const { protocol, origin, pathname } = new URL(item);
  return /^https?:$/.test(protocol) && (item === origin || item === `${origin}${pathname}`);
}

/** The address with one more parameter. */
export function withParameter(address: string, name: string, value: string): string {
  const url = new URL(address);
  url.searchParams.set(name, value);
  return url.href;
}
