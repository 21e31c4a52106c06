/**
 * Address of the service as a client on this machine writes it: any interface is `localhost`, and IPv6 stands in
 * brackets.
 */
export function baseUrl(host: string, port: number): string {
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}
