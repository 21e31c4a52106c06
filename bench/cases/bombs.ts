import { setTimeout } from 'node:timers/promises';
import { hostileDocuments } from '../../test/support/hostile-documents.ts';
import { hostileFiles } from '../../test/support/hostile-files.ts';
import { type Account, call } from '../api.ts';
import { besideText, CONNECTIONS, measureBeside } from '../beside.ts';
import { load, type Rounds } from '../load.ts';
import type { ServerProcess } from '../server-process.ts';

/**
 * What hostile files and documents do to the requests of others, which may take twice as long (p99), and to the memory
 * of the service. `BENCH_ONLY=bombs npm run bench` runs this alone.
 */
export async function bombs(product: ServerProcess, account: Account, rounds: Rounds): Promise<void> {
  const { orgId, workspaceId, token } = account;
  const workspaces = `/v1/orgs/${orgId}/workspaces`;
  const shelf = `${workspaces}/${workspaceId}/namespaces/default/artifacts`;
  const files = hostileFiles.map(({ name, file }) => ({ name, bytes: file() }));
  const kinds: [title: string, send: (n: number) => Promise<unknown>][] = [
    ['hostile files', (n) => upload(product, token, shelf, files[n % files.length]!)],
    ['hostile documents', (n) => ask(product, token, n)],
  ];
  await call(product, token, 'GET', shelf);
  // as many requests as will be sent beside the bombs: the memory that these alone take is not that of the bombs
  for (let round = 0; round < 4 * rounds.count; round++)
    await load(product, workspaces, token, rounds.seconds, CONNECTIONS);
  const before = product.residentMiB();
  for (const [title, send] of kinds) {
    const found = await measureBeside({ product, account, path: workspaces, rounds }, async (round) => {
      let isDone = false;
      const sending = (async () => {
        for (let n = round; !isDone; n++) {
          await send(n);
          // what the service has to read stays in front of it
          await setTimeout(100);
        }
      })();
      return () => {
        isDone = true;
        return sending;
      };
    });
    console.log(`\n${title}: ${besideText(found)}`);
  }
  const grown = product.residentMiB() - before;
  console.log(`  resident memory of the service grew by ${grown.toFixed(0)} MiB (${before.toFixed(0)} before)`);
}

async function upload(
  { url }: ServerProcess,
  token: string,
  shelf: string,
  { name, bytes }: { name: string; bytes: Buffer },
): Promise<void> {
  const body = new FormData();
  body.set('name', name);
  body.set('file', new Blob([new Uint8Array(bytes)]), 'bomb');
  const answer = await fetch(`${url}${shelf}/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body,
  });
  if (answer.status !== 201) throw new Error(`an upload answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
}

async function ask({ url }: ServerProcess, token: string, n: number): Promise<void> {
  const { query, variables = '{}', operationName = null } = hostileDocuments[n % hostileDocuments.length]!;
  const answer = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
    body:
      `{"query":${JSON.stringify(`${query} #${n}`)},"variables":${variables},` +
      `"operationName":${JSON.stringify(operationName)}}`,
  });
  await answer.arrayBuffer();
}
