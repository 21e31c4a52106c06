import { setTimeout } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import { isPooled, PoolerError, READ_URLS, refuseUnfitPooler } from '../../platform/postgres/pooler.ts';
import { Probe } from '../../platform/postgres/probe.ts';
import { MAX_LAG_MS } from '../../platform/postgres/replicas.ts';
import { type Check, fail, ok, warn } from './finding.ts';

const POLL_MS = 50;
const REMEDY = 'See docs/operate/scale-out.md, read replicas.';

/** Whether a replica has, within the time that a node allows it, what the primary has now. */
async function keepsUp(replica: Probe, primary: Probe): Promise<boolean> {
  const { position } = await primary.state();
  const until = performance.now() + MAX_LAG_MS;
  do {
    if ((await replica.state()).position >= position) return true;
    await setTimeout(POLL_MS);
  } while (performance.now() < until);
  return false;
}

type ReplicaFinding = Awaited<ReturnType<Check['run']>>[number];

/** One replica, by its place in the setting: its address may have a password. */
async function findingOf(url: string, place: number, primary: Probe): Promise<ReplicaFinding> {
  const name = `Replica ${place}`;
  const replica = new Probe(url);
  try {
    const { isReplica } = await replica.state();
    if (!isReplica) return fail(`${name} follows no primary: it is not read from.`, `Take it out of ${READ_URLS}.`);
    const hasPooler = await isPooled(url);
    if (hasPooler) await refuseUnfitPooler(url, READ_URLS);
    if (!(await keepsUp(replica, primary)))
      return warn(`${name} is more than ${MAX_LAG_MS / 1_000} s behind: it is not read from.`, REMEDY);
    return ok(`replica ${place} keeps up${hasPooler ? ', through a pooler that keeps prepared statements' : ''}`);
  } catch (error) {
    if (error instanceof PoolerError) return fail(error.message, REMEDY);
    // reads go to the primary meanwhile
    return warn(`${name} is away: ${error instanceof Error ? error.message : String(error)}`, REMEDY);
  } finally {
    await replica.end();
  }
}

/** The replicas that the service would read from. */
export const replicasCheck = ({ databaseReadUrls }: Config, primaryUrl: string): Check => ({
  name: 'replicas',
  remedy: REMEDY,
  async run() {
    const primary = new Probe(primaryUrl);
    try {
      return await Promise.all(databaseReadUrls.map((url, at) => findingOf(url, at + 1, primary)));
    } finally {
      await primary.end();
    }
  },
});
