import { hostileDocuments } from '../../test/support/hostile-documents.ts';
import type { Account } from '../api.ts';
import { median } from '../load.ts';
import type { ServerProcess } from '../server-process.ts';

/** Number of times each document is sent in a row: the clock of a process counts in hundredths of a second. */
const REPEATS = 20;
const DISTINCT = 2_000;

/**
 * The CPU cost of the documents of the hostile corpus, answered and refused, and the memory that remains in use
 * afterwards.
 */
export async function hostile(product: ServerProcess, account: Account): Promise<void> {
  const costs: { what: string; ms: number; isAnswered: boolean }[] = [];
  for (const { what, query, variables = '{}', operationName = null } of hostileDocuments) {
    const send = (mark: number) =>
      post(
        product,
        account,
        `{"query":${JSON.stringify(`${query} #${mark}`)},"variables":${variables},` +
          `"operationName":${JSON.stringify(operationName)}}`,
      );
    const { isAnswered } = await send(0);
    const rounds: number[] = [];
    for (let round = 1; round <= 3; round++) {
      const before = product.cpuSeconds();
      for (let i = 0; i < REPEATS; i++) await send(round * REPEATS + i);
      rounds.push(((product.cpuSeconds() - before) * 1_000) / REPEATS);
    }
    costs.push({ what, ms: median(rounds), isAnswered });
  }
  console.log(`\nhostile documents: ${costs.length}, CPU of one`);
  for (const isAnswered of [true, false]) {
    const worst = costs.filter((cost) => cost.isAnswered === isAnswered).sort((a, b) => b.ms - a.ms);
    const told = worst.slice(0, 3).map(({ what, ms }) => `${ms.toFixed(1)} ms (${what})`);
    console.log(`  ${isAnswered ? 'answered' : 'refused'}: at worst ${told.join(', ')}`);
  }
  await memory(product, account);
}

async function memory(product: ServerProcess, account: Account): Promise<void> {
  const before = product.residentMiB();
  const filler = 'x'.repeat(60_000);
  for (let i = 0; i < DISTINCT; i++)
    await post(product, account, JSON.stringify({ query: `{ ${i % 2 ? 'me' : 'you'} { id } } #${i} ${filler}` }));
  const grown = product.residentMiB() - before;
  console.log(`  memory after ${DISTINCT} distinct documents of 60 KB: ${grown.toFixed(0)} MiB more than before`);
}

async function post(product: ServerProcess, account: Account, body: string): Promise<{ isAnswered: boolean }> {
  const answer = await fetch(`${product.url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${account.token}`,
    },
    body,
  });
  return { isAnswered: !(await answer.text()).includes('"errors"') };
}
