import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { lruOf } from '../kernel/lru.ts';

/** An IPv6 address with a zone, or one that ends with an IPv4 address, is the longest. */
const MAX_ADDRESS = 64;

type AddressRange = [Address, number];
type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** The addresses that are seen again and again: those of proxies, and of clients that keep a connection. */
const parsed = lruOf<{ address: Address | null }>(1_000);

function parse(text: string): Address | null {
  let known = parsed.get(text);
  if (!known) {
    known = { address: ipaddr.isValid(text) ? ipaddr.process(text) : null };
    // the text of a header may be long
    if (text.length <= MAX_ADDRESS) parsed.set(text, known);
  }
  return known.address;
}

/**
 * The real client address: the peer of the socket, unless that is a trusted proxy. Then the first hop of
 * `X-Forwarded-For`, read from right to left, that is not a trusted proxy (defaults §0.5). A hop that is not an
 * address ends the search: no trusted proxy wrote what is to the left of it.
 */
export class ClientAddress {
  readonly #trusted: AddressRange[];

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
    const known = parse(address);
    return known instanceof ipaddr.IPv6 ? known.parts.slice(0, 4).join(':') : address;
  }

  #isTrusted(address: Address): boolean {
    return this.#trusted.some(
      ([range, bits]) => range.kind() === address.kind() && address.match([range, bits] as never),
    );
  }
}
