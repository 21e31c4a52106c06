// own process: starts processes, which is slow from a large process
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DoctorFinding } from '../../src/commands/doctor/finding.ts';
import { version } from '../../src/paths.ts';
import { ROOT_KEYS, startOwnApp, type TestApp } from '../support/app.ts';
import { runCommand, runScript } from '../support/command.ts';
import { createTestDatabase } from '../support/database.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { type Person, register } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';
import { newSecret } from '../vault/secrets/new-secret.ts';

let app: TestApp;
let mail: MailServer;
let ann: Person;
beforeAll(async () => {
  app = await startOwnApp({ ownDatabase: true });
  mail = await startMailServer();
  ann = await register(app);
  await newSecret(ann);
});
afterAll(async () => {
  await mail.stop();
  await app.close();
});

const settings = (env: Record<string, string> = {}) => ({
  DATABASE_URL: app.database.url,
  DATA_DIR: app.dataDir,
  ROOT_KEYS,
  SMTP_URL: mail.url,
  ...env,
});

/** What `npm run doctor -- --json` finds. */
async function found(env: Record<string, string> = {}): Promise<{ code: number | null; findings: DoctorFinding[] }> {
  const { code, output } = await runCommand('doctor', ['--json'], settings(env));
  return { code, findings: JSON.parse(output) as DoctorFinding[] };
}

const notOk = (findings: readonly DoctorFinding[], ...checks: string[]) =>
  findings.filter(({ status, check }) => status !== 'ok' && checks.includes(check));

it('says one line for each check, and ends with 0, where nothing fails', async () => {
  const { code, output } = await runScript('doctor', [], settings());
  expect(output).not.toMatch(/^fail/m);
  expect(code).toBe(0);
  const lines = output.trim().split('\n');
  for (const line of lines) expect(line).toMatch(/^(ok {2}|warn) {2}\S/);
  expect(lines.map((line) => line.slice(6, 17).trim())).toEqual([
    'settings',
    'disk',
    'files',
    'key files',
    'mail',
    'dns',
    'database',
    'migrations',
    'schema',
    'clock',
    'root keys',
    'nodes',
    'heartbeats',
    'jobs',
    'events',
  ]);
  expect(lines).toContain('ok    nodes       keys and files match the service');
  expect(lines).toContain('ok    root keys   needed by the database: 1, all correct');
});

it('says which nodes run, and warns of mixed versions and of those that were lost or take no requests', async () => {
  const { pool } = app.database;
  const own = `${hostname()} ${version}`;
  const heard = async () => {
    const { code, findings } = await found();
    return [
      code,
      findings.filter(({ check }) => check === 'heartbeats').map(({ status, message }) => [status, message]),
    ];
  };
  await waitFor(async () => expect(await heard()).toEqual([0, [['ok', `run: ${own}`]]]));
  const add = `insert into nodes (id, host_name, version, started_at, last_seen_at, worker_count, running_worker_count,
    problem) values ($1, $2, $3, now() - interval '3 days', now() + $4::interval, 1, 1, $5)`;
  const lost = (host: string, version: string) => `${host} ${version}, last heard at \\d{4}-[\\d-]+T[\\d:.]+Z`;
  await pool.query(add, ['old', 'zzz-host', '0.0.9', '1 hour', 'the files are away']);
  await pool.query(add, ['lost', 'lost-host', '0.0.8', '-20 hours', null]);
  await pool.query(add, ['leaves', 'zzy-host', '0.0.9', '1 hour', 'the service is stopping']); // as planned
  // killed, and started again on a machine whose clock is behind that of the database
  await pool.query(add, ['back', hostname(), '0.0.7', '-20 hours', null]);
  await pool.query(`update nodes set started_at = now() - interval '20 hours 30 s' where version = $1`, [version]);
  await pool.query(add, ['gone', hostname(), '0.0.6', '-21 hours', null]); // only one of the two is running again
  try {
    expect(await heard()).toEqual([
      0,
      [
        ['ok', `run: ${own}, zzy-host 0.0.9, zzz-host 0.0.9`],
        ['warn', `Nodes of 2 versions run: 0.0.9 (zzy-host, zzz-host), ${version} (${hostname()}).`],
        ['warn', 'Takes no requests: zzz-host: the files are away.'],
        [
          'warn',
          expect.stringMatching(
            new RegExp(`^Fell silent without leaving: ${lost('lost-host', '0.0.8')}, ${lost(hostname(), '0.0.6')}\\.$`),
          ),
        ],
      ],
    ]);
  } finally {
    await pool.query(`delete from nodes where id in ('old', 'lost', 'leaves', 'back', 'gone')`);
  }
});

it('says of a database that is behind only that it is: a start makes the rest', async () => {
  const empty = await createTestDatabase({ template: 'template0' });
  try {
    const { code, findings } = await found({ DATABASE_URL: empty.url });
    expect(findings.filter(({ status }) => status === 'fail')).toEqual([]);
    expect(code).toBe(0);
    expect(notOk(findings, 'migrations')).toEqual([
      expect.objectContaining({ status: 'warn', remedy: 'Start the service: it applies them.' }),
    ]);
    const checks = findings.map(({ check }) => check);
    expect(checks.slice(checks.indexOf('database'))).toEqual(['database', 'migrations', 'clock']);
  } finally {
    await empty.drop();
  }
});

it('says what fails outside, with the remedy', async () => {
  const file = path.join(app.dataDir, 'a-file');
  await writeFile(file, '');
  const { code, findings } = await found({
    NODE_ENV: 'production',
    ROOT_KEYS: `test:${Buffer.alloc(32).toString('base64')}`,
    SMTP_URL: 'smtp://127.0.0.1:1',
    DATA_DIR: path.join(file, 'below'),
    KEYS_DIR: app.keysDir,
    CORS_ORIGINS: '*',
    OUTBOUND_DNS: '127.0.0.1:1',
  });
  expect(code).toBe(1);
  const status = Object.fromEntries(findings.map((one) => [one.check, one.status]));
  expect(status).toMatchObject({ files: 'fail', disk: 'fail', mail: 'fail', dns: 'fail', 'root keys': 'fail' });
  expect(notOk(findings, 'settings').map(({ message }) => message)).toEqual([
    'PUBLIC_URL is not set: links in mails point to this machine.',
    'CORS_ORIGINS is *: pages of any web site may call the service.',
  ]);
  expect(notOk(findings, 'root keys')[0]!.message).toBe(
    "The root key 'test' of ROOT_KEYS cannot decrypt the data that this database has encrypted under this id: " +
      'it is a different key.',
  );
  for (const { status: how, remedy } of findings) expect(remedy === null).toBe(how === 'ok');
});

it('names jobs that are stuck, migrations of others, lost columns, and who holds events back', async () => {
  const { pool } = app.database;
  const holder = new pg.Client({ connectionString: app.database.url, application_name: 'a report' });
  await holder.connect();
  await holder.query('begin; select pg_current_xact_id()');
  // the oldest of the server is named: transactions of other tests that began before it end first
  await waitFor(async () => {
    const { rows } = await holder.query(
      'select pg_snapshot_xmin(pg_current_snapshot()) = pg_current_xact_id() as oldest',
    );
    expect(rows).toEqual([{ oldest: true }]);
  });
  await ann.call('PUT', ann.home, { description: 'new' });
  await app.stop(); // its workers would take the job
  await pool.query(`update events set timestamp = clock_timestamp() - interval '1 minute'
    where xid >= pg_snapshot_xmin(pg_current_snapshot())`);
  await pool.query(`select jobs.add_job('mail', '{}'::json, max_attempts => 1)`);
  await pool.query(`update jobs._private_jobs set attempts = max_attempts where attempts = 0 and max_attempts = 1`);
  await pool.query(`insert into _prisma_migrations (id, checksum, migration_name, finished_at)
    values ('newer', 'newer', '29991231235959_newer', now())`);
  await pool.query('alter table search_settings rename column value to lost');
  try {
    const { findings } = await found();
    expect(notOk(findings, 'jobs', 'migrations', 'schema', 'events').map(({ message }) => message)).toEqual([
      expect.stringContaining('was migrated by a newer version of the service (29991231235959_newer)'),
      '1 columns are missing, search_settings.value.',
      '1 of the task mail were given up.',
      expect.stringMatching(/^\d+ events are held back for \d+ s by the session \d+ of a report\.$/),
    ]);
    expect(notOk(findings, 'events')[0]!.remedy).toMatch(/^select pg_terminate_backend\(\d+\)$/);
  } finally {
    await holder.end();
  }
});

it('says one thing of a database that it cannot reach, and of settings that are wrong', async () => {
  const { code, findings } = await found({ DATABASE_URL: 'postgres://127.0.0.1:1/none' });
  expect([code, findings.filter(({ status }) => status === 'fail')]).toEqual([
    1,
    [expect.objectContaining({ check: 'database', message: expect.stringContaining('ECONNREFUSED') as string })],
  ]);
  const wrong = await found({ PORT: 'x', DATABSE_URL: 'y' });
  expect([wrong.code, wrong.findings.map(({ message }) => message)]).toEqual([
    1,
    [
      "PORT must be an integer from 0 to 65535, not 'x'.",
      expect.stringContaining('DATABSE_URL is not a setting. Did you mean DATABASE_URL?'),
    ],
  ]);
});

it('says how it is used', async () => {
  const { code, output } = await runCommand('doctor', ['--xml'], settings());
  expect([code, output]).toEqual([1, expect.stringMatching(/^Usage: npm run doctor \[-- --json\]/)]);
});
