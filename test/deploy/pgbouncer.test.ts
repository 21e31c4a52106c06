// own process: starts PgBouncer and the service
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { bouncers } from '../../scripts/pgbouncer.mjs';
import { openDatabase } from '../../src/platform/postgres/database.ts';
import { SESSION_LIMITS } from '../../src/platform/postgres/session-limits.ts';
import { Client } from '../crash/client.ts';
import { ROOT_KEYS } from '../support/app.ts';
import { runCommand } from '../support/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningPgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { type Service, startService } from '../support/service.ts';
import { openEvents } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';

const { old, current } = bouncers();
/** A role as operators make it: no superuser, owner of its database. */
const ROLE = 'pooled';
/** Whom {@link Client} registers. */
const WRITER = { username: 'writer', password: 'writes a lot' };

let dataDir: string;
let database: TestDatabase;
const running: { stop(): Promise<unknown> }[] = [];

const nameOf = ({ url }: TestDatabase) => new URL(url).pathname.slice(1);
const as = (role: string, url: string) => {
  const at = new URL(url);
  at.username = role;
  return at.href;
};
async function ask<Row extends object>(url: string, ...statements: string[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: Row[] = [];
    for (const text of statements) ({ rows } = await client.query<Row>(text));
    return rows;
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'pooled-'));
  database = await createTestDatabase({ template: 'template0' });
  await ask(database.url, `create role ${ROLE} login`, `alter database ${nameOf(database)} owner to ${ROLE}`);
});
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.stop();
});
afterAll(async () => {
  await database.drop();
  await ask(inject('serverUrl'), `drop role ${ROLE}`);
  rmSync(dataDir, { recursive: true, force: true });
});

async function pooler(options: Partial<Parameters<typeof startPgBouncer>[0]> = {}): Promise<RunningPgBouncer> {
  const started = await startPgBouncer({ serverUrl: as(ROLE, inject('serverUrl')), ...options });
  running.push(started);
  return started;
}

function start(url: string, env: Record<string, string> = {}): Service {
  const service = startService({ DATABASE_URL: url, DATA_DIR: dataDir, ROOT_KEYS, EVENT_POLL_MS: '20', ...env });
  running.push({
    stop: async () => {
      service.child.kill();
      await service.exited();
    },
  });
  return service;
}

const refused = async (url: string, env: Record<string, string> = {}): Promise<string> => {
  const service = start(url, env);
  expect(await service.exited()).toBe(1);
  return service.output();
};

const without = (what: string) => test.skip(`NOT RUN: ${what}`, () => undefined);

if (!old && !process.env.CI) without("no PgBouncer before 1.21 is installed (Debian 12's package `pgbouncer`)");
else if (!old && current) without('the installed PgBouncer keeps prepared statements');
else
  describe('PgBouncer before 1.21', () => {
    test('loses prepared statements: the start and the doctor say so in one sentence', async () => {
      const url = (await pooler({ bouncer: old })).urlOf(nameOf(database));
      const said =
        'The pooler of DATABASE_URL loses prepared statements: use PgBouncer 1.21 or newer with ' +
        'max_prepared_statements above 0 (Debian 12 has 1.18, Debian 13 has 1.24), or let DATABASE_URL lead to the ' +
        'database itself.';
      expect(await refused(url)).toContain(`The service could not start. ${said}\n`);
      expect(await refused(as(ROLE, database.url), { DATABASE_READ_URLS: url })).toContain(
        `The service could not start. ${said.replaceAll('DATABASE_URL', 'DATABASE_READ_URLS')}\n`,
      );
      const { code, output } = await runCommand('doctor', [], {
        DATABASE_URL: url,
        DATABASE_DIRECT_URL: as(ROLE, database.url),
        DATA_DIR: dataDir,
        ROOT_KEYS,
      });
      expect(code).toBe(1);
      expect(output).toContain(said);
    });
  });

if (!current) without('no PgBouncer of 1.21 or newer is here (`node scripts/pgbouncer.mjs` fetches it)');
else
  describe(`PgBouncer ${current.version}`, () => {
    test('in statement mode, without prepared statements or with limits of its own, is refused', async () => {
      const inMode = await pooler({ settings: { pool_mode: 'statement' } });
      expect(await refused(inMode.urlOf(nameOf(database)))).toContain(
        'The service could not start. The pooler of DATABASE_URL allows no transactions: set its pool_mode to ' +
          'transaction, or let DATABASE_URL lead to the database itself.\n',
      );
      const unprepared = await pooler({ settings: { max_prepared_statements: 0 } });
      expect(await refused(unprepared.urlOf(nameOf(database)))).toContain('loses prepared statements');
      const overriding = await pooler({
        overrides: `connect_query='set statement_timeout = 0'`,
      });
      expect(await refused(overriding.urlOf(nameOf(database)))).toContain(
        'gives sessions without the settings of their role',
      );
    });

    test('a statement that was refused with its transaction can be sent again', async () => {
      const url = (await pooler()).urlOf(nameOf(database));
      const open = openDatabase({ url, pooled: { directUrl: database.url }, poolSize: 1, logger: quietLogger });
      running.push({ stop: () => open.close() });
      const failing = { name: 'failing', text: `select 1 / $1::int as one`, values: [0] };
      const after = { name: 'after', text: 'select $1::int as two', values: [2] };
      await expect(open.transaction((own) => own.send([failing, after]))).rejects.toThrow('division by zero');
      const again = await open.transaction((own) => own.commit([{ ...failing, values: [1] }, after]));
      expect(again.map(({ rows }) => rows as unknown[])).toEqual([[{ one: 1 }], [{ two: 2 }]]);
    });

    test.each([
      ['beside a way past it', true],
      ['as the only way to the database', false],
    ])('in transaction mode, %s, serves calls, streams and jobs', async (_, hasDirect) => {
      const url = (await pooler({ settings: { default_pool_size: 3 } })).urlOf(nameOf(database));
      const direct = as(ROLE, database.url);
      const service = start(url, hasDirect ? { DATABASE_DIRECT_URL: direct, DATABASE_POOL_SIZE: '12' } : {});
      const base = await service.url();
      const writer = await (hasDirect ? Client.register(base) : Client.signIn(base, WRITER));
      const home = `/v1/orgs/${writer.orgId}/workspaces/${writer.workspaceId}`;

      const stream = await openEvents(`${base}${home}/sync/stream`, { headers: writer.headers });
      await stream.next(({ event }) => event === 'connected');
      const kind = hasDirect ? 'beside' : 'only';
      const made = await Promise.all(
        Array.from({ length: 30 }, (__, n) => writer.send('POST', `${home}/namespaces`, { name: `${kind}-${n}` })),
      );
      expect(made.map(({ is }) => is)).toEqual(made.map(() => 'acknowledged'));
      await waitFor(() => {
        expect(stream.events.filter(({ event }) => event === 'namespace.created')).toHaveLength(made.length);
      });
      stream.close();

      const lists = await Promise.all(
        Array.from({ length: 40 }, () => writer.send('GET', `${home}/namespaces?limit=100`)),
      );
      const named = new RegExp(`"name":"${kind}-\\d+"`, 'g');
      for (const list of lists) expect(JSON.stringify(list).match(named)).toHaveLength(made.length);
      const asked = await writer.send('POST', '/graphql', { query: '{ me { username } }' });
      expect(asked).toEqual({ is: 'acknowledged', body: { data: { me: { username: WRITER.username } } } });
      expect(writer.strange).toEqual([]);

      // a mail is a job
      const mails = () => readdirSync(path.join(dataDir, 'mail')).length;
      const before = hasDirect ? 0 : mails();
      await fetch(`${base}/v1/auth/forgot-password`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'writer@example.test' }),
      });
      await waitFor(() => expect(mails()).toBeGreaterThan(before));

      // each session has the limits, whoever had it before
      const limits = Object.keys(SESSION_LIMITS).filter((name) => name !== 'transaction_timeout');
      const columns = limits.map((name) => `current_setting('${name}') as "${name}"`).join(', ');
      const sessions = await Promise.all(Array.from({ length: 6 }, () => ask(url, `select ${columns}`)));
      const wanted = Object.fromEntries(limits.map((name) => [name, SESSION_LIMITS[name]]));
      expect(sessions).toEqual(sessions.map(() => [wanted]));
    });
  });
