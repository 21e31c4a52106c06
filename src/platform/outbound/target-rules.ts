import type { BlockList } from 'node:net';
import { embedded, isIn, isNeverCalled, isPublic, NEVER_NAMES, rangesOf } from './addresses.ts';
import type { AllowedTarget } from './allowed-targets.ts';
import { OutboundError } from './outbound-error.ts';

/** Ports of public targets: https, and the other port where it is customary. */
const PUBLIC_PORTS: ReadonlySet<number> = new Set([443, 8443]);

/** Where a call goes, as its URL says. */
export interface OutboundTarget {
  /** Name, or address without brackets; without a dot at the end. */
  host: string;
  port: number;
  isSecure: boolean;
}

/**
 * Which targets may be called (defaults §4): public addresses over https; what `OUTBOUND_ALLOW` names over http as well
 * and on any port; metadata services never.
 */
export class TargetRules {
  readonly #names: readonly AllowedTarget[];
  readonly #ranges: readonly { list: BlockList; port: number | null }[];

  constructor(allow: readonly AllowedTarget[]) {
    this.#names = allow.filter(({ kind }) => kind === 'name');
    this.#ranges = allow
      .filter(({ kind }) => kind === 'range')
      .map(({ value, port }) => ({ list: rangesOf([value]), port }));
  }

  /** Whether the operator lists the host by its name. */
  lists({ host, port }: OutboundTarget): boolean {
    return this.#names.some((entry) => entry.value === host && (entry.port === null || entry.port === port));
  }

  /**
   * Checks all addresses of a target: one that may not be called refuses the whole target.
   * @returns whether the operator lists it
   * @throws OutboundError blocked_address, insecure_url or blocked_port; the first of these that holds for any address
   */
  check(target: OutboundTarget, addresses: readonly string[]): boolean {
    if (NEVER_NAMES.has(target.host) || addresses.some(isNeverCalled)) throw new OutboundError('blocked_address');
    const others = addresses.filter((address) => !this.#opens(target, address));
    if (!others.every(isPublic)) throw new OutboundError('blocked_address');
    if (others.length === 0) return true;
    this.checkPublic(target);
    return false;
  }

  /**
   * Checks what holds for all targets that the operator does not open, whatever their addresses are. A name may have
   * addresses that are opened by their range, so only a call knows of those.
   * @throws OutboundError blocked_address, insecure_url or blocked_port
   */
  checkPublic(target: OutboundTarget): void {
    if (NEVER_NAMES.has(target.host)) throw new OutboundError('blocked_address');
    if (!target.isSecure) throw new OutboundError('insecure_url');
    if (!PUBLIC_PORTS.has(target.port)) throw new OutboundError('blocked_port');
  }

  /** Whether the operator opens some range of addresses, which a name may lead to. */
  get opensRanges(): boolean {
    return this.#ranges.length > 0;
  }

  /** Whether the operator opens an address to the target, with every IPv4 address in it that is not public anyway. */
  #opens(target: OutboundTarget, address: string): boolean {
    const isListed = (part: string) => this.lists(target) || this.#isInRange(part, target.port);
    return isListed(address) && embedded(address).every((part) => isListed(part) || isPublic(part));
  }

  #isInRange(address: string, port: number): boolean {
    return this.#ranges.some((range) => (range.port === null || range.port === port) && isIn(range.list, address));
  }
}

/**
 * Where a URL leads.
 * @throws OutboundError invalid_url unless it is an absolute http or https URL without credentials
 */
export function parseUrl(text: string | URL): URL {
  if (typeof text === 'string' && !URL.canParse(text)) throw new OutboundError('invalid_url');
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new OutboundError('invalid_url');
  url.hostname = url.hostname.replace(/\.+$/, ''); // the root's dot: a certificate has none
  url.hash = '';
  return url;
}

/** The target of a parsed URL. */
export function targetOf(url: URL): OutboundTarget {
  const isSecure = url.protocol === 'https:';
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    isSecure,
  };
}
