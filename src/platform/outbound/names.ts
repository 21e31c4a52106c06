import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { OutboundError } from './outbound-error.ts';

const TRY_TIMEOUT_MS = 1_000;
const TRIES = 2;

/** Finds the addresses of hosts. */
export interface Names {
  /**
   * All addresses of a host, IPv4 and IPv6; the host may be an address.
   * @param isListed whether the operator lists the host, so that names of this machine's own files count
   * @throws OutboundError network when it has none
   */
  addresses(host: string, options: { isListed: boolean; signal: AbortSignal }): Promise<string[]>;
}

/**
 * Asks DNS servers directly. The system's own resolver would take a thread of the pool that hashes passwords for as
 * long as a stranger's DNS server stays silent; it answers only for hosts that the operator lists.
 */
export class DnsNames implements Names {
  readonly #servers: readonly string[];

  /** @param servers like `192.0.2.53` or `[2001:db8::53]:53`; empty = those of the system */
  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  async addresses(host: string, { isListed, signal }: { isListed: boolean; signal: AbortSignal }): Promise<string[]> {
    if (isIP(host) !== 0) return [host];
    const found = await this.#find(host, isListed, signal);
    if (found.length === 0) throw new OutboundError('network');
    return found;
  }

  #find(host: string, isListed: boolean, signal: AbortSignal): Promise<string[]> {
    if (isListed && this.#servers.length === 0) return fromSystem(host, signal);
    if (host === 'localhost' || host.endsWith('.localhost')) return Promise.resolve(['127.0.0.1', '::1']); // RFC 6761
    return this.#ask(host, signal);
  }

  async #ask(host: string, signal: AbortSignal): Promise<string[]> {
    const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
    if (this.#servers.length > 0) resolver.setServers(this.#servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      // a family without an address is an error of its own: the other one decides
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      signal.throwIfAborted();
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}

/** Answers that say that there is nothing: the server is there. */
const IS_ANSWER = new Set(['ENODATA', 'ENOTFOUND', 'ESERVFAIL', 'EREFUSED', 'ENOTIMP']);

/**
 * The DNS servers, after one of them has answered.
 * @param servers like those of {@link DnsNames}
 * @throws Error when none does
 */
export async function dnsAnswers(servers: readonly string[]): Promise<string[]> {
  const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
  if (servers.length > 0) resolver.setServers(servers);
  const asked = resolver.getServers();
  if (asked.length === 0) throw new Error('No DNS server is set.');
  await resolver.resolveNs('.').catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!IS_ANSWER.has(code)) throw new Error(`${asked.join(', ')} did not answer (${code}).`, { cause: error });
  });
  return asked;
}

async function fromSystem(host: string, signal: AbortSignal): Promise<string[]> {
  const found = await Promise.race([
    lookup(host, { all: true }).catch(() => []), // an unknown name: nothing was found
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    }),
  ]);
  return found.map(({ address }) => address);
}
