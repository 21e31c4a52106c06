/** What is wrong with an address that browsers or the service are sent to; `null` if nothing is. */
export function addressFault(text: string): string | null {
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return 'it must not have a user name or a password';
  // a script may name this machine, too
  if (protocol === 'https:' || (protocol === 'http:' && isThisMachine(hostname))) return null;
  return "it must start with 'https://': only a provider on this machine may use http";
}

const isThisMachine = (host: string): boolean =>
  host === '[::1]' || host === 'localhost' || host.endsWith('.localhost') || /^127(?:\.\d{1,3}){3}$/.test(host);
