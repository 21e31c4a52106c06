import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Account, call } from '../api.ts';
import type { ServerProcess } from '../server-process.ts';

const EVENTS = 5_000;
const HOOKS = 2;
/** Events of so many threads: those of one thread are sent one after the other. */
const THREADS = 500;
const MOST_SECONDS = 120;

/** How many deliveries a second a node makes to receivers on loopback, and whether all of them arrive. */
export async function webhooks(product: ServerProcess, account: Account, databaseUrl: string): Promise<void> {
  console.log('\nwebhooks');
  const arrived = new Set<string>();
  let last = 0;
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => {
      arrived.add(`${request.url} ${String(request.headers['webhook-id'])}`);
      last = performance.now();
      response.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  const db = new pg.Client({ connectionString: databaseUrl });
  await db.connect();
  try {
    for (let hook = 0; hook < HOOKS; hook++)
      await call(product, account.token, 'POST', `/v1/orgs/${account.orgId}/webhooks`, {
        name: `Hook ${hook}`,
        url: `http://127.0.0.1:${port}/${hook}`,
        event_types: ['thread.*'],
        workspace_id: account.workspaceId,
      });
    const begun = performance.now();
    await db.query(
      `insert into events (id, org_id, workspace_id, type, actor, resource_type, resource_id, data)
       select 'evt_' || gen_random_uuid(), $1, $2, 'thread.updated',
         '{"principal_type":"user","principal_id":"usr_1","username":"somebody"}', 'thread', 'thr_' || n % $3::int,
         '{"fields":["title"]}' from generate_series(1, $4::int) n`,
      [account.orgId, account.workspaceId, THREADS, EVENTS],
    );
    const wanted = EVENTS * HOOKS;
    while (arrived.size < wanted && performance.now() - begun < MOST_SECONDS * 1_000) await delay(50);
    const seconds = (last - begun) / 1_000;
    console.log(
      `${wanted} deliveries to ${HOOKS} receivers: ${Math.round(arrived.size / seconds)} a second, ` +
        `${wanted - arrived.size} lost`,
    );
  } finally {
    await db.end();
    receiver.closeAllConnections();
    receiver.close();
  }
}
