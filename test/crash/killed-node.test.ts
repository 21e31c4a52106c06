// own process: starts processes, which is slow from a large process
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Service, startService } from '../support/service.ts';
import { type EventSource, openEvents, type SentEvent } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';
import { Client } from './client.ts';

let dataDir: string;
let database: TestDatabase;
let db: pg.Client;
const nodes: Service[] = [];
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  // the first one makes the keys that both have
  for (let node = 0; node < 2; node++) {
    nodes.push(startService({ DATA_DIR: dataDir, DATABASE_URL: database.url, LOG_LEVEL: 'error' }));
    await nodes[node]!.url();
  }
});
afterAll(async () => {
  for (const node of nodes) {
    node.child.kill('SIGKILL');
    await node.exited();
  }
  await db.end();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

interface Envelope {
  event_id: string;
  type: string;
  data: {
    user_id?: string;
    reason?: string;
    presence?: { user_id: string }[];
    last_event_id?: string;
    bucket_status?: string;
  };
}
const envelopeOf = ({ data }: SentEvent) => JSON.parse(data) as Envelope;
const shown = ({ events }: EventSource) => events.map(envelopeOf);
const typesOf = (source: EventSource) => shown(source).map(({ type }) => type);

test('a node is killed: its people leave on the other, streams there go on, and its clients resume there', async () => {
  const [killed, other] = nodes as [Service, Service];
  const ann = await Client.register(await killed.url());
  const home = `/v1/orgs/${ann.orgId}/workspaces/${ann.workspaceId}`;
  const bob = await colleagueOf(ann, await other.url());
  const follow = async (node: Service, headers: { authorization: string }, after?: string) => {
    const url = `${await node.url()}${home}/sync/stream`;
    return openEvents(url, { headers: { ...headers, ...(after ? { 'last-event-id': after } : {}) } });
  };
  let changes = 0;
  const change = async () => {
    const sent = await bob.send('PUT', home, { description: `change ${++changes}` });
    expect(sent).toMatchObject({ is: 'acknowledged' });
  };
  /** By him: the service tells as well when it has made the storage. */
  const isHis = (event: SentEvent) =>
    event.event === 'workspace.updated' && envelopeOf(event).data.bucket_status === undefined;
  const updates = (source: EventSource) => source.events.filter(isHis);
  const has = (source: EventSource, count: number) => waitFor(() => expect(updates(source)).toHaveLength(count));

  const hers = await follow(killed, ann.headers);
  await hers.next(({ event }) => event === 'connected');
  const his = await follow(other, bob.headers);
  const connected = JSON.parse((await his.next(({ event }) => event === 'connected')).data) as Envelope;
  const { rows } = await db.query<{ user_id: string }>('select distinct user_id from presences');
  expect(connected.data.presence?.map((user) => user.user_id).sort()).toEqual(rows.map((row) => row.user_id).sort());
  await change();
  await Promise.all([has(hers, 1), has(his, 1)]);

  const broken = hers.ended.catch(() => undefined);
  killed.child.kill('SIGKILL');
  await Promise.all([killed.exited(), broken]);
  await change();
  await change();
  await has(his, 3);
  expect(typesOf(his)).not.toContain('presence.left');

  // nobody renews what was hers: within 45 seconds it ends
  const remaining = await db.query<{ seconds: number }>(
    'select extract(epoch from expires_at - now())::float8 as seconds from presences where user_id = $1',
    [ann.userId],
  );
  expect(remaining.rows.map(({ seconds }) => seconds <= 45)).toEqual([true]);
  await db.query('update presences set expires_at = now() where user_id = $1', [ann.userId]);
  const left = await his.next(({ event }) => event === 'presence.left');
  expect(JSON.parse(left.data)).toMatchObject({ data: { user_id: ann.userId, reason: 'timeout' } });

  // she comes back to the other node with the last that she has seen
  const seen = shown(hers).map((event) => event.event_id);
  const again = await follow(other, ann.headers, hers.events.at(-1)!.id);
  await has(again, 2);
  await change();
  await Promise.all([has(again, 3), has(his, 4)]);
  const missed = updates(again).map((event) => envelopeOf(event).event_id);
  expect(new Set([...seen, ...missed]).size).toBe(seen.length + missed.length);
  expect(updates(his).map(({ data }) => data)).toEqual([...updates(hers), ...updates(again)].map(({ data }) => data));
  expect(typesOf(again)).not.toContain('resync');
  const aboutHer = () => shown(his).filter(({ type, data }) => type !== 'connected' && data.user_id === ann.userId);
  await waitFor(() => expect(aboutHer().map(({ type }) => type)).toEqual(['presence.left', 'presence.joined']));
  for (const source of [his, again]) source.close();
});

/** Somebody in the same workspace, who calls another node. */
async function colleagueOf(owner: Client, url: string): Promise<Client> {
  const account = { username: 'colleague', password: 'reads a lot of events' };
  const email = 'colleague@example.test';
  const made = await owner.send('POST', '/v1/users', { ...account, email, role: 'admin' });
  expect(made).toMatchObject({ is: 'acknowledged' });
  return Client.signIn(url, account);
}
