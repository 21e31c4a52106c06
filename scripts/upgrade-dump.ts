// Writes a dump of the current schema, which `test/upgrade` upgrades from then on: `npm run upgrade:dump`. It starts
// the service on an empty database, seeds it through the API, records the answers of the API, and writes both to
// `test/upgrade/dumps/<newest migration>`. `npm run upgrade:dump -- DIR` does so with the checkout of another commit,
// in which `npm ci` has run.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { projectRoot } from '../src/paths.ts';
import { readMigrations } from '../src/platform/postgres/migrate.ts';
import { Client } from '../test/support/client.ts';
import { startService } from '../test/support/service.ts';
import { DUMPS, SERVICE } from '../test/upgrade/dumps.ts';
import { type Recording, record } from '../test/upgrade/record.ts';
import { dumpRows, tablesOf } from '../test/upgrade/rows.ts';
import { type Seeded, seed, seedPresence, text } from '../test/upgrade/seed.ts';
import { seedDirectory } from '../test/upgrade/seed-directory.ts';
import { seedFactors } from '../test/upgrade/seed-factors.ts';
import { seedGrants } from '../test/upgrade/seed-grants.ts';
import { seedSignIns } from '../test/upgrade/seed-sign-ins.ts';
import { seedVectors } from '../test/upgrade/seed-vectors.ts';
import { withScratchDatabase } from './scratch-database.ts';

const root = path.resolve(process.argv[2] ?? projectRoot);
execFileSync(process.execPath, [path.join(root, 'scripts', 'generate.mjs')], { cwd: root });
const migrations = readMigrations(path.join(root, 'prisma', 'migrations')).map(({ name }) => name);
const target = path.join(DUMPS, migrations.at(-1) ?? '');

await withScratchDatabase(async (url) => {
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    const answers = await askService(url, db);
    await sumActivity(db);
    mkdirSync(target, { recursive: true });
    writeFileSync(path.join(target, 'rows.sql'), await dumpRows(db));
    writeFileSync(path.join(target, 'answers.json'), `${JSON.stringify(answers, null, 1)}\n`);
  } finally {
    await db.end();
  }
});
console.log(`Wrote ${path.relative(process.cwd(), target)}.`);

/** The answers of the seeded service. When this returns, the service has written everything and stopped. */
async function askService(url: string, db: pg.Client): Promise<Recording> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'upgrade-'));
  const service = startService({ ...SERVICE, DATABASE_URL: url, DATA_DIR: dataDir }, { root });
  try {
    const anyone = new Client(await service.url());
    const tables = new Set((await tablesOf(db)).map(({ name }) => name));
    const seeded = await seed(anyone, tables, (id) =>
      db.query('update users set is_verified = true where id = $1', [id]),
    );
    if (tables.has('identity_links')) await seedSignIns(db, seeded.ids);
    if (tables.has('oauth_grants')) await seedGrants(db, seeded.ids);
    if (tables.has('scim_users')) await seedDirectory(db, seeded.ids);
    if (tables.has('passkeys')) await seedFactors(db, seeded.ids);
    if (tables.has('persisted_documents'))
      await db.query(`insert into persisted_documents (id, text) values ('me', '{ me { id } }')`);
    // one that was lost: the node itself leaves when it stops
    if (tables.has('nodes'))
      await db.query(`insert into nodes (id, host_name, version, started_at, worker_count, running_worker_count)
        values ('lost', 'lost', '0.1', now(), 1, 1)`);
    await sumActivity(db);
    const answers = await asAnn(anyone, seeded, tables);
    if (tables.has('artifact_chunk_vectors')) await seedVectors(db);
    return { writtenAt: new Date().toISOString(), migrations, seeded, ...answers };
  } finally {
    service.child.kill('SIGTERM');
    await service.exited();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Leaves the refresh token of the seed unused, for the test. */
async function asAnn(
  anyone: Client,
  { username, password, ...rest }: Seeded,
  tables: ReadonlySet<string>,
): Promise<Omit<Recording, 'writtenAt' | 'migrations' | 'seeded'>> {
  const { access_token } = await anyone.post('/v1/auth/login', { username, password });
  const ann = anyone.with(text({ access_token }, 'access_token'));
  const answers = await record(ann, { username, password, ...rest });
  if (tables.has('presences')) await seedPresence(ann, rest);
  return answers;
}

/** Adds all records to the sums, as if a few of one kind were many: so that months, days and hours are divided. */
async function sumActivity(db: pg.Client): Promise<void> {
  const { rows } = await db.query(`select 1 from pg_proc where proname = 'fold_activity' and pronargs = 2`);
  let isMore = rows.length > 0;
  while (isMore) {
    const folded = await db.query<{ more: boolean }>('select fold_activity(100000, 3) as more');
    isMore = folded.rows[0]!.more;
  }
}
