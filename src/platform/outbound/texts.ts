import { Resolver } from 'node:dns/promises';
import { OutboundError } from './outbound-error.ts';

const TRY_TIMEOUT_MS = 1_000;
const TRIES = 2;
const MAX_RECORDS = 100;

/** What a server says of a name without such records. */
const NOTHING: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * The TXT records of a name, each with its parts put together.
 * @param servers those of `OUTBOUND_DNS`; empty = those of the system
 * @throws OutboundError network when no server answers
 */
export async function textsOf(name: string, servers: readonly string[]): Promise<string[]> {
  const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
  if (servers.length > 0) resolver.setServers(servers);
  try {
    const records = await resolver.resolveTxt(name);
    return records.slice(0, MAX_RECORDS).map((parts) => parts.join(''));
  } catch (error) {
    if (error instanceof Error && 'code' in error && NOTHING.has(error.code)) return [];
    throw new OutboundError('network');
  }
}
