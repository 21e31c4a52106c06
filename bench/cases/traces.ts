import type { Account } from '../api.ts';
import { compare, median, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';
import { newest } from './workspaces.ts';

/**
 * What traces cost a request: without a collector, with one of which nothing is recorded, with one request in a
 * hundred, and with all. The collector is not there: nobody else uses the CPU.
 */
export async function traces(servers: readonly ServerProcess[], account: Account, rounds: Rounds): Promise<void> {
  const [unset] = servers as [ServerProcess];
  const path = `/v1/orgs/${account.orgId}/workspaces/${await newest(unset, account)}`;
  const samples = await compare(servers, path, account.token, rounds);
  print('get one workspace, by how much is traced', samples);
  const base = samples.get(unset.name)!;
  for (const [name, list] of samples) {
    const more = median(list.map(({ cpuMicros }, round) => cpuMicros - base[round]!.cpuMicros));
    if (name !== unset.name) console.log(`  ${name}: ${more.toFixed(1)} us of CPU more than without`);
  }
}

/** The variables of each server beside the first one, which has none. */
export const TRACED: readonly (readonly [name: string, env: Record<string, string>])[] = (
  [
    ['off', 'always_off'],
    ['1 %', 'parentbased_traceidratio'],
    ['all', 'always_on'],
  ] as const
).map(([name, sampler]) => [
  name,
  { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_SAMPLER: sampler, LOG_LEVEL: 'error' },
]);
