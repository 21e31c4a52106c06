const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Why a connect link may not lead back to an address; `null` for one that may be allowed. */
export function returnAddressProblem(address: string): string | null {
  if (!URL.canParse(address)) return 'must be an absolute address';
  const { href, protocol, hostname, username, password } = new URL(address);
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.has(hostname)))
    return 'must begin with https, or with http on the own machine';
  if (address.includes('#')) return 'must have no fragment';
  if (username !== '' || password !== '') return 'must have no user name or password';
  // what people compare is what was written: no other spelling of it is another address
  return href === address ? null : `must be written as '${href}'`;
}

/** An address with how a connection ended. No credential is ever in it. */
export function returning(address: string, facts: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(facts).toString();
  return `${address}${address.includes('?') ? '&' : '?'}${query}`;
}
