// `npm run bench`: the façade against hand-written servers over the same database, in one run. Quote the ratios, not the rates.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { withScratchDatabase } from '../scripts/scratch-database.ts';
import { migrate } from '../src/infra/migrate.ts';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { compare, load, median, type Sample } from './load.ts';
import { seedWorkspaces } from './seed.ts';
import { ServerProcess } from './server-process.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const seconds = Number(process.env.BENCH_SECONDS ?? 3);
const large = Number(process.env.BENCH_ROWS ?? 1_000_000);
const SMALL = 10_000;

interface Account {
  token: string;
  orgId: string;
  userId: string;
}

async function register(url: string): Promise<Account> {
  const name = `bench${Date.now().toString(36)}`;
  const response = await fetch(`${url}/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: `${name}@example.test`, username: name, password: `secret of ${name}` }),
  });
  const body = (await response.json()) as {
    access_token: string;
    user: { user_id: string; settings: { current_org_id: string } };
  };
  if (!response.ok) throw new Error(`registering failed: ${JSON.stringify(body)}`);
  return { token: body.access_token, orgId: body.user.settings.current_org_id, userId: body.user.user_id };
}

function print(title: string, samples: Map<string, Sample[]>): void {
  console.log(`\n${title}`);
  const base = samples.get('pg')!;
  for (const [name, list] of samples) {
    const ratios = list.map((sample, round) => sample.rps / base[round]!.rps);
    const cpu = list.map((sample, round) => sample.cpuMicros / base[round]!.cpuMicros);
    console.log(
      `  ${name.padEnd(8)} ${median(list.map((s) => s.rps))
        .toFixed(0)
        .padStart(
          6,
        )} requests/s  ratio ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)})` +
        `  CPU ${median(list.map((s) => s.cpuMicros))
          .toFixed(0)
          .padStart(
            5,
          )} us/request, ratio ${median(cpu).toFixed(2)}  p99 ${median(list.map((s) => s.p99Ms)).toFixed(0)} ms`,
    );
  }
  const prisma = samples.get('prisma')!;
  const product = samples.get('product')!;
  console.log(
    `  product / prisma: ${median(product.map((sample, round) => sample.rps / prisma[round]!.rps)).toFixed(2)} of its requests/s`,
  );
}

async function throughput(env: Record<string, string>): Promise<void> {
  const tsx = ['--import', 'tsx'];
  const servers: ServerProcess[] = [];
  try {
    servers.push(await ServerProcess.start('pg', [...tsx, 'bench/servers/pg.ts'], env));
    servers.push(await ServerProcess.start('prisma', [...tsx, 'bench/servers/prisma.ts'], env));
    const product = await ServerProcess.start('product', ['dist/src/main.js'], env);
    servers.push(product);
    console.log(
      `start: ${product.startMs.toFixed(0)} ms to listening, ${product.residentMiB().toFixed(0)} MiB resident when idle (hand-written pg: ${servers[0]!.residentMiB().toFixed(0)} MiB)`,
    );
    const account = await register(product.url);
    await seedWorkspaces(env.DATABASE_URL!, account, SMALL);
    const list = `/v1/orgs/${account.orgId}/workspaces`;
    const first = (await (
      await fetch(`${product.url}${list}`, { headers: { authorization: `Bearer ${account.token}` } })
    ).json()) as { workspaces: { workspace_id: string }[] };
    print(
      `list of 50 workspaces (${rounds} rounds of ${seconds} s, 32 connections)`,
      await compare(servers, list, account.token, rounds, seconds),
    );
    print(
      'get one workspace',
      await compare(servers, `${list}/${first.workspaces[0]!.workspace_id}`, account.token, rounds, seconds),
    );
    await growth(product, account, list, env.DATABASE_URL!);
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** What a page costs at 10,000 and at many rows in one tenant: the first one, and one in the middle. */
async function growth(product: ServerProcess, account: Account, list: string, databaseUrl: string): Promise<void> {
  const big = await register(product.url);
  await seedWorkspaces(databaseUrl, big, large);
  const bigList = `/v1/orgs/${big.orgId}/workspaces`;
  const cases = [
    { name: 'first page', small: list, big: bigList },
    {
      name: 'middle page',
      small: await middleOf(product, account, list, SMALL),
      big: await middleOf(product, big, bigList, large),
    },
  ];
  console.log(`\ngrowth: a page of 50 with its total at ${SMALL} and at ${large} rows in one tenant`);
  for (const { name, small, big: path } of cases) {
    const ratios: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const a = await load(product, small, account.token, seconds);
      const b = await load(product, path, big.token, seconds);
      if (round > 0) ratios.push(a.rps / b.rps);
    }
    console.log(
      `  ${name}: a page of the large tenant costs ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}) times one of the small tenant`,
    );
  }
}

/** The list's URL with the cursor of its middle, walked to in pages of 200. */
async function middleOf(product: ServerProcess, account: Account, list: string, count: number): Promise<string> {
  let cursor: string | null = null;
  for (let seen = 0; seen < count / 2; seen += 200) {
    const query: string = cursor ? `?limit=200&cursor=${cursor}` : '?limit=200';
    const page = (await (
      await fetch(product.url + list + query, { headers: { authorization: `Bearer ${account.token}` } })
    ).json()) as { next_cursor: string };
    cursor = page.next_cursor;
  }
  return `${list}?cursor=${cursor}`;
}

const dataDir = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
process.chdir(projectRoot);
try {
  await withScratchDatabase(async (url) => {
    await migrate(url, migrationsDir);
    await throughput({ DATABASE_URL: url, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'error', RATE_LIMIT_RPS: '0' });
  });
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
