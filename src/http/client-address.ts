import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  return ipaddr.isValid(address) ? ipaddr.process(address) : null;
}

/**
 * The real client address: the peer of the socket, unless that is a trusted proxy. Then the first hop of
 * `X-Forwarded-For`, read from right to left, that is not a trusted proxy (defaults §0.5). A hop that is not an
 * address ends the search: no trusted proxy wrote what is to the left of it.
 */
export class ClientAddress {
  readonly #trusted: Range[];

  constructor(trustedProxies: readonly string[]) {
    this.#trusted = trustedProxies.map((text) => {
      const [address, bits] = ipaddr.parseCIDR(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
      return [address, bits];
    });
  }

  of(request: IncomingMessage): string {
    const peer = request.socket.remoteAddress ?? '0.0.0.0';
    let client = parse(peer);
    if (!client || !this.#isTrusted(client)) return client?.toString() ?? peer;
    const hops = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
    for (const hop of hops.reverse()) {
      const address = parse(hop.trim());
      if (!address) break;
      client = address;
      if (!this.#isTrusted(address)) break;
    }
    return client.toString();
  }

  /** The key for limits per client: IPv6 callers own whole networks, so all of a /64 share one key. */
  static limitKey(address: string): string {
    const parsed = parse(address);
    return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : address;
  }

  #isTrusted(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
    return this.#trusted.some(
      ([range, bits]) => range.kind() === address.kind() && address.match([range, bits] as never),
    );
  }
}
