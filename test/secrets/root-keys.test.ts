import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { projectRoot } from '../../src/paths.ts';
import { RootKeys } from '../../src/platform/keys/root-keys.ts';
import { openDatabase } from '../../src/platform/postgres/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { PASSWORD } from '../support/person.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { type Service, startService } from '../support/service.ts';
import { secretBody } from './new-secret.ts';

let base: string;
let keysDir: string;
let database: TestDatabase;
let sql: pg.Client;
const services = new Set<Service>();

beforeEach(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'vault-'));
  keysDir = path.join(base, 'data', 'keys');
  database = await createTestDatabase();
  sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  services.clear();
  await sql.end();
  await database.drop();
  await rm(base, { recursive: true, force: true });
});

const environment = (env: Record<string, string> = {}) => ({
  DATA_DIR: path.join(base, 'data'),
  DATABASE_URL: database.url,
  RATE_LIMIT_RPS: '0',
  ...env,
});

function start(env: Record<string, string> = {}): Service {
  const service = startService(environment(env));
  services.add(service);
  return service;
}

async function stop(service: Service): Promise<void> {
  service.child.kill('SIGTERM');
  expect(await service.exited()).toBe(0);
}

/** What a start says that must fail. */
async function refusal(env: Record<string, string> = {}): Promise<string> {
  const service = start(env);
  expect(await service.exited()).toBe(1);
  return service.output().trim();
}

/** What a start does about the root keys, without a process. */
async function openKeys(env: Record<string, string> = {}): Promise<RootKeys> {
  const opened = openDatabase({ url: database.url, poolSize: 1, logger: quietLogger });
  try {
    return await RootKeys.open(loadConfig(environment(env)), opened);
  } finally {
    await opened.close();
  }
}

interface Run {
  code: number | null;
  output: string;
}

function spawnVault(command: string, env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', path.join(projectRoot, 'scripts', 'vault.ts'), command], {
    cwd: projectRoot,
    env: { PATH: process.env.PATH, ...environment(env) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** `npm run vault -- <command>`, to its end. */
async function vault(command: string, env: Record<string, string> = {}): Promise<Run> {
  const child = spawnVault(command, env);
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  await once(child, 'close');
  return { code: child.exitCode, output: output.trim() };
}

/** An account of a running service, and its requests. */
async function signUp(url: string) {
  const json = { 'content-type': 'application/json' };
  const username = `u${randomBytes(4).toString('hex')}`;
  const body = JSON.stringify({ username, email: `${username}@example.test`, password: PASSWORD });
  const answer = await fetch(`${url}/v1/auth/register`, { method: 'POST', headers: json, body });
  const { access_token, user } = (await answer.json()) as {
    access_token: string;
    user: { settings: { current_org_id: string } };
  };
  const secrets = `${url}/v1/orgs/${user.settings.current_org_id}/secrets`;
  const headers = { ...json, authorization: `Bearer ${access_token}` };
  return {
    orgId: user.settings.current_org_id,
    async create(value: object): Promise<string> {
      const made = await fetch(secrets, { method: 'POST', headers, body: JSON.stringify(secretBody({ value })) });
      expect(made.status).toBe(201);
      return ((await made.json()) as { secret_id: string }).secret_id;
    },
    async reveal(id: string): Promise<unknown> {
      const read = await fetch(`${secrets}/${id}?include_value=true`, { headers });
      return read.status === 200 ? ((await read.json()) as { value: unknown }).value : read.status;
    },
    async rotate(id: string, value: object): Promise<number> {
      return (await fetch(`${secrets}/${id}/rotate`, { method: 'POST', headers, body: JSON.stringify({ value }) }))
        .status;
    },
  };
}

const keyFiles = async () => (await readdir(keysDir)).filter((name) => name.startsWith('root-')).sort();
const idOf = (file: string) => file.slice('root-'.length, -'.key'.length);
const rootKeysInUse = async () =>
  (
    await sql.query<{ id: string; n: number }>(
      `select r.id, count(s.id)::int as n from root_keys r left join secrets s on s.root_key_id = r.id
       group by 1 order by 1`,
    )
  ).rows.map(({ id, n }) => [id, n]);
const key = () => randomBytes(32).toString('base64');

describe('a start', () => {
  it('makes a root key once, readable by its owner alone, and starts with it again', async () => {
    const first = start();
    const ann = await signUp(await first.url());
    await ann.create({ k: 1 });
    await stop(first);
    const files = await keyFiles();
    expect(files).toEqual([expect.stringMatching(/^root-rk_[0-9A-Z]{26}\.key$/)]);
    expect((await stat(path.join(keysDir, files[0]!))).mode & 0o777).toBe(0o600);
    expect(await rootKeysInUse()).toEqual([[idOf(files[0]!), 1]]);
    const again = start();
    await again.url();
    expect(await keyFiles()).toEqual(files);
  }, 60_000);

  it('with a missing, another or an unreadable key is refused in one sentence, and makes no new key', async () => {
    const first = start();
    await (await signUp(await first.url())).create({ k: 1 });
    await stop(first);
    const [file] = (await keyFiles()) as [string];
    const whole = await readFile(path.join(keysDir, file), 'utf8');

    await rm(path.join(keysDir, file));
    expect(await refusal()).toBe(
      `The service could not start. Secrets of this database are sealed with the root key '${idOf(file)}', ` +
        `which this service does not have. Put the files root-<id>.key back into ${keysDir}.`,
    );
    expect(await keyFiles()).toEqual([]);
    // the other ways to be wrong, without a process each
    await expect(openKeys({ ROOT_KEYS: `other:${key()}` })).rejects.toThrow(
      `Secrets of this database are sealed with the root key '${idOf(file)}', ` +
        'which this service does not have. Name them in ROOT_KEYS.',
    );
    await writeFile(path.join(keysDir, file), randomBytes(32).toString('base64url'));
    await expect(openKeys()).rejects.toThrow(
      `The root key '${idOf(file)}' of ${keysDir} cannot open what this database has sealed under that id: ` +
        'it is another key.',
    );
    await expect(openKeys({ ROOT_KEYS: `${idOf(file)}:${key()}` })).rejects.toThrow(
      `The root key '${idOf(file)}' of ROOT_KEYS cannot open what this database has sealed under that id: ` +
        'it is another key.',
    );
    await writeFile(path.join(keysDir, file), whole.slice(0, 20));
    await expect(openKeys()).rejects.toThrow(
      `The file ${path.join(keysDir, file)} holds no root key: 32 bytes as base64url.`,
    );
    await rm(path.join(keysDir, file));
    // what a file holds works in the list as well
    const moved = start({ ROOT_KEYS: `new:${key()}, ${idOf(file)}:${whole.trim()}` });
    await moved.url();
  }, 120_000);

  it('of nodes with different keys at once: one wins and starts again, the others leave no trace', async () => {
    const folders = ['a', 'b', 'c', 'd'].map((name) => ({ KEYS_DIR: path.join(base, name) }));
    const starts = await Promise.allSettled(folders.map(openKeys));
    const won = starts.findIndex(({ status }) => status === 'fulfilled');
    expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const [[id]] = (await rootKeysInUse()) as [[string]];
    expect(await rootKeysInUse()).toEqual([[id, 0]]);
    for (const [index, start] of starts.entries())
      if (start.status === 'rejected')
        expect(String(start.reason)).toBe(
          `Error: Secrets of this database are sealed with the root key '${id}', ` +
            `which this service does not have. Put the files root-<id>.key back into ${folders[index]!.KEYS_DIR}.`,
        );
    expect((await openKeys(folders[won])).newest.id).toBe(id);
    await expect(openKeys(folders[(won + 1) % 4])).rejects.toThrow(
      `root key '${id}', which this service does not have`,
    );
  }, 30_000);

  it('of nodes with one folder of keys at the same time makes one key', async () => {
    const opened = await Promise.all([1, 2, 3, 4].map(() => openKeys()));
    const [file] = await keyFiles();
    expect(opened.map(({ newest }) => newest.id)).toEqual(Array(4).fill(idOf(file!)));
    expect(await keyFiles()).toHaveLength(1);
    expect(await rootKeysInUse()).toEqual([[idOf(file!), 0]]);
  }, 30_000);

  it('with unusable ROOT_KEYS is refused, and the sentence repeats nothing of them', async () => {
    const sentence =
      'ROOT_KEYS must be keys like id:key between commas, each key 32 bytes in base64 or base64url, each id once.';
    expect(await refusal({ ROOT_KEYS: 'hunter2' })).toBe(sentence);
    for (const ROOT_KEYS of [
      `a:${key().slice(4)}`,
      `a:${key()},a:${key()}`,
      `a:${key()},`,
      `a:${key()}x`,
      `:${key()}`,
      `a b:${key()}`,
    ])
      expect(() => loadConfig({ ROOT_KEYS }), ROOT_KEYS).toThrow(sentence);
    const [one, two] = [randomBytes(32), randomBytes(32)];
    const given = `one:${one.toString('base64')}, two:${two.toString('base64url')}`;
    expect(loadConfig({ ROOT_KEYS: given }).rootKeys).toEqual([
      { id: 'one', key: one },
      { id: 'two', key: two },
    ]);
  }, 30_000);
});

/** Copies a secret many times, as the service would have sealed them: with the service's own code. */
async function fill(count: number, env: Record<string, string> = {}): Promise<void> {
  const script = `
    import { loadConfig } from ${JSON.stringify(path.join(projectRoot, 'src/config.ts'))};
    import { openDatabase } from ${JSON.stringify(path.join(projectRoot, 'src/platform/postgres/database.ts'))};
    import { RootKeys } from ${JSON.stringify(path.join(projectRoot, 'src/platform/keys/root-keys.ts'))};
    import { newId } from ${JSON.stringify(path.join(projectRoot, 'src/core/ids.ts'))};
    import { createLogger } from ${JSON.stringify(path.join(projectRoot, 'src/platform/logger.ts'))};
    import { newDataKey, sealValue, wrapKey } from ${JSON.stringify(path.join(projectRoot, 'src/secrets/envelope.ts'))};
    const config = loadConfig();
    const { prisma, close } = openDatabase({ url: config.databaseUrl, poolSize: 1, logger: createLogger(config) });
    const root = RootKeys.unchecked(config).newest;
    const { orgId } = await prisma.secret.findFirstOrThrow();
    const made = Array.from({ length: ${count} }, (_, n) => ({ orgId, id: newId('secret'), n, dataKey: newDataKey() }));
    await prisma.secret.createMany({ data: made.map(({ id, n, dataKey }) => (
      { id, orgId, name: 'filled-' + n, secretType: 'token', rootKeyId: root.id,
        wrappedKey: wrapKey(root, { orgId, id }, dataKey) })) });
    await prisma.secretVersion.createMany({ data: made.map(({ id, n, dataKey }) => (
      { secretId: id, version: 1, ciphertext: sealValue(dataKey, { orgId, id }, 1, { n }) })) });
    await close();`;
  const file = path.join(base, 'fill.mts');
  await writeFile(file, script);
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    cwd: projectRoot,
    env: { PATH: process.env.PATH, ...environment(env) },
    stdio: 'inherit',
  });
  await once(child, 'close');
  expect(child.exitCode).toBe(0);
}

describe('npm run vault', () => {
  it('moves every secret to a new key while the service reads and writes; the old key can then go', async () => {
    const service = start();
    const ann = await signUp(await service.url());
    const ids = await Promise.all(Array.from({ length: 10 }, (_, n) => ann.create({ n })));
    await fill(500);
    const [old] = (await keyFiles()) as [string];

    let isOver = false;
    const outcomes: unknown[] = [];
    const readers = [0, 1, 2].map(async (offset) => {
      for (let turn = offset; !isOver; turn++) {
        const n = turn % ids.length;
        const value = await ann.reveal(ids[n]!);
        if (JSON.stringify(value) !== JSON.stringify({ n })) outcomes.push(value);
      }
    });
    const writer = (async () => {
      for (let n = 0; !isOver; n++) {
        const id = await ann.create({ late: n });
        if ((await ann.rotate(id, { late: -n })) !== 200) outcomes.push('rotate');
      }
    })();
    const made = await vault('new-key');
    expect(made).toMatchObject({ code: 0, output: expect.stringContaining("The root key 'rk_") });
    const fresh = (await keyFiles()).at(-1)!;
    expect(fresh > old).toBe(true);
    const moved = await vault('rewrap');
    isOver = true;
    await Promise.all([...readers, writer]);
    expect(outcomes).toEqual([]);
    expect(moved.output).toContain(`the root key is '${idOf(fresh)}'.`);
    expect(moved.output).toContain(`Nothing needs the root key '${idOf(old)}' any more: it can be taken away.`);
    expect(moved.code).toBe(0);
    const { rows } = await sql.query<{ n: number }>('select count(*)::int as n from secrets');
    expect(await rootKeysInUse()).toEqual([[idOf(fresh), rows[0]!.n]]);

    await rm(path.join(keysDir, old));
    expect(await ann.reveal(ids[0]!)).toEqual({ n: 0 });
    expect(await vault('doctor')).toEqual({
      code: 0,
      output: expect.stringMatching(/^\d+ secrets with \d+ values: all open\.$/),
    });
    await stop(service);
    const again = start();
    await again.url();
  }, 180_000);

  it('goes on after a kill -9 where it was; nothing is lost', async () => {
    const service = start();
    const ann = await signUp(await service.url());
    const id = await ann.create({ k: 'v' });
    await fill(3_000);
    const [old] = (await keyFiles()) as [string];
    await vault('new-key');
    const fresh = (await keyFiles()).at(-1)!;
    const child = spawnVault('rewrap');
    await once(child.stdout!, 'data'); // the first line of its progress
    child.kill('SIGKILL');
    await once(child, 'close');
    const halfway = new Map((await rootKeysInUse()) as [string, number][]);
    expect(halfway.get(idOf(old))).toBeGreaterThan(0);
    expect(halfway.get(idOf(fresh))).toBeGreaterThan(0);
    expect(await ann.reveal(id)).toEqual({ k: 'v' });
    const rest = halfway.get(idOf(old))!;
    const resumed = await vault('rewrap');
    expect(resumed.code).toBe(0);
    expect(resumed.output).toContain(`${rest} of ${rest}`);
    expect(await rootKeysInUse()).toEqual([[idOf(fresh), 3_001]]);
    expect(await vault('doctor')).toEqual({ code: 0, output: '3001 secrets with 3001 values: all open.' });
    const idle = await vault('rewrap');
    expect(idle).toEqual({ code: 0, output: `0 secrets are newly wrapped; the root key is '${idOf(fresh)}'.` });
  }, 180_000);

  it('a node that still wraps with the older key keeps working, and its key is not taken from it', async () => {
    const [one, two] = [key(), key()];
    const service = start({ ROOT_KEYS: `one:${one},two:${two}` });
    const ann = await signUp(await service.url());
    await ann.create({ k: 1 });
    const ahead = { ROOT_KEYS: `two:${two},one:${one}` };
    expect(await vault('rewrap', ahead)).toMatchObject({
      code: 0,
      output: expect.stringContaining("root key 'one' any more"),
    });
    expect(await rootKeysInUse()).toEqual([['two', 1]]);
    const id = await ann.create({ k: 2 });
    expect(await ann.reveal(id)).toEqual({ k: 2 });
    expect(await rootKeysInUse()).toEqual([
      ['one', 1],
      ['two', 1],
    ]);
    expect(await refusal({ ROOT_KEYS: `two:${two}` })).toContain("root key 'one', which this service does not have");
    expect(await vault('new-key', ahead)).toMatchObject({
      code: 1,
      output: expect.stringContaining('ROOT_KEYS is set'),
    });
  }, 120_000);

  it('doctor lists what does not open, and nothing of a value', async () => {
    const service = start();
    const ann = await signUp(await service.url());
    const [a, b, c, d] = (await Promise.all(['a', 'b', 'c', 'd'].map((k) => ann.create({ marker: `plain-${k}` })))) as [
      string,
      string,
      string,
      string,
    ];
    await ann.rotate(a, { marker: 'plain-a2' });
    await sql.query(
      `update secret_versions set ciphertext = set_bit(ciphertext, 0, 1 - get_bit(ciphertext, 0))
       where (secret_id, version) = ($1, 1)`,
      [a],
    );
    await sql.query('update secrets set wrapped_key = (select wrapped_key from secrets where id = $2) where id = $1', [
      b,
      d,
    ]);
    await sql.query('delete from secret_versions where secret_id = $1', [c]);
    await stop(service);
    const found = await vault('doctor');
    expect(found.code).toBe(1);
    const root = idOf((await keyFiles())[0]!);
    expect(found.output.split('\n').sort()).toEqual(
      [
        `${a} ${ann.orgId} version 1: does not open with the data key`,
        `${b} ${ann.orgId} data key: does not open with the root key '${root}'`,
        `${c} ${ann.orgId} version 1: has no ciphertext`,
        '4 secrets with 4 values: 3 findings.',
      ].sort(),
    );
    expect(found.output).not.toContain('plain-');
    await rm(path.join(keysDir, `root-${root}.key`));
    const lost = await vault('doctor');
    expect(lost.code).toBe(1);
    expect(lost.output).toContain(`${d} ${ann.orgId} data key: is wrapped by the root key '${root}', which is missing`);
  }, 120_000);

  it('works on the embedded database, beside a running service and without one', async () => {
    const embedded = { DATABASE_URL: '' };
    expect(await vault('doctor', embedded)).toMatchObject({
      code: 1,
      output: expect.stringContaining('There is no database in'),
    });
    const service = start(embedded);
    await (await signUp(await service.url())).create({ k: 1 });
    expect(await vault('doctor', embedded)).toEqual({ code: 0, output: '1 secrets with 1 values: all open.' });
    await stop(service);
    expect((await vault('new-key', embedded)).code).toBe(0);
    expect(await vault('rewrap', embedded)).toMatchObject({
      code: 0,
      output: expect.stringContaining('1 secret is newly wrapped'),
    });
    // the database alone is of no use
    expect(await vault('doctor', { ...embedded, KEYS_DIR: path.join(base, 'no-keys') })).toMatchObject({
      code: 1,
      output: expect.stringContaining('which is missing'),
    });
  }, 120_000);

  it('says how it is used', async () => {
    expect(await vault('polish')).toMatchObject({
      code: 1,
      output: expect.stringContaining('Usage: npm run vault -- COMMAND'),
    });
  }, 30_000);
});
