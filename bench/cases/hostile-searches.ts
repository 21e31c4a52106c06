import { type Account, call } from '../api.ts';
import { load, median, type Rounds } from '../load.ts';
import { fixedRandom } from '../search/corpus.ts';
import type { ServerProcess } from '../server-process.ts';
import { allIndexed } from './search.ts';

const WORDS = (
  'apple banana cherry dolphin elephant forest garden harbor island jungle kitchen lemon mountain needle ocean ' +
  'pepper quartz river silver tunnel umbrella valley window yellow zebra anchor bridge copper desert engine falcon ' +
  'guitar'
).split(' ');
const TEXTS = 25;
const TEXT_BYTES = 900_000;
const IN_FLIGHT = 12;
/** Few, so that the requests wait for the searches and not for each other. */
const CONNECTIONS = 4;

/**
 * What the searches of one organization do to the requests of another, which may take five times as long (p99) and
 * always have an answer. `BENCH_ONLY=hostile npm run bench` has it.
 */
export async function hostileSearches(
  product: ServerProcess,
  [attacker, victim]: readonly [Account, Account],
  { count, seconds }: Rounds,
): Promise<void> {
  const artifacts = `/v1/orgs/${attacker.orgId}/workspaces/${attacker.workspaceId}/namespaces/default/artifacts`;
  const random = fixedRandom(1);
  for (let n = 0; n < TEXTS; n++) {
    const words = Array.from({ length: TEXT_BYTES / 7 }, () => WORDS[Math.floor(random() * WORDS.length)]);
    await call(product, attacker.token, 'POST', artifacts, { name: `text ${n}`, content: words.join(' ') });
  }
  await allIndexed(product, attacker.token, artifacts);
  const me = '/v1/auth/me';
  const p99 = async () => (await load(product, me, victim.token, seconds, CONNECTIONS)).p99Ms;
  await p99();
  const alone: number[] = [];
  const beside: number[] = [];
  const statuses = new Map<number, number>();
  for (let round = 0; round < count; round++) {
    alone.push(await p99());
    let isDone = false;
    const searching = Array.from({ length: IN_FLIGHT }, async () => {
      while (!isDone) {
        const status = await search(product, attacker, artifacts);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    });
    beside.push(
      await p99().finally(() => {
        isDone = true;
      }),
    );
    await Promise.all(searching);
  }
  const ratios = beside.map((ms, round) => (ms / alone[round]!).toFixed(1));
  const answers = [...statuses].map(([status, times]) => `${times} times ${status}`).join(', ');
  console.log(
    `\n${IN_FLIGHT} searches of 32 words in flight (${answers}): p99 of another tenant ` +
      `${median(alone).toFixed(1)} ms alone, ${median(beside).toFixed(1)} ms beside them ` +
      `(${ratios.join(', ')} times), none refused`,
  );
}

async function search({ url }: ServerProcess, { token }: Account, artifacts: string): Promise<number> {
  const answer = await fetch(`${url}${artifacts}/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: WORDS.join(' ') }),
  });
  await answer.arrayBuffer();
  return answer.status;
}
