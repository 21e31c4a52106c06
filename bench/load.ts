import autocannon from 'autocannon';
import type { ServerProcess } from './server-process.ts';

export interface Sample {
  rps: number;
  cpuMicros: number;
  p99Ms: number;
  /** Of each answer. */
  latenciesMs: readonly number[];
}

/** The number of rounds, and the duration of each. */
export interface Rounds {
  count: number;
  seconds: number;
  /** Default 32. */
  connections?: number;
}

const CONNECTIONS = 32;

/** A request: a path, or a request with a body. */
export type Question =
  | string
  | { method: 'POST' | 'PUT'; path: string; body: string | (() => object) }
  | { method: 'POST'; path: string; body: Buffer; type: string };
/** Questions that are the same for every server, or those of each. */
export type Questions = Question | readonly Question[] | ((server: ServerProcess) => Question);

const HEADERS = { 'content-type': 'application/json', accept: 'application/json' };

function requestOf(question: Question): autocannon.Request {
  if (typeof question === 'string') return { path: question };
  if ('type' in question) {
    const { type, ...asked } = question;
    return { ...asked, headers: { ...HEADERS, 'content-type': type } };
  }
  const { body, ...rest } = question;
  if (typeof body === 'string') return { ...rest, body, headers: HEADERS };
  const setupRequest = (request: autocannon.Request) => ({ ...request, body: JSON.stringify(body()) });
  return { ...rest, setupRequest, headers: HEADERS };
}

/** One closed-loop round against one server, which sends the questions in turn. Every answer must be 2xx. */
export async function load(
  server: ServerProcess,
  questions: Question | readonly Question[],
  token: string,
  seconds: number,
  connections = CONNECTIONS,
): Promise<Sample> {
  let clients = 0;
  const asked = [questions].flat();
  const latenciesMs: number[] = [];
  const before = server.cpuSeconds();
  const result = await autocannon({
    url: server.url,
    // each connection starts at a different question, so that they do not all send the same one at once
    setupClient: (client) => {
      client.setRequests(rotated(asked, clients++).map(requestOf));
      // the histogram of the results has whole milliseconds, as many as a small request takes
      client.on('response', (_status, _bytes, ms) => latenciesMs.push(ms));
    },
    connections,
    duration: seconds,
    headers: { authorization: `Bearer ${token}` },
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(
      `${server.name} ${JSON.stringify(asked[0])}: ${result.non2xx} answers were not 2xx, ${result.errors} errors`,
    );
  if (result.requests.total === 0)
    throw new Error(`${server.name} ${JSON.stringify(asked[0])}: no answer within ${seconds} s`);
  const cpuMicros = ((server.cpuSeconds() - before) * 1e6) / result.requests.total;
  return { rps: result.requests.average, cpuMicros, p99Ms: quantile(latenciesMs, 0.99), latenciesMs };
}

const ascending = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

/** The value below which this part of the values is. */
export const quantile = (values: readonly number[], part: number): number =>
  ascending(values)[Math.min(values.length - 1, Math.floor(values.length * part))]!;

const rotated = <T>(list: readonly T[], by: number): T[] => {
  const at = by % list.length;
  return [...list.slice(at), ...list.slice(0, at)];
};

/** The middle value. */
export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Runs the rounds in rotating order. Drops the first one, which is for warming up. */
export async function compare(
  servers: readonly ServerProcess[],
  questions: Questions,
  token: string,
  { count, seconds, connections }: Rounds,
): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(servers.map((server) => [server.name, []]));
  for (let round = 0; round <= count; round++) {
    for (let at = 0; at < servers.length; at++) {
      const server = servers[(at + round) % servers.length]!;
      const own = typeof questions === 'function' ? questions(server) : questions;
      const sample = await load(server, own, token, round === 0 ? Math.max(2, seconds) : seconds, connections);
      if (round > 0) samples.get(server.name)!.push(sample);
    }
  }
  return samples;
}
