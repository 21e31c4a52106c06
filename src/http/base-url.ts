/**
 * The address of the service as used by a client on this machine: any interface becomes `localhost`, and IPv6 addresses
 * are in brackets.
 */
export function baseUrl(host: string, port: number): string {
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
