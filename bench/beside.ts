import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Account } from './api.ts';
import { load, median, type Rounds } from './load.ts';
import type { ServerProcess } from './server-process.ts';

/** What an attacker does, and how much of it at a time. */
export interface Attack {
  what: 'bodies' | 'messages' | 'searches';
  /** Which bodies, messages or searches. */
  of: string;
  inFlight: number;
}

/** Few, so that the requests wait for the work beside them and not for each other. */
export const CONNECTIONS = 4;

/** The p99 of somebody's requests in each round, without the work of others and beside it. */
export interface Beside {
  aloneMs: number[];
  besideMs: number[];
}

/** Somebody's requests: they must all succeed. */
interface Victim {
  product: ServerProcess;
  account: Account;
  path: string;
  rounds: Rounds;
}

/** Begins work. The function that it returns ends the work. */
type Work = (round: number) => Promise<() => Promise<unknown>>;

/** Measures what work does to the requests of somebody else, alone and beside it in each round. */
export async function measureBeside(
  { product, account, path, rounds: { count, seconds } }: Victim,
  work: Work,
): Promise<Beside> {
  const p99 = async () => (await load(product, path, account.token, seconds, CONNECTIONS)).p99Ms;
  const found: Beside = { aloneMs: [], besideMs: [] };
  await p99();
  for (let round = 0; round < count; round++) {
    found.aloneMs.push(await p99());
    const end = await work(round);
    try {
      found.besideMs.push(await p99());
    } finally {
      await end();
    }
  }
  return found;
}

/** The same as a line of the report. */
export function besideText({ aloneMs, besideMs }: Beside): string {
  const ratios = besideMs.map((ms, round) => (ms / aloneMs[round]!).toFixed(1));
  const [alone, beside] = [median(aloneMs).toFixed(1), median(besideMs).toFixed(1)];
  return `p99 of another one's requests ${alone} ms alone, ${beside} ms beside them (${ratios.join(', ')} times)`;
}

/** What an attack does to the requests of somebody else: prints it, with what the attacker got. */
export async function reportAttack(title: string, victim: Victim, attacker: Account, attack: Attack): Promise<void> {
  const outcomes = new Map<string, number>();
  const found = await measureBeside(victim, async () => {
    const job = JSON.stringify({ url: victim.product.url, account: attacker, attack });
    const child = fork('bench/attacker.ts', [job]);
    await once(child, 'message');
    return async () => {
      const ended = once(child, 'message') as Promise<[Record<string, number>]>;
      child.send('stop');
      for (const [outcome, times] of Object.entries((await ended)[0]))
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + times);
    };
  });
  const answers = [...outcomes].map(([outcome, times]) => `${times} times ${outcome}`).join(', ');
  console.log(`\n${title} (${answers}): ${besideText(found)}`);
}
