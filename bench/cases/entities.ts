import assert from 'node:assert/strict';
import { type Account, call } from '../api.ts';
import { compare, load, type Question, quantile, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import { HUB_RELATIONS, seedGraph } from '../seed-graph.ts';
import type { ServerProcess } from '../server-process.ts';

/**
 * The knowledge graph: a list, traversals beside a breadth-first search by hand, and what a hub costs the requests of
 * others. `BENCH_ONLY=entities npm run bench` runs these alone.
 */
export async function entities(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  url: string,
  rounds: Rounds,
): Promise<void> {
  const { orgId, workspaceId, token } = account;
  const home = `/v1/orgs/${orgId}/workspaces/${workspaceId}`;
  const { app_id: appId } = await call<{ app_id: string }>(product, token, 'POST', `${home}/apps`, { name: 'Bench' });
  const { namespaces } = await call<{ namespaces: { namespace_id: string }[] }>(
    product,
    token,
    'GET',
    `${home}/namespaces`,
  );
  const namespaceId = namespaces[0]!.namespace_id;
  const path = `${home}/apps/${appId}/namespaces/${namespaceId}/entities`;
  const { hub, roots } = await seedGraph(url, { orgId, workspaceId, appId, namespaceId });
  const traverse = (id: string, depth: number): Question => ({
    method: 'POST',
    path: `${path}/${id}/traverse?depth=${depth}`,
    body: '{}',
  });
  await agree(servers, token, path, [hub, ...roots.slice(0, 8)]);
  print('list of 50 entities with their relations', await compare(servers, `${path}?limit=50`, token, rounds));
  await imports(servers, token, path, rounds);
  await merges(servers, product, token, path, rounds);
  const few = { ...rounds, connections: 4 };
  for (const depth of [2, 3])
    print(
      `traversal of depth ${depth}, 4 connections`,
      await compare(
        servers,
        roots.map((id) => traverse(id, depth)),
        token,
        few,
      ),
    );
  print(`traversal of depth 3 from the hub, 4 connections`, await compare(servers, traverse(hub, 3), token, few));
  await beside(servers, product, token, home, traverse(hub, 3), rounds);
}

/**
 * Imports of 1,000 entities and 2,000 relations, new ones and the same again, beside the same by hand: two statements
 * that upsert, and nothing recorded.
 */
async function imports(
  servers: readonly ServerProcess[],
  token: string,
  path: string,
  { count }: Rounds,
): Promise<void> {
  const bodyOf = (name: string) => ({
    entities: Array.from({ length: 1_000 }, (_, n) => ({
      key: `${n}`,
      name: `${name} ${n}`,
      entity_type: 'person',
      tags: ['imported'],
    })),
    relations: Array.from({ length: 2_000 }, (_, n) => ({
      source: { key: `${n % 1_000}` },
      target: { key: `${(n + 1 + Math.floor(n / 1_000)) % 1_000}` },
      relation_type: 'knows',
      weight: 2,
    })),
  });
  const times = new Map(servers.map((server) => [server, { created: [] as number[], again: [] as number[] }]));
  for (let round = 0; round <= count * 2; round++)
    for (const server of round % 2 ? [...servers].reverse() : servers) {
      const body = bodyOf(`Import ${round} of ${server.name}`);
      for (const kind of ['created', 'again'] as const) {
        const start = performance.now();
        await call(server, token, 'POST', `${path}/import`, body);
        // the first round prepares the statements
        if (round > 0) times.get(server)![kind].push(performance.now() - start);
      }
    }
  console.log('\nimport of 1,000 entities and 2,000 relations, one at a time');
  const [base] = servers;
  for (const kind of ['created', 'again'] as const) {
    const byHand = quantile(times.get(base!)![kind], 0.5);
    for (const server of servers) {
      const ms = quantile(times.get(server)![kind], 0.5);
      console.log(`  ${kind}, ${server.name}: median ${ms.toFixed(0)} ms, ratio ${(byHand / ms).toFixed(2)}`);
    }
  }
}

/**
 * Merges of ten entities, each with an alias and 20 relations, into another one, beside the same by hand: statements
 * that move the rows, and nothing recorded.
 */
async function merges(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  token: string,
  path: string,
  { count }: Rounds,
): Promise<void> {
  const same = (round: string) => ({
    entities: Array.from({ length: 31 }, (_, n) => ({
      key: `${n}`,
      name: `${round} ${n}`,
      aliases: [`${round} alias ${n}`],
    })),
    // of the first ten, and the one that is left, to the last twenty
    relations: Array.from({ length: 220 }, (_, n) => ({
      source: { key: `${n % 11}` },
      target: { key: `${11 + Math.floor(n / 11)}` },
      relation_type: n % 2 === 0 ? 'knows' : `knows ${n % 11}`,
    })),
  });
  const times = new Map(servers.map((server) => [server, [] as number[]]));
  for (let round = 0; round <= count * 10; round++)
    for (const server of round % 2 ? [...servers].reverse() : servers) {
      const made = await call<{ entities: { entity_id: string }[] }>(
        product,
        token,
        'POST',
        `${path}/import`,
        same(`Merge ${round} of ${server.name}`),
      );
      const [id, ...merged_entity_ids] = made.entities.slice(0, 11).map(({ entity_id }) => entity_id);
      const start = performance.now();
      await call(server, token, 'POST', `${path}/${id}/merge`, { merged_entity_ids });
      if (round > 0) times.get(server)!.push(performance.now() - start);
    }
  console.log('\nmerge of ten entities with 20 relations each, one at a time');
  const byHand = quantile(times.get(servers[0]!)!, 0.5);
  for (const server of servers) {
    const ms = quantile(times.get(server)!, 0.5);
    console.log(`  ${server.name}: median ${ms.toFixed(1)} ms, ratio ${(byHand / ms).toFixed(2)}`);
  }
}

/** All servers must give the same answers, whatever the order of the fields, before they are compared. */
async function agree(servers: readonly ServerProcess[], token: string, path: string, ids: string[]): Promise<void> {
  for (const id of ids) {
    const [first, ...others] = await Promise.all(
      servers.map((server) => call<object>(server, token, 'POST', `${path}/${id}/traverse?depth=3`, {})),
    );
    for (const other of others) assert.deepEqual(other, first, `The servers do not answer the same around ${id}.`);
  }
}

/**
 * The latency of small requests, alone and while somebody traverses a hub again and again. It is compared with that of
 * the same requests while a server by hand, which is a process of its own, answers those traversals: what the hub costs
 * others who only share the database and the processors with it.
 */
async function beside(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  token: string,
  small: string,
  hub: Question,
  { count, seconds }: Rounds,
): Promise<void> {
  let alone: number[] = [];
  const shared = servers.map((server) => ({ server, latencies: [] as number[], hubs: [] as number[] }));
  const ask = async () => (await load(product, small, token, seconds, 8)).latenciesMs;
  for (let round = 0; round <= count; round++) {
    const quiet = await ask();
    if (round > 0) alone = alone.concat(quiet);
    for (const beside of shared) {
      const [busy, traversals] = await Promise.all([ask(), load(beside.server, hub, token, seconds, 1)]);
      if (round === 0) continue;
      beside.latencies = beside.latencies.concat(busy);
      beside.hubs = beside.hubs.concat(traversals.latenciesMs);
    }
  }
  const base = quantile(alone, 0.99);
  console.log(
    `\nsmall requests while a hub with ${HUB_RELATIONS} relations is traversed without a pause\n` +
      `  alone: p99 ${base.toFixed(1)} ms`,
  );
  for (const { server, latencies, hubs } of shared) {
    const [ms, hubMs] = [quantile(latencies, 0.99), quantile(hubs, 0.99)];
    console.log(
      `  traversed by ${server.name}: p99 ${ms.toFixed(1)} ms, ratio ${(ms / base).toFixed(2)}; ` +
        `a traversal ${hubMs.toFixed(0)} ms at the 99th percentile`,
    );
  }
}
