// own process: starts processes, which is slow from a large process
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase } from './support/database.ts';
import { freePort } from './support/free-port.ts';
import { isRunning } from './support/is-running.ts';
import { PASSWORD } from './support/person.ts';
import { isRefused } from './support/refused.ts';
import { type Service, type ServiceOptions, startService } from './support/service.ts';
import { openAcknowledged, openEvents } from './support/sockets.ts';
import { waitFor, waitUntil } from './support/wait.ts';

// processes start here, with databases of their own

let base: string;
const services = new Set<Service>();

async function begin(): Promise<void> {
  base = await mkdtemp(path.join(tmpdir(), 'main-'));
}

/** Ends all services, with their databases. */
async function end(): Promise<void> {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  services.clear();
  await waitFor(async () => expect(await databasePid().then(isRunning)).toBe(false));
  await rm(base, { recursive: true, force: true });
}

function start(env: Record<string, string> = {}, options: ServiceOptions = {}): Service {
  const service = startService({ DATA_DIR: path.join(base, 'data'), ...env }, options);
  services.add(service);
  return service;
}

async function databasePid(): Promise<number | undefined> {
  const file = path.join(base, 'data', 'postgres', 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => undefined); // not there: no database runs
  return text === undefined ? undefined : Number(text.split('\n')[0]);
}

const isHealthy = async (url: string): Promise<boolean> => (await fetch(`${url}/healthz`)).ok;

const register = (url: string, username: string): Promise<Response> =>
  fetch(`${url}/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, email: `${username}@example.test`, password: PASSWORD }),
  });

async function registered(
  url: string,
  username: string,
): Promise<{ token: string; orgId: string; workspaceId: string }> {
  const { access_token, user } = (await (await register(url, username)).json()) as {
    access_token: string;
    user: { default_workspace_id: string; settings: { current_org_id: string } };
  };
  return { token: access_token, orgId: user.settings.current_org_id, workspaceId: user.default_workspace_id };
}

async function waitingForLocks(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*)::int as n from pg_locks where not granted
      and database = (select oid from pg_database where datname = current_database())`,
  );
  return rows[0]!.n;
}

// making its database is most of the work of such a start: one folder goes through all of this
describe('the process with a database of its own', () => {
  let service: Service;
  let url: string;
  beforeAll(async () => {
    await begin();
    service = start();
    url = await service.url();
  });
  afterAll(end);

  it('starts from nothing, prints its URLs and answers', async () => {
    expect(service.output()).toContain(`GraphQL    ${url}/graphql`);
    const told = ['creating a database', 'loading the service', 'migrating the database', 'preparing the routes'];
    expect(service.output()).toMatch(new RegExp(`^[0-9:.]+ ${told.join('(?:.|\\n)*\\n[0-9:.]+ ')}`));
    expect(service.output()).toContain(`Reference  ${url}/docs/api\n  Guides     ${url}/docs/`);
    expect(await isHealthy(url)).toBe(true);
  });

  it('refuses to share a data folder with a running service, and leaves that one alone', async () => {
    const second = start();
    expect(await second.exited()).toBe(1);
    expect(second.output()).toContain('is in use by another service that is running');
    expect(await isHealthy(url)).toBe(true);
  });

  it('goes on after its database was killed', async () => {
    process.kill((await databasePid()) ?? 0, 'SIGKILL');
    await waitFor(() => expect(service.output()).toContain('the embedded PostgreSQL runs again'));
    await waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
  });

  it('comes up again after kill -9', async () => {
    service.child.kill('SIGKILL');
    await service.exited();
    service = start();
    url = await service.url();
    expect(await isHealthy(url)).toBe(true);
  });

  it('on SIGTERM stops with 0 and stops its database', async () => {
    const pid = await databasePid();
    expect(isRunning(pid)).toBe(true);
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    expect(isRunning(pid)).toBe(false);
    expect(service.output()).not.toMatch(/ (WARN|ERROR|FATAL) /);
  });
});

describe('the process with a database of its own, stopped after its first start', () => {
  beforeAll(begin);
  afterAll(end);

  it('logs JSON from the first byte to the last one, and no warning', async () => {
    const service = start({ LOG_FORMAT: 'json', NODE_ENV: 'production' });
    await waitUntil(() => /"msg":"ready"/.test(service.output()));
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    const lines = service
      .output()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { level: string; msg: string; rest?: string });
    expect(lines.filter(({ level }) => level !== 'info')).toEqual([]);
    expect(lines.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['creating a database', 'migrating the database', 'ready', 'stopping']),
    );
    expect(lines.find(({ msg }) => msg === 'ready')?.rest).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
  });
});

describe('the process', () => {
  beforeEach(begin);
  afterEach(end);

  it('answers every request that is under way when SIGTERM arrives, and then ends with 0', async () => {
    const database = await createTestDatabase();
    const blocker = new pg.Client({ connectionString: database.url });
    await blocker.connect();
    try {
      const service = start({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: '20', SHUTDOWN_TIMEOUT_SECONDS: '600' });
      const url = await service.url();
      const { token, orgId, workspaceId } = await registered(url, 'owner');
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      // which costs no password hash: the first one waits for a connection while the last one is sent
      const make = (name: string) =>
        fetch(`${url}/v1/orgs/${orgId}/workspaces/${workspaceId}/apps`, {
          method: 'POST',
          headers,
          body: JSON.stringify({ name }),
        });
      // nobody can make an app while this is held: all requests are under way, none is done
      await blocker.query('begin; lock table apps in share row exclusive mode');
      const answers = Array.from({ length: 12 }, (_, i) => make(`under way ${i}`));
      await waitUntil(async () => (await waitingForLocks(blocker)) === 12);
      service.child.kill('SIGTERM');
      await waitUntil(() => isRefused(url));
      await blocker.query('rollback');
      const answered = (await Promise.all(answers)).map(({ status, headers }) => [status, headers.get('connection')]);
      expect(answered).toEqual(Array(12).fill([201, 'close']));
      expect(await service.exited()).toBe(0);
      expect((await blocker.query('select 1 from apps')).rowCount).toBe(12);
    } finally {
      await blocker.end();
      await database.drop();
    }
  });

  it('goes on, and ends as it should, when the disk under its log is full', async () => {
    const [database, full, port] = [await createTestDatabase(), await open('/dev/full', 'w'), await freePort()];
    try {
      const env = { DATABASE_URL: database.url, PORT: String(port), LOG_LEVEL: 'trace' };
      const service = start(env, { stdout: full.fd });
      const url = `http://127.0.0.1:${port}`;
      await waitUntil(() => isHealthy(url).catch(() => false));
      await registered(url, 'owner');
      for (let n = 0; n < 20; n++) {
        const answers = [fetch(`${url}/v1/unknown`), fetch(`${url}/v1/auth/me`)];
        expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 401]);
      }
      expect(await (await fetch(`${url}/metrics`)).text()).toContain('\nplatform_log_lines_lost_total 0\n');
      service.child.kill('SIGTERM');
      expect([await service.exited(), service.output()]).toEqual([0, '']);
    } finally {
      await full.close();
      await database.drop();
    }
  });

  it('ends streams and sockets on SIGTERM with the reason, without waiting for the grace period', async () => {
    const database = await createTestDatabase();
    const service = start({ DATABASE_URL: database.url, SHUTDOWN_TIMEOUT_SECONDS: '600' });
    const url = await service.url();
    const { token, orgId, workspaceId } = await registered(url, 'listener');
    const authorization = `Bearer ${token}`;
    const query = `subscription {
      workspaceEvents(orgId: "${orgId}", workspaceId: "${workspaceId}", types: ["workspace.deleted"]) { type data } }`;
    const stream = await openEvents(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization },
      body: JSON.stringify({ query }),
    });
    const socket = await openAcknowledged(url, authorization);
    socket.send({ id: '1', type: 'subscribe', payload: { query } });
    const idle = await openAcknowledged(url, authorization);
    await waitUntil(async () =>
      (await (await fetch(`${url}/metrics`)).text()).includes('\nplatform_event_streams 2\n'),
    );
    service.child.kill('SIGTERM');
    await stream.ended;
    const last = { data: { workspaceEvents: { type: 'stream.closing', data: { reason: 'shutdown' } } } };
    expect(stream.events.map(({ event, data }) => [event, data && (JSON.parse(data) as unknown)])).toEqual([
      ['next', last],
      ['complete', ''],
    ]);
    expect([await socket.closed(), socket.closeReason]).toEqual([1001, 'shutdown']);
    expect(socket.messages.slice(1)).toEqual([
      { id: '1', type: 'next', payload: last },
      { id: '1', type: 'complete' },
    ]);
    expect([await idle.closed(), idle.closeReason]).toEqual([1001, 'shutdown']);
    expect(await service.exited()).toBe(0);
    await database.drop();
  });

  it('refuses connections before it ends streams: who comes back at once can only reach another node', async () => {
    const database = await createTestDatabase();
    const service = start({ DATABASE_URL: database.url });
    const url = await service.url();
    const { token, orgId, workspaceId } = await registered(url, 'follower');
    const path = `/v1/orgs/${orgId}/workspaces/${workspaceId}/sync/stream`;
    const head = `host: x\r\nauthorization: Bearer ${token}\r\n\r\n`;
    const followers = Array.from({ length: 8 }, async () => {
      const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
      socket.write(`GET ${path} HTTP/1.1\r\n${head}`);
      let text = '';
      let wasRefused: Promise<boolean> | undefined;
      socket.on('data', (chunk) => {
        text += String(chunk);
        if (wasRefused || !text.endsWith('\r\n0\r\n\r\n')) return;
        wasRefused = isRefused(url);
        socket.write(`GET /healthz HTTP/1.1\r\n${head}`);
      });
      socket.on('error', () => undefined); // the connection ended before it took that request
      await waitUntil(() => text.includes('event: connected'));
      return async () => {
        if (!socket.closed) await once(socket, 'close');
        return [text.match(/HTTP\/1\.1 \d+/g), await wasRefused];
      };
    });
    const ends = await Promise.all(followers);
    service.child.kill('SIGTERM');
    expect(await Promise.all(ends.map((end) => end()))).toEqual(ends.map(() => [['HTTP/1.1 200'], true]));
    expect(await service.exited()).toBe(0);
    await database.drop();
  });

  it('cuts a socket that does not answer its farewell after the time of grace, and still ends with 0', async () => {
    const database = await createTestDatabase();
    const service = start({ DATABASE_URL: database.url, SHUTDOWN_TIMEOUT_SECONDS: '1' });
    const { hostname, port } = new URL(await service.url());
    const deaf = net.connect(Number(port), hostname);
    const head = [
      'GET /graphql HTTP/1.1',
      `host: ${hostname}`,
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
      'sec-websocket-protocol: graphql-transport-ws',
    ];
    deaf.write(`${head.join('\r\n')}\r\n\r\n`);
    const [greeting] = (await once(deaf, 'data')) as [Buffer];
    expect(greeting.toString()).toContain(' 101 ');
    service.child.kill('SIGTERM');
    expect(await service.exited()).toBe(0);
    deaf.destroy();
    await database.drop();
  });

  it('reports every invalid variable, and exits with 1', async () => {
    const service = start({ PORT: 'abc', LOG_LEVEL: 'loud' });
    expect(await service.exited()).toBe(1);
    expect(service.output().trim().split('\n')).toEqual([
      "PORT must be an integer from 0 to 65535, not 'abc'.",
      expect.stringMatching(/^LOG_LEVEL must be one of .*, not 'loud'\.$/),
    ]);
  });

  it('takes settings from files, and refuses those that look misspelt, as JSON in production', async () => {
    const file = path.join(base, '.env');
    await writeFile(file, `NODE_ENV=production\nDATABSE_URL=x\nAPP_SECRET_FILE=${base}/none\n`);
    const service = start({ NODE_ENV: 'development' }, { args: ['--env-file', file] });
    // the environment wins
    expect(await service.exited()).toBe(1);
    expect(service.output()).toBe(
      `APP_SECRET_FILE names '${base}/none', but there is no such file.\n` +
        'DATABSE_URL is not a setting. Did you mean DATABASE_URL? ' +
        'If it belongs to another program, name it in FOREIGN_VARIABLES.\n',
    );
    const strict = start({ NODE_ENV: 'production', PORT: 'x' });
    expect(await strict.exited()).toBe(1);
    expect(JSON.parse(strict.output())).toMatchObject({
      level: 'fatal',
      msg: "PORT must be an integer from 0 to 65535, not 'x'.",
    });
  });

  it('says in one sentence what the machine refuses, and what to do', async () => {
    const database = await createTestDatabase();
    await writeFile(path.join(base, 'file'), '');
    const refusals = [
      [
        { HOST: '192.0.2.1' },
        "HOST is '192.0.2.1', which is not an address of this machine. Set HOST to an address of this machine, or",
      ],
      [
        { DATABASE_URL: '', DATA_DIR: path.join(base, 'file', 'below') },
        `${base}/file/below cannot be created, because a part`,
      ],
    ] as const;
    for (const [env, said] of refusals) {
      const service = start({ DATABASE_URL: database.url, LOG_LEVEL: 'error', ...env });
      expect(await service.exited()).toBe(1);
      expect(service.output()).toContain(`The service could not start. ${said}`);
      expect(service.output().trim().split('\n')).toHaveLength(1);
    }
    await database.drop();
  });

  it('ends what runs beside a start that fails, and says one sentence', async () => {
    const database = await createTestDatabase();
    const blocker = new pg.Client({ connectionString: database.url });
    await blocker.connect();
    try {
      // neither can the tools be written, nor can the check of the store see whether there are files
      await blocker.query('begin; lock table tools, files in access exclusive mode');
      const service = start({ DATABASE_URL: database.url, LOG_LEVEL: 'error' });
      await waitUntil(async () => (await waitingForLocks(blocker)) === 2);
      await blocker.query(
        `select pg_cancel_backend(pid) from pg_locks where not granted and relation = 'tools'::regclass`,
      );
      await waitUntil(async () => (await waitingForLocks(blocker)) === 1);
      // a start that does not wait for the check closes its connections now, and the check reports it
      await blocker.query('rollback');
      expect(await service.exited()).toBe(1);
      expect(service.output()).toMatch(/^The service could not start\. [^\n]+\n$/);
    } finally {
      await blocker.end();
      await database.drop();
    }
  });

  it('says what a role lacks that may not create anything', async () => {
    const database = await createTestDatabase({ template: 'template0' });
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    const role = `poor_${randomBytes(6).toString('hex')}`;
    await admin.query(`create role ${role} login password 'poor'`);
    try {
      const url = new URL(database.url);
      url.username = role;
      url.password = 'poor';
      const service = start({ DATABASE_URL: url.href, LOG_LEVEL: 'error' });
      expect(await service.exited()).toBe(1);
      expect(service.output()).toBe(
        'The service could not start. The database refuses the role of DATABASE_URL: permission denied for schema ' +
          'public. Make the role the owner of the database (`alter database … owner to …`), or grant it `create` on ' +
          'the database and on its schema public.\n',
      );
    } finally {
      await admin.query(`drop role ${role}`);
      await admin.end();
      await database.drop();
    }
  });

  it('uses the database of DATABASE_URL, and starts none of its own', async () => {
    const database = await createTestDatabase();
    const service = start({ DATABASE_URL: database.url });
    expect(await isHealthy(await service.url())).toBe(true);
    expect(await databasePid()).toBeUndefined();
    service.child.kill('SIGINT');
    expect(await service.exited()).toBe(0);
    await database.drop();
  });

  it('lets several nodes start at once on an empty database', async () => {
    const database = await createTestDatabase({ template: 'template0' });
    const shared = { DATABASE_URL: database.url, KEYS_DIR: path.join(base, 'keys') };
    const nodes = ['a', 'b', 'c'].map((name) => start({ ...shared, DATA_DIR: path.join(base, name) }));
    const urls = await Promise.all(nodes.map((node) => node.url()));
    expect(await Promise.all(urls.map(isHealthy))).toEqual([true, true, true]);
    for (const node of nodes) node.child.kill('SIGTERM');
    expect(await Promise.all(nodes.map((node) => node.exited()))).toEqual([0, 0, 0]);
    await database.drop();
  });

  it('says that its port is taken', async () => {
    const other = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as net.AddressInfo;
    const database = await createTestDatabase();
    const service = start({ PORT: String(port), DATABASE_URL: database.url });
    expect(await service.exited()).toBe(1);
    expect(service.output()).toContain(`Port ${port} of 127.0.0.1 is in use. Stop the other process, or set PORT.`);
    other.close();
    await database.drop();
  });
});
