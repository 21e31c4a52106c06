import autocannon from 'autocannon';
import type { ServerProcess } from './server-process.ts';

export interface Sample {
  rps: number;
  cpuMicros: number;
  p99Ms: number;
}

const CONNECTIONS = 32;

/** One closed-loop round against one server; every answer must be 200. */
export async function load(server: ServerProcess, path: string, token: string, seconds: number): Promise<Sample> {
  const before = server.cpuSeconds();
  const result = await autocannon({
    url: server.url + path,
    connections: CONNECTIONS,
    duration: seconds,
    headers: { authorization: `Bearer ${token}` },
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${server.name} ${path}: ${result.non2xx} answers were not 2xx, ${result.errors} errors`);
  const cpuMicros = ((server.cpuSeconds() - before) * 1e6) / result.requests.total;
  return { rps: result.requests.average, cpuMicros, p99Ms: result.latency.p99 };
}

/** The middle one. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Rounds in rotating order; the first is dropped, because everything is still warming up. */
export async function compare(
  servers: readonly ServerProcess[],
  path: string,
  token: string,
  rounds: number,
  seconds: number,
): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(servers.map((server) => [server.name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (let at = 0; at < servers.length; at++) {
      const server = servers[(at + round) % servers.length]!;
      const sample = await load(server, path, token, round === 0 ? Math.max(2, seconds) : seconds);
      if (round > 0) samples.get(server.name)!.push(sample);
    }
  }
  return samples;
}
