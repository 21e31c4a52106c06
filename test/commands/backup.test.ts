// own process: starts processes, which is slow from a large process
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startOwnApp, type TestApp } from '../support/app.ts';
import { type Run, runCommand, startCommand } from '../support/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { FORM_TYPE, formOf } from '../support/form.ts';
import { type Person, register } from '../support/person.ts';
import { databaseChecksums } from '../support/rows.ts';
import { templateOf } from '../support/template.ts';
import { waitUntil } from '../support/wait.ts';
import { newSecret } from '../vault/secrets/new-secret.ts';

const PASSPHRASE = 'correct horse battery staple';
/** Keys in files, as they are by default. */
const OWN_KEYS = { ROOT_KEYS: '' };
const VALUE = { api_key: `it's\\ "quoted", {braced}` };
/** More than a piece. */
const CONTENT = 'large '.repeat(300_000);

let base: string;
let source: TestApp;
let ann: Person;
let secretId: string;
let artifactId: string;
/** What the backup said that tests restore. */
let made: Run;
const databases: TestDatabase[] = [];

beforeAll(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'backup-'));
  source = await startOwnApp({ ownDatabase: true, env: OWN_KEYS });
  ann = await register(source, { name: 'ann' });
  secretId = (await newSecret(ann, { value: VALUE })).secret_id;
  const uploaded = await source.server.inject({
    method: 'POST',
    url: `${ann.home}/namespaces/default/artifacts/upload`,
    headers: { ...ann.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['name', 'Überblick (1, "2") \\ {3}'],
      ['file', { content: CONTENT }],
    ]),
  });
  artifactId = uploaded.json<{ artifact_id: string }>().artifact_id;
  await ann.call('PUT', ann.home, { description: 'tab\there, line\nthere, NULL, ' });
  await source.jobsDone();
  made = await backup(['create', file()]);
  const changed = await readFile(file());
  changed[changed.length - 2_000]! ^= 1;
  await writeFile(file('changed'), changed);
});
afterAll(async () => {
  await source.close();
  for (const database of databases) await database.drop();
  await rm(base, { recursive: true, force: true });
});

const file = (name = 'good') => path.join(base, name);
const partialsOf = async (name: string) =>
  (await readdir(base))
    .filter((found) => found.startsWith(name) && found.endsWith('.partial'))
    .map((found) => file(found))
    .sort();
const settings = (env: Record<string, string> = {}) => ({
  DATABASE_URL: source.database.url,
  DATA_DIR: source.dataDir,
  BACKUP_PASSPHRASE: PASSPHRASE,
  ...env,
});
const backup = (args: readonly string[], env?: Record<string, string>) => runCommand('backup', args, settings(env));

/** An empty place. */
async function place(name: string, template = 'template0') {
  const database = await createTestDatabase({ template });
  databases.push(database);
  return {
    url: database.url,
    env: { DATABASE_URL: database.url, DATA_DIR: file(name), BACKUP_PASSPHRASE: PASSPHRASE },
  };
}

describe('a backup', () => {
  it('is made while the service runs, says what it has, and is whole', async () => {
    expect([made.code, made.output]).toEqual([
      0,
      expect.stringMatching(/good has \d+ rows, 1 files and the keys\.\n$/),
    ]);
    expect((await stat(file())).mode & 0o777).toBe(0o600);
    const text = (await readFile(file())).toString('latin1');
    const rootKey = (await readdir(source.keysDir)).find((name) => name.startsWith('root-'))!;
    expect(text).not.toContain((await readFile(path.join(source.keysDir, rootKey), 'utf8')).trim());
    expect(await backup(['verify', file()])).toEqual({
      code: 0,
      output: expect.stringMatching(
        /is complete: version .*, \d+ tables, 1 files, \d keys, which can be decrypted\.\n$/,
      ) as string,
    });
    expect(await backup(['create', file()])).toEqual({
      code: 1,
      output: `${file()} already exists. Give the backup another name.\n`,
    });
  });

  it('says loudly that it has no keys without a passphrase', async () => {
    const { code, output } = await backup(['create', file('keyless')], { BACKUP_PASSPHRASE: '' });
    expect([code, output]).toEqual([0, expect.stringContaining('THE KEYS ARE NOT IN THIS BACKUP')]);
    expect(output).toContain('and NO KEYS.');
  });

  it('that is killed half way leaves none, and the next one succeeds', async () => {
    // it waits for a table in the middle
    const blocker = new pg.Client({ connectionString: source.database.url });
    await blocker.connect();
    await blocker.query('begin; lock table secrets in access exclusive mode');
    const child = startCommand('backup', ['create', file('killed')], settings());
    const ended = new Promise((resolve) => child.once('close', resolve));
    await waitUntil(async () => (await partialsOf('killed')).length === 1);
    const [left] = await partialsOf('killed');
    await waitUntil(async () => (await readFile(left!, 'latin1')).includes('"kind":"rows"'));
    child.kill('SIGKILL');
    await ended;
    await blocker.end();
    expect(existsSync(file('killed'))).toBe(false);
    expect(await backup(['verify', left!])).toEqual({ code: 1, output: `${left} is truncated.\n` });
    // a leftover of a former version, which others may read
    await writeFile(file('killed.partial'), '', { mode: 0o644 });
    expect((await backup(['create', file('killed')])).code).toBe(0);
    expect((await stat(file('killed'))).mode & 0o777).toBe(0o600);
    expect(new Set(await partialsOf('killed'))).toEqual(new Set([file('killed.partial'), left]));
  });

  it('with a changed or a missing byte, or another passphrase, is not taken for whole', async () => {
    const bytes = await readFile(file());
    await writeFile(file('cut'), bytes.subarray(0, -100));
    await writeFile(file('other'), 'hello\n');
    for (const head of ['null', '3', '{}', '{"kind":"rows","bytes":-1}']) {
      await writeFile(file('headless'), `PLATFORM BACKUP 1\n${head}\n`);
      expect((await backup(['verify', file('headless')])).output).toBe(
        `${file('headless')} was changed: a part has no description.\n`,
      );
    }
    expect((await backup(['verify', file('changed')])).output).toMatch(
      /changed was changed: .* has a different checksum/,
    );
    expect((await backup(['verify', file('cut')])).output).toBe(`${file('cut')} is truncated.\n`);
    expect((await backup(['verify', file('other')])).output).toBe(
      `${file('other')} is not a backup of this service.\n`,
    );
    expect(await backup(['verify', file()], { BACKUP_PASSPHRASE: 'another passphrase' })).toEqual({
      code: 1,
      output: 'The keys of this backup cannot be decrypted with BACKUP_PASSPHRASE.\n',
    });
  });
});

describe('a restore', () => {
  it('into an empty place gives the same rows and answers: sign-in, secrets, files', async () => {
    const { env, url } = await place('restored');
    const restored = await runCommand('restore', [file()], env);
    expect([restored.code, restored.output]).toEqual([0, expect.stringContaining('is restored. Now run')]);
    const node = await startOwnApp({ databaseUrl: url, env: { DATA_DIR: env.DATA_DIR, ...OWN_KEYS } });
    try {
      const signedIn = await node.server.inject({
        method: 'POST',
        url: '/v1/auth/login',
        payload: { username: ann.username, password: ann.password },
      });
      expect(signedIn.statusCode).toBe(200);
      const headers = { authorization: `Bearer ${signedIn.json<{ access_token: string }>().access_token}` };
      const get = async (app: TestApp, at: string) => (await app.server.inject({ url: at, headers })).json<object>();
      for (const at of [
        ann.home,
        `/v1/orgs/${ann.orgId}/secrets/${secretId}`,
        `${ann.home}/namespaces/default/artifacts`,
      ])
        expect(await get(node, at)).toEqual((await ann.call('GET', at)).body);
      const secret = `/v1/orgs/${ann.orgId}/secrets/${secretId}?include_value=true`;
      expect(await get(node, secret)).toMatchObject({ value: VALUE });
      const at = `${ann.home}/namespaces/default/artifacts/${artifactId}/download`;
      const { download_url: link } = (await get(node, at)) as { download_url: string };
      const download = await node.server.inject({ url: new URL(link).pathname + new URL(link).search });
      const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
      expect(sha256(download.rawPayload)).toBe(sha256(CONTENT));
    } finally {
      await node.close();
    }
  });

  it('gives tables the very rows that they had', async () => {
    const { env, url } = await place('rows');
    await source.jobsDone();
    await backup(['create', file('still')]);
    const before = await databaseChecksums(source.database.pool);
    expect((await runCommand('restore', [file('still')], env)).code).toBe(0);
    const copy = new pg.Pool({ connectionString: url });
    try {
      const { events: _written, service_markers: _own, nodes: _ours, ...expected } = before;
      const { events: _none, service_markers: _later, nodes: _others, ...found } = await databaseChecksums(copy);
      expect(found).toEqual(expected);
    } finally {
      await copy.end();
    }
  });

  it('into a place without a database makes an embedded one, which can be backed up as well', async () => {
    const env = { DATABASE_URL: '', DATA_DIR: file('embedded'), KEYS_DIR: '' };
    const run = await runCommand('restore', [file()], settings(env));
    expect([run.code, run.output]).toEqual([0, expect.stringContaining('is restored. Now run')]);
    const again = await backup(['create', file('again')], env);
    const rows = (output: string) => / has (\d+) rows, (\d+) files and the keys/.exec(output)?.slice(1);
    expect(rows(again.output)).toEqual(rows(made.output));
  });

  it('refuses a place that is not empty, and a backup that is not whole, and changes nothing', async () => {
    const taken = await place('taken', templateOf());
    expect(await runCommand('restore', [file()], taken.env)).toEqual({
      code: 1,
      output: expect.stringMatching(
        /^The database has \d+ tables already\. Restore into a new database\.\n$/,
      ) as string,
    });
    const { env } = await place('broken');
    expect((await runCommand('restore', [file('changed')], env)).output).toContain('a different checksum');
    expect((await runCommand('restore', [file()], { ...env, BACKUP_PASSPHRASE: '' })).output).toBe(
      'Set BACKUP_PASSPHRASE to the passphrase of the backup: its keys are sealed with it.\n',
    );
    expect(await runCommand('restore', [file()], { ...env, DATA_DIR: source.dataDir })).toEqual({
      code: 1,
      output: expect.stringMatching(/^The file store already has .*\. Restore into an empty file store\.\n$/) as string,
    });
    // the keys come last, and there is no place for them
    const nowhere = await runCommand('restore', [file()], { ...env, KEYS_DIR: path.join(file(), 'below') });
    expect([nowhere.code, nowhere.output]).toEqual([1, expect.stringMatching(/ENOTDIR.*\n$/)]);
    const keys = path.join(base, 'volume');
    await mkdir(path.join(keys, 'lost+found'), { recursive: true });
    await writeFile(path.join(keys, 'app.key'), '');
    const withKeys = { ...env, KEYS_DIR: keys };
    expect((await runCommand('restore', [file()], withKeys)).output).toBe(
      `${keys} already has keys. Restore into another KEYS_DIR.\n`,
    );
    await rm(path.join(keys, 'app.key'));
    // the same place is still empty, and a volume has a folder of its own
    expect(await runCommand('restore', [file()], withKeys)).toMatchObject({ code: 0 });
  });

  it('of a newer version is refused in one sentence', async () => {
    const { pool } = source.database;
    await pool.query(`insert into _prisma_migrations (id, checksum, migration_name, finished_at)
      values ('newer', 'newer', '29991231235959_newer', now())`);
    expect((await backup(['create', file('newer')])).code).toBe(0);
    await pool.query(`delete from _prisma_migrations where id = 'newer'`);
    const { env } = await place('newer-place');
    expect((await runCommand('restore', [file('newer')], env)).output).toContain(
      'The database was migrated by a newer version of the service (29991231235959_newer)',
    );
  });
});
