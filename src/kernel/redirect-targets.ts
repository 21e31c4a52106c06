/** Where a sign-in may send a browser afterwards. */
export interface RedirectTargets {
  /** Origins, of which every page may be named, and addresses without query. */
  readonly listed: readonly string[];
  /** The address of the service: its own pages may always be named. */
  readonly publicUrl: string;
}

/** Whether a browser may be sent to an address: it is exactly a listed one, with any query, or of a listed origin. */
export function mayRedirectTo(address: string, { listed, publicUrl }: RedirectTargets): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, username, password, hash, origin, pathname } = new URL(address);
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '' || hash !== '' || address.includes('#'))
    return false;
  const page = `${origin}${pathname}`;
  return page === `${publicUrl}/account/sign-in` || listed.includes(origin) || listed.includes(page);
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
