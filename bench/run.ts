// `npm run bench`: the façade against hand-written servers over the same database, in one run. Quote the ratios, not
// the rates. `BENCH_ONLY=hostile npm run bench`: only what hostile bodies, forms, sockets, searches and documents cost,
// and what they do to others; `bombs`: only what they and hostile files do to other requests; `graphql`: only
// `/graphql`; `instances`: only tool instances; `entities`: only the knowledge graph; `artifacts`: only artifacts;
// `writes`: only changes; `files`: only uploads and downloads; `uploads`: only the memory of large ones; `streams`:
// only event streams; `traces`: only what traces cost a request; `live` (also `npm run bench -- live`): only the stream
// of REST, in sizes of BENCH_IDLE, BENCH_STALLABLE and BENCH_EVENTS, of it the BENCH_PARTS `idle,stalled,writes`;
// `tool-calls`: only what calls providers of tools; `webhooks`: only what is sent to receivers; `search`: only queries;
// `activity`: only activity; `analytics`: only what it costs, both also with `BENCH_RECORDS` records; `nodes`: only a
// node of 1, 2 and 4 processes; `pairs`: only BENCH_PAIRS writes, each with a read of it, beside a late replica;
// `pooler`: only what a node costs that reaches the database through PgBouncer;
// `activity-growth`: only what activity costs with BENCH_SMALL and with BENCH_RECORDS records; `reads`: without growth,
// hostile documents and streams.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { withScratchDatabase } from '../scripts/scratch-database.ts';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { startS3 } from '../test/support/s3-server.ts';
import { type Account, register } from './api.ts';
import { activity, activityGrowth } from './cases/activity.ts';
import { analytics } from './cases/analytics.ts';
import { artifacts } from './cases/artifacts.ts';
import { bombs } from './cases/bombs.ts';
import { entities } from './cases/entities.ts';
import { files, uploadsAtOnce } from './cases/files.ts';
import { graphql } from './cases/graphql.ts';
import { hostileBodiesCost } from './cases/hostile-bodies.ts';
import { hostile } from './cases/hostile-documents.ts';
import { hostileForms } from './cases/hostile-forms.ts';
import { hostileSearches } from './cases/hostile-searches.ts';
import { hostileSockets } from './cases/hostile-sockets.ts';
import { instances } from './cases/instances.ts';
import { live } from './cases/live.ts';
import { models } from './cases/models.ts';
import { nodes } from './cases/nodes.ts';
import { pairs } from './cases/pairs.ts';
import { pooler } from './cases/pooler.ts';
import { search } from './cases/search.ts';
import { secrets } from './cases/secrets.ts';
import { type StreamServers, streams } from './cases/streams.ts';
import { tokens } from './cases/tokens.ts';
import { toolCalls } from './cases/tool-calls.ts';
import { TRACED, traces } from './cases/traces.ts';
import { webhooks } from './cases/webhooks.ts';
import { growth, SMALL, workspaces } from './cases/workspaces.ts';
import { writes } from './cases/writes.ts';
import type { Rounds } from './load.ts';
import { seedWorkspaces } from './seed.ts';
import { COLLECTING, ServerProcess } from './server-process.ts';

const rounds: Rounds = {
  count: Number(process.env.BENCH_ROUNDS ?? 5),
  seconds: Number(process.env.BENCH_SECONDS ?? 3),
};
/** Modules loaded shortly after the start count as memory of an idle process. */
const SETTLING_MS = 5_000;
const TSX = ['--import', 'tsx'];
const PRODUCT = ['dist/service/main.js'];
const BARE = ['bench/servers/streams.mjs'];
const YOGA = [...TSX, 'bench/servers/yoga.mjs'];
const only = process.env.BENCH_ONLY ?? process.argv[2];
const large = Number(process.env.BENCH_ROWS ?? 1_000_000);
const records = Number(process.env.BENCH_RECORDS ?? 10_000_000);
const fewer = Number(process.env.BENCH_SMALL ?? 100_000);

async function throughput(env: Record<string, string>): Promise<void> {
  if (only === 'nodes') return nodes(PRODUCT, env, env.DATABASE_URL!, rounds);
  if (only === 'pairs') return pairs(PRODUCT, env, Number(process.env.BENCH_PAIRS ?? 10_000));
  if (only === 'activity-growth') return grownActivity(env);
  const running: ServerProcess[] = [];
  const started = async (name: string, args: string[]) => {
    const server = await ServerProcess.start(name, args, env);
    running.push(server);
    return server;
  };
  try {
    // the product first: it creates the keys
    const product = await started('product', PRODUCT);
    const url = env.DATABASE_URL!;
    if (only === 'hostile') return await hostility(product, await register(product));
    if (only === 'webhooks') return await webhooks(product, await register(product), url);
    if (only === 'analytics') return await analytics(product, url, rounds);
    if (only === 'bombs') return await bombs(product, await register(product), rounds);
    if (only === 'uploads') return await freshUploads(env, product);
    if (only === 'traces') {
      const account = await register(product);
      await seedWorkspaces(url, account, SMALL);
      for (const [name, more] of TRACED) running.push(await ServerProcess.start(name, PRODUCT, { ...env, ...more }));
      return await traces(running, account, rounds);
    }
    if (only === 'pooler') {
      const account = await register(product);
      await seedWorkspaces(url, account, SMALL);
      return await pooler(PRODUCT, env, { direct: product, account }, rounds);
    }
    if (only === 'graphql') {
      const account = await register(product);
      await seedWorkspaces(url, account, SMALL);
      return await graphql([await started('yoga', YOGA), product], product, account, rounds);
    }
    const streamed = async () => {
      const bare = await started('bare streams', BARE);
      const account = await register(product);
      const fresh = async <T>(work: (servers: StreamServers) => Promise<T>): Promise<T> => {
        // what the statements of the benchmark emit is another node's for it
        const polling = only === 'live' ? { ...env, EVENT_POLL_MS: '10' } : env;
        const own = await ServerProcess.start('product', [...COLLECTING, ...PRODUCT], polling);
        const ownBare = await ServerProcess.start('bare streams', [...COLLECTING, ...BARE], env);
        await setTimeout(SETTLING_MS);
        try {
          return await work({ product: own, bare: ownBare });
        } finally {
          await own.stop();
          await ownBare.stop();
        }
      };
      const options = { product, bare, fresh, account, databaseUrl: url, dataDir: env.DATA_DIR! };
      if (only !== 'streams') await live(options);
      if (only !== 'live') await streams({ ...options, rounds: rounds.count });
    };
    if (only === 'streams' || only === 'live') return await streamed();
    const pg = await started('pg', [...TSX, 'bench/servers/pg.ts']);
    if (only === 'tool-calls') return await toolCalls([pg, product], product, await register(product), rounds);
    if (only === 'entities') return await entities([pg, product], product, await register(product), url, rounds);
    if (only === 'files') return await files([pg, product], product, await register(product), rounds);
    if (only === 'search') return await search([pg, product], product, await register(product), url, rounds);
    if (only === 'writes') return await writes([pg, product], product, await register(product), rounds);
    if (only === 'instances') return await instances([pg, product], product, await register(product), rounds);
    if (only === 'activity') {
      await activity([pg, product], await register(product), url, rounds);
      return await grownActivity(env);
    }
    if (only === 'artifacts') return await artifacts([pg, product], product, await register(product), url, rounds);
    const prisma = await started('prisma', [...TSX, 'bench/servers/prisma.ts']);
    await setTimeout(SETTLING_MS);
    console.log(
      `start: ${product.startMs.toFixed(0)} ms to listening, ` +
        `${product.residentMiB().toFixed(0)} MiB resident when idle ` +
        `(hand-written pg: ${pg.residentMiB().toFixed(0)} MiB)`,
    );
    console.log(`each: ${rounds.count} rounds of ${rounds.seconds} s, 32 connections`);
    const account = await register(product);
    await workspaces([pg, prisma, product], product, account, url, rounds);
    await graphql([await started('yoga', YOGA), product], product, account, rounds);
    await secrets([pg, product], product, account, rounds);
    await tokens([pg, product], product, account, rounds);
    await models([pg, product], product, account, rounds);
    await entities([pg, product], product, account, url, rounds);
    await instances([pg, product], product, account, rounds);
    await artifacts([pg, product], product, account, url, rounds);
    await search([pg, product], product, account, url, rounds);
    await activity([pg, product], await register(product), url, rounds);
    if (only === 'reads') return;
    await writes([pg, product], product, account, rounds);
    await files([pg, product], product, account, rounds);
    await freshUploads(env, product);
    await webhooks(product, account, url);
    await toolCalls([pg, product], product, account, rounds);
    await growth(product, account, url, large, rounds);
    await grownActivity(env);
    await hostility(product, account);
    await bombs(product, account, rounds);
    await streamed();
  } finally {
    for (const server of running) await server.stop();
  }
}

async function hostility(product: ServerProcess, account: Account): Promise<void> {
  await hostileBodiesCost(product, account);
  const attacker = await register(product);
  await hostileForms(product, [attacker, account], rounds);
  await hostileSockets(product, [attacker, account], rounds);
  await hostileSearches(product, [attacker, account], rounds);
  await hostile(product, account);
}

/** Two services, each with a database of its own that has records of activity. */
async function grownActivity(env: Record<string, string>): Promise<void> {
  const withRecords = async <T>(work: (of: { product: ServerProcess; url: string }) => Promise<T>): Promise<T> =>
    withScratchDatabase(async (url) => {
      const dir = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
      await migrate(url, migrationsDir);
      const product = await ServerProcess.start('product', PRODUCT, { ...env, DATABASE_URL: url, DATA_DIR: dir });
      try {
        return await work({ product, url });
      } finally {
        await product.stop();
        rmSync(dir, { recursive: true, force: true });
      }
    });
  await withRecords((small) =>
    withRecords((grown) => activityGrowth(small, grown, { few: fewer, many: records }, rounds)),
  );
}

/** Memory of large uploads to services that have done nothing before: with a folder, and with S3. */
async function freshUploads(env: Record<string, string>, product: ServerProcess): Promise<void> {
  const account = await register(product);
  const s3 = await startS3();
  try {
    for (const [store, more] of [
      ['a folder', {}],
      ['S3', s3.env],
    ] as const) {
      const own = await ServerProcess.start('product', PRODUCT, { ...env, ...more });
      await setTimeout(SETTLING_MS);
      try {
        await uploadsAtOnce(own, account, store);
      } finally {
        await own.stop();
      }
    }
  } finally {
    await s3.stop();
  }
}

const dataDir = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
process.chdir(projectRoot);
try {
  await withScratchDatabase(async (url) => {
    await migrate(url, migrationsDir);
    await throughput({
      DATABASE_URL: url,
      DATA_DIR: dataDir,
      PORT: '0',
      // providers of tools and receivers of webhooks; all services of one database agree on it, since each one sends
      OUTBOUND_ALLOW: '127.0.0.1',
      LOG_LEVEL: 'error',
      RATE_LIMIT_RPS: '0',
      MAX_SOCKETS_PER_USER: '100',
    });
  });
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
