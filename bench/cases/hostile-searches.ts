import { type Account, call } from '../api.ts';
import { reportAttack } from '../beside.ts';
import type { Rounds } from '../load.ts';
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

/**
 * What the searches of one organization do to the requests of another, which may take five times as long (p99) and
 * always have an answer. `BENCH_ONLY=hostile npm run bench` has it.
 */
export async function hostileSearches(
  product: ServerProcess,
  [attacker, victim]: readonly [Account, Account],
  rounds: Rounds,
): Promise<void> {
  const artifacts = `/v1/orgs/${attacker.orgId}/workspaces/${attacker.workspaceId}/namespaces/default/artifacts`;
  const random = fixedRandom(1);
  for (let n = 0; n < TEXTS; n++) {
    const words = Array.from({ length: TEXT_BYTES / 7 }, () => WORDS[Math.floor(random() * WORDS.length)]);
    await call(product, attacker.token, 'POST', artifacts, { name: `text ${n}`, content: words.join(' ') });
  }
  await allIndexed(product, attacker.token, artifacts);
  const attack = { what: 'searches', of: artifacts, inFlight: IN_FLIGHT } as const;
  const title = `${IN_FLIGHT} searches of 32 words in flight`;
  await reportAttack(title, { product, account: victim, path: '/v1/auth/me', rounds }, attacker, attack);
}

/** Searches the artifacts at a path for all words. @returns the status */
export async function searchAll(
  { url }: Pick<ServerProcess, 'url'>,
  { token }: Account,
  artifacts: string,
): Promise<number> {
  const answer = await fetch(`${url}${artifacts}/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: WORDS.join(' ') }),
  });
  await answer.arrayBuffer();
  return answer.status;
}
