// own process: starts commands, which is slow from a large process
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SigningKeys } from '../../../src/access/signing-keys.ts';
import { ROOT_KEYS, startOwnApp, type TestApp } from '../../support/app.ts';
import { runScript } from '../../support/command.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Person, register } from '../../support/person.ts';
import { startS3 } from '../../support/s3-server.ts';
import { waitUntil } from '../../support/wait.ts';

const SECRET = 'the secret of all nodes - long enough';
const OTHER = 'another secret that is long enough too';

let base: string;
const stops: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  base = await mkdtemp(path.join(tmpdir(), 'nodes-'));
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await rm(base, { recursive: true, force: true });
});

const folder = (name: string) => path.join(base, name);

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  stops.push(() => database.drop());
  return database;
}

/** A node over a database; it ends with the file. */
async function start({ url }: Pick<TestDatabase, 'url'>, env: Record<string, string>): Promise<TestApp> {
  const node = await startOwnApp({ databaseUrl: url, env });
  stops.push(() => node.close());
  return node;
}

const readiness = async (node: TestApp) => {
  const answer = await node.server.inject('/readyz');
  const { checks } = answer.json<{ checks: Record<string, string> }>();
  return [answer.statusCode, checks.files];
};

function upload(node: TestApp, { home, headers }: Person, name: string) {
  const payload = new FormData();
  payload.set('name', name);
  payload.set('file', new Blob([`the bytes of ${name}`], { type: 'text/plain' }), `${name}.txt`);
  return node.server.inject({ method: 'POST', url: `${home}/namespaces/default/artifacts/upload`, headers, payload });
}

async function download(node: TestApp, { home, headers }: Person, artifactId: string) {
  const url = `${home}/namespaces/default/artifacts/${artifactId}/download`;
  const { download_url: link } = (await node.server.inject({ url, headers })).json<{ download_url: string }>();
  return node.server.inject(link.slice(new URL(link).origin.length));
}

const FOREIGN =
  'this node does not have the files of the service: set S3_BUCKET on all nodes, or give them one DATA_DIR/files ' +
  '(docs/operate/scale-out.md)';
const REFUSED = {
  error: 'SERVICE_UNAVAILABLE',
  status_code: 503,
  details: { retry_after: 30, reason: 'files_not_shared' },
};

describe('nodes with a folder of files each', () => {
  let first: TestApp;
  let second: TestApp;
  let ann: Person;
  let id: string;
  const keys = () => ({ KEYS_DIR: folder('keys') });

  beforeAll(async () => {
    const database = await newDatabase();
    first = await start(database, { DATA_DIR: folder('one'), ...keys() });
    second = await start(database, { DATA_DIR: folder('two'), ...keys() });
    ann = await register(first);
    const made = await upload(first, ann, 'first');
    expect(made.statusCode).toBe(201);
    id = made.json<{ artifact_id: string }>().artifact_id;
  });

  it('the one without the files says so, and refuses uploads and downloads; all else it answers', async () => {
    expect(await readiness(first)).toEqual([200, 'ok']);
    expect(await readiness(second)).toEqual([503, FOREIGN]);
    const refusals = [await upload(second, ann, 'lost'), await download(second, ann, id)];
    for (const refused of refusals) {
      expect([refused.statusCode, refused.json()]).toEqual([503, expect.objectContaining(REFUSED)]);
      expect(refused.headers['retry-after']).toBe('30');
    }
    const list = await second.server.inject({ url: `${ann.home}/namespaces/default/artifacts`, headers: ann.headers });
    expect([list.statusCode, list.body]).toEqual([200, expect.stringContaining(id)]);
  });

  it('a shared folder makes it ready without a restart', async () => {
    await mkdir(folder('two'), { recursive: true });
    await symlink(folder('one/files'), folder('two/files'));
    await waitUntil(async () => (await readiness(second))[0] === 200);
    expect((await upload(second, ann, 'second')).statusCode).toBe(201);
    expect((await download(second, ann, id)).body).toBe('the bytes of first');
  });

  it('files that went away are noticed, and a copy of them is the store as well', async () => {
    await cp(folder('one/files'), folder('copy'), { recursive: true });
    await rm(folder('one/files'), { recursive: true });
    await waitUntil(async () => (await readiness(first))[0] === 503);
    expect((await download(first, ann, id)).json()).toMatchObject(REFUSED);
    await cp(folder('copy'), folder('one/files'), { recursive: true });
    await waitUntil(async () => (await readiness(first))[0] === 200);
    expect((await download(first, ann, id)).body).toBe('the bytes of first');
  });

  it('`npm run adopt -- files` makes another store the one of the service, S3 as well', async () => {
    const s3 = await startS3();
    stops.push(() => s3.stop());
    const env = { DATA_DIR: folder('three'), ...keys(), ...s3.env };
    const third = await start(first.database, env);
    expect(await readiness(third)).toEqual([503, FOREIGN]);
    const adopted = await runScript('adopt', ['files'], { DATABASE_URL: first.database.url, ...env });
    expect([adopted.code, adopted.output]).toEqual([0, expect.stringContaining('The service has the store of this')]);
    await waitUntil(async () => (await readiness(third))[0] === 200);
    await waitUntil(async () => (await readiness(first))[0] === 503);
    expect((await upload(third, ann, 'third')).statusCode).toBe(201);
  });
});

describe('a new service with the store of another', () => {
  const CLAIMED =
    'the store of files belongs to another service, or to an earlier database: set another S3_BUCKET or DATA_DIR, ' +
    'or take it with `npm run adopt -- files` (docs/operate/scale-out.md)';

  it('does not take it by itself, and does once it is told to', async () => {
    const env = { DATA_DIR: folder('claimed') };
    const owner = await start(await newDatabase(), env);
    const ann = await register(owner);
    expect((await upload(owner, ann, 'owned')).statusCode).toBe(201);
    const database = await newDatabase();
    const other = await start(database, { ...env, KEYS_DIR: folder('other-keys') });
    expect(await readiness(other)).toEqual([503, CLAIMED]);
    expect((await upload(other, await register(other), 'mixed')).json()).toMatchObject(REFUSED);
    expect(await readiness(owner)).toEqual([200, 'ok']);
    const adopted = await runScript('adopt', ['files'], {
      DATABASE_URL: database.url,
      KEYS_DIR: folder('other-keys'),
      ...env,
    });
    expect(adopted.code).toBe(0);
    await waitUntil(async () => (await readiness(other))[0] === 200);
    await Promise.all([owner.close(), other.close()]);
  });

  it('a database that was moved takes the store that has its files', async () => {
    const database = await newDatabase();
    const env = { DATA_DIR: folder('moved') };
    const before = await start(database, env);
    expect((await upload(before, await register(before), 'kept')).statusCode).toBe(201);
    await before.database.pool.query(`delete from service_markers where name = 'files'`);
    const moved = await start(database, env);
    expect(await readiness(moved)).toEqual([200, 'ok']);
    await Promise.all([before.close(), moved.close()]);
  });
});

describe('the first start after an upgrade', () => {
  it('takes the store that has the files, and not one that has none of them', async () => {
    const database = await newDatabase();
    const before = await start(database, { DATA_DIR: folder('with') });
    expect((await upload(before, await register(before), 'old')).statusCode).toBe(201);
    // as an older version left it
    await before.database.pool.query('delete from service_markers');
    await rm(folder('with/files/service'), { recursive: true });
    const env = { KEYS_DIR: folder('with/keys') };
    const without = await start(database, { DATA_DIR: folder('without'), ...env });
    expect(await readiness(without)).toEqual([503, FOREIGN]);
    const again = await start(database, { DATA_DIR: folder('with'), ...env });
    expect(await readiness(again)).toEqual([200, 'ok']);
    expect((await readFile(folder('with/files/service/marker'), 'utf8')).trim()).toMatch(/^[\w-]{36}$/);
  });
});

describe('keys of nodes', () => {
  const env = (name: string, more: Record<string, string> = {}) => ({ DATA_DIR: folder(name), ...more });
  const page = '(docs/operate/keys.md)';

  it('a node with others does not start, and says which and what to do, but no value', async () => {
    const database = await newDatabase();
    await start(database, env('k1', { APP_SECRET: SECRET }));
    const shared = { KEYS_DIR: folder('k1/keys') };
    await expect(start(database, env('k2', { APP_SECRET: SECRET }))).rejects.toThrow(
      `This node has other signing keys in KEYS_DIR (${folder('k2/keys/jwt.json')}) than the service over this ` +
        'database. Give all nodes the same; if the service is to have new keys, run `npm run adopt -- keys` here and ' +
        `restart the other nodes ${page}.`,
    );
    await expect(start(database, env('k3', { APP_SECRET: OTHER, ...shared }))).rejects.toThrow(
      'This node has another APP_SECRET than the service over this database. Give all nodes the same; if the service ' +
        'is to have new keys, name the former one in FORMER_APP_SECRETS, or run `npm run adopt -- keys` here and ' +
        `restart the other nodes ${page}.`,
    );
    const rootKeys = `test:${Buffer.alloc(32, 7).toString('base64')}`;
    await expect(start(database, env('k4', { APP_SECRET: SECRET, ...shared, ROOT_KEYS: rootKeys }))).rejects.toThrow(
      "The root key 'test' of ROOT_KEYS cannot decrypt the data that this database has encrypted under this id: " +
        'it is a different key.',
    );
    // those that are the same start, and what was refused left nothing
    await start(database, env('k5', { APP_SECRET: SECRET, ...shared }));
    const { rows } = await start(database, env('k6', { APP_SECRET: SECRET, ...shared })).then(
      ({ database: { pool } }) => pool.query<{ value: string }>('select value from service_markers order by name'),
    );
    expect(rows).toHaveLength(3);
    for (const { value } of rows) expect(value).not.toContain(SECRET);
  });

  it('of nodes that start at once with different ones, one wins', async () => {
    const database = await newDatabase();
    const starts = await Promise.allSettled(['r1', 'r2', 'r3'].map((name) => start(database, env(name))));
    expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('a new APP_SECRET with the former one takes its place, and signing keys rotate', async () => {
    const database = await newDatabase();
    await start(database, env('n1', { APP_SECRET: SECRET }));
    const shared = { KEYS_DIR: folder('n1/keys') };
    await start(database, env('n1', { APP_SECRET: OTHER, FORMER_APP_SECRETS: SECRET, ...shared }));
    await expect(start(database, env('n1', { APP_SECRET: SECRET, ...shared }))).rejects.toThrow('another APP_SECRET');
    await mkdir(folder('stale'));
    await cp(folder('n1/keys/jwt.json'), folder('stale/jwt.json'));
    await SigningKeys.rotate(shared.KEYS_DIR);
    await start(database, env('n1', { APP_SECRET: OTHER, ...shared }));
    // a copy from before cannot read tokens that are signed by the new one
    await expect(start(database, env('n1', { APP_SECRET: OTHER, KEYS_DIR: folder('stale') }))).rejects.toThrow(
      'other signing keys in KEYS_DIR',
    );
  });

  it('`npm run doctor` tells of them, and `npm run adopt -- keys` makes them those of the service', async () => {
    const database = await newDatabase();
    await start(database, env('d1'));
    await mkdir(folder('d2/keys'), { recursive: true });
    await writeFile(folder('d2/keys/app.key'), `${OTHER}\n`);
    await SigningKeys.open(folder('d2/keys'));
    const settings = { DATABASE_URL: database.url, ROOT_KEYS, ...env('d2') };
    const lines = async () =>
      (await runScript('doctor', [], settings)).output.split('\n').filter((line) => line.slice(6).startsWith('nodes'));
    expect(await lines()).toEqual([
      expect.stringMatching(/^fail {2}nodes {7}This node has another APP_SECRET .* and other signing keys in KEYS_DIR/),
      expect.stringMatching(/^fail {2}nodes {7}The store of files of this node is not the one that the others have\./),
    ]);
    expect((await runScript('adopt', ['keys'], settings)).code).toBe(0);
    expect((await runScript('adopt', ['files'], settings)).code).toBe(0);
    expect(await lines()).toEqual(['ok    nodes       keys and files match the service']);
    expect(await readiness(await start(database, env('d2')))).toEqual([200, 'ok']);
    expect((await runScript('adopt', ['all'], settings)).output).toMatch(/^Usage: npm run adopt -- WHAT/);
  });
});
