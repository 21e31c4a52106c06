import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEpoch } from '../../src/data/epoch.ts';
import { migrationsDir } from '../../src/paths.ts';
import { migrate, readMigrations } from '../../src/platform/postgres/migrate.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { Client, type Json } from '../support/client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { startService } from '../support/service.ts';
import { openEvents } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';
import { type Dump, readDumps, SERVICE } from './dumps.ts';
import { answersOf, type Recording } from './record.ts';
import { loadRows, rowsOf, type Table, tablesOf } from './rows.ts';
import { SEALED, text } from './seed.ts';
import { shiftTimes } from './shift-times.ts';

const dataDir = mkdtempSync(path.join(tmpdir(), 'upgrade-'));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const dumps = readDumps();

/** A database as a version of long ago has left it, a moment ago. */
async function databaseOf({ rows, writtenAt, migrations }: Dump, now: Date): Promise<TestDatabase> {
  const database = await createTestDatabase({ template: 'template0' });
  const dir = mkdtempSync(path.join(dataDir, 'migrations-'));
  for (const name of migrations) cpSync(path.join(migrationsDir, name), path.join(dir, name), { recursive: true });
  await migrate(database.url, dir);
  await withClient(database.url, async (db) => {
    await loadRows(db, shiftTimes(rows, writtenAt, now));
    if (migrations.includes(WITH_TOKENS)) await db.query(ALIGN);
    // as after a restore: the folders of the service that was dumped are gone, this one has keys of its own
    if (migrations.includes(WITH_MARKERS)) await db.query('delete from service_markers');
    // nobody leaves before the end of the test
    if (migrations.includes(WITH_PRESENCES))
      await db.query(`update presences set expires_at = now() + interval '1 day'`);
  });
  return database;
}

const WITH_PRESENCES = '20261122191546_presences';
const WITH_MARKERS = '20261126010000_service_markers';
/** From this migration on, the tokens of runs are in sums; before, the upgrade sums them. */
const WITH_TOKENS = '20261124101737_runs_in_time_zones';
/** Sums stand at whole quarters, hours and days, from which the times of a dump are shifted away. */
const ALIGN = `update execution_sums set start = case span when 'quarter'
    then date_bin('15 minutes', start, '2000-01-01 00:00:00+00') else date_trunc(span, start, 'UTC') end`;

async function withClient<T>(url: string, work: (db: pg.Client) => Promise<T>): Promise<T> {
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    return await work(db);
  } finally {
    await db.end();
  }
}

type Contents = Map<Table, string[]>;

/** The columns of before that there still are: others were dropped by a migration. */
async function keptColumns(tables: readonly Table[]): Promise<Table[]> {
  const today = await createTestDatabase();
  const now = new Map((await withClient(today.url, tablesOf)).map(({ name, columns }) => [name, new Set(columns)]));
  await today.drop();
  return tables.map(({ name, columns }) => ({ name, columns: columns.filter((column) => now.get(name)?.has(column)) }));
}

async function contentsOf(db: pg.Client, tables: readonly Table[]): Promise<Contents> {
  const contents: Contents = new Map();
  for (const table of tables) contents.set(table, await rowsOf(db, table));
  return contents;
}

/** The identifiers of built-in tools, which every start writes as its version has them. */
const BUILT_IN = /^'?tool_0{22}/;
const isBuiltIn = (entry: Json): boolean => BUILT_IN.test(String(entry.tool_id));
const isTools = (value: unknown): value is Json[] =>
  Array.isArray(value) && value.some((entry: Json) => isBuiltIn(entry));

/** An answer without built-in tools, and without what follows from how many there are. */
function withoutBuiltIn(body: Json): Json {
  if (!Object.values(body).some(isTools)) return body;
  const { total: _total, has_more: _hasMore, next_cursor: _cursor, ...rest } = body;
  return Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      isTools(value) ? value.filter((tool) => !isBuiltIn(tool)) : value,
    ]),
  );
}

/** The JSON Schemas of custom actions were in this answer, where the specification has none; they are in GraphQL. */
function withoutSchemas(path: string, body: Json): Json {
  if (!path.endsWith('/tools/custom-action-schemas')) return body;
  const schemas = Object.entries(body.schemas as Record<string, Json>);
  return {
    ...body,
    schemas: Object.fromEntries(schemas.map(([kind, { json_schema: _schema, ...entry }]) => [kind, entry])),
  };
}

/** The link of a notification was a REST path; it is the address of a page, which depends on where the service is. */
function withoutLinks(body: Json): Json {
  if (!Array.isArray(body.notifications)) return body;
  return { ...body, notifications: (body.notifications as Json[]).map(({ action_url: _url, ...rest }) => rest) };
}

describe.each(dumps)('a database of the schema $name, with rows in every table, after one start', (dump) => {
  const recording = JSON.parse(dump.recording) as Recording;
  const { seeded } = recording;
  let database: TestDatabase;
  let app: TestApp;
  let before: Contents;
  let after: Contents;
  let events: OldEvent[];
  let recorded: Recording;
  let anyone: Client;
  let ann: Client;
  let token: string;

  beforeAll(async () => {
    const now = new Date();
    recorded = JSON.parse(shiftTimes(dump.recording, dump.writtenAt, now)) as Recording;
    database = await databaseOf(dump, now);
    await withClient(database.url, async (db) => {
      before = await contentsOf(db, await keptColumns(await tablesOf(db)));
      events = await eventsOf(db, seeded.ids.workspace_id!, seeded.ids.user_id!);
    });
    await migrate(database.url, migrationsDir);
    app = await startTestApp({ databaseUrl: database.url, env: SERVICE });
    after = await withClient(database.url, (db) => contentsOf(db, [...before.keys()]));
    anyone = new Client(await app.listen());
    token = text(await anyone.post('/v1/auth/refresh', { refresh_token: seeded.refreshToken }), 'access_token');
    ann = anyone.with(token);
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
  });

  it('has every row of before', () => {
    for (const [table, rows] of before) {
      const kept = rows.filter((row) => !BUILT_IN.test(row));
      expect(after.get(table), table.name).toEqual(expect.arrayContaining(kept));
    }
  });

  it('answers every read as before; fields may have come', async () => {
    for (const { path, body } of recorded.reads)
      expect(withoutBuiltIn(await ann.get(path)), path).toMatchObject(
        withoutLinks(withoutBuiltIn(withoutSchemas(path, body))),
      );
    expect(await ann.query(recorded.query)).toMatchObject(recorded.data);
  });

  it('knows the digest of the text or file of each artifact of before', async () => {
    const { rows } = await app.database.pool.query<{ content: string | null; file: string | null; sha256: string }>(
      'select a.content, f.sha256 as file, a.sha256 from artifacts a left join files f on f.id = a.file_id',
    );
    for (const { content, file, sha256 } of rows)
      expect(sha256).toBe(content === null ? file : createHash('sha256').update(content).digest('hex'));
  });

  it('pages through its lists, with their totals', async () => {
    const lists = recorded.reads.filter(({ body }) => Number(body.total) > 1 && 'next_cursor' in body);
    expect(lists.length).toBeGreaterThan(2);
    for (const { path, body } of lists) {
      const [key, rows] = Object.entries(body).find(([, value]) => Array.isArray(value)) as [string, Json[]];
      const own = (of: Json[]) => withoutBuiltIn({ of }).of;
      expect(own(await walk(path, key)), path).toMatchObject(
        own(withoutLinks({ [key]: rows })[key] as Json[]) as Json[],
      );
    }
  });

  /** All rows of a list, one a page. */
  async function walk(list: string, key: string): Promise<Json[]> {
    const rows: Json[] = [];
    const totals: unknown[] = [];
    let cursor: unknown = '';
    while (typeof cursor === 'string') {
      const page = await ann.get(`${list}?limit=1${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      rows.push(...(page[key] as Json[]));
      totals.push(page.total);
      cursor = page.next_cursor;
    }
    expect(totals, list).toEqual(rows.map(() => rows.length));
    return rows;
  }

  // absent before there were any
  const builtIn = recording.reads.flatMap(({ body }) => Object.values(body).filter(isTools).flat()).filter(isBuiltIn);
  if (builtIn.length > 0)
    it('knows the built-in tools of before, at the latest as disabled', async () => {
      for (const { tool_id, slug } of builtIn)
        expect(await ann.get(`/v1/orgs/${seeded.ids.org_id}/tools/${String(tool_id)}`)).toMatchObject({ slug });
    });

  it('counts the activity of before', async () => {
    const { org_id } = seeded.ids;
    await app.services.activity.flush();
    const text = 'select count(*)::int as n from activity where org_id = $1';
    const { rows } = await app.database.pool.query<{ n: number }>(text, [org_id]);
    expect(rows[0]!.n).toBeGreaterThan(20);
    expect(await ann.get(`/v1/orgs/${org_id}/activity?limit=1`)).toMatchObject({ total: rows[0]!.n });
  });

  // sums of before have other times than their runs here, because all times are shifted
  if (seeded.ids.execution_id)
    it('has the tokens of the runs of before, in UTC and in time zones', async () => {
      const query = `query ($org: ID!, $tz: String!) {
        series(orgId: $org, tz: $tz, metric: TOKENS, step: HOUR) { points { value } } }`;
      for (const tz of ['UTC', 'Asia/Kolkata']) {
        const { data } = (await ann.post('/graphql', { query, variables: { org: seeded.ids.org_id, tz } })) as {
          data: { series: { points: { value: number }[] } };
        };
        const { points } = data.series;
        expect(
          points.map(({ value }) => value).filter((value) => value > 0),
          tz,
        ).toEqual([9]);
      }
    });

  it('knows the password of before', async () => {
    const { username, password, ids } = seeded;
    const session = await anyone.post('/v1/auth/login', { username, password });
    expect(session.user).toMatchObject({ user_id: ids.user_id });
  });

  it('streams the events of before', async () => {
    const { org_id, workspace_id } = seeded.ids;
    const [first, ...others] = events;
    const after = `${await readEpoch(app.services.sql)}-${first!.position}`;
    const place = `orgId: "${org_id}", workspaceId: "${workspace_id}", after: "${after}"`;
    const query = `subscription { workspaceEvents(${place}) { id type resourceId data timestamp } }`;
    const stream = await openEvents(`${app.url}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify({ query }),
    });
    const seen = () =>
      stream.events.flatMap(({ event, data }) =>
        event === 'next' ? [(JSON.parse(data) as { data: { workspaceEvents: Json } }).data.workspaceEvents] : [],
      );
    await waitFor(() => expect(seen().length).toBeGreaterThanOrEqual(others.length));
    stream.close();
    expect(others.length).toBeGreaterThan(5);
    expect(seen()).toEqual(others.map(({ position: _position, ...event }) => event));
  });

  // absent before there were any
  const { apiToken, reveals } = seeded;
  if (apiToken)
    it('knows the API tokens of before, with their restrictions', async () => {
      const home = `/v1/orgs/${seeded.ids.org_id}/workspaces`;
      const ci = anyone.with(apiToken);
      expect(await ci.get(home)).toMatchObject({ workspaces: [{ workspace_id: seeded.ids.workspace_id }], total: 1 });
      const change = await ci.call('PUT', `${home}/${seeded.ids.workspace_id}`, { name: 'Changed' });
      expect(change).toMatchObject({ status: 403, body: { details: { required_permission: 'workspace:update' } } });
    });

  const { org_id: orgId, tool_instance_id: toolInstanceId, namespace_id: namespaceId } = seeded.ids;
  if (orgId && toolInstanceId && namespaceId)
    it('opens what is sealed for tool instances and connections', async () => {
      const { credentials, connectionCredentials, oauthStates, sql } = app.services;
      expect(await credentials.open(sql, orgId, { toolInstanceId })).toEqual({ token: SEALED.token });
      const used = await connectionCredentials.credentialFor({ orgId, toolInstanceId, namespaceId });
      expect(used).toMatchObject({ authType: 'api_key', secret: SEALED.apiKey });
      const begun = await app.database.prisma.oAuthState.findFirstOrThrow({ where: { toolInstanceId } });
      expect(oauthStates.verifierOf(begun)).toMatch(/^[\w-]{43,}$/);
    });

  // their type had another name
  const connections = recording.reads.flatMap(({ path, body }) =>
    path.endsWith('/connections') ? (body.connections as { connection_id: string; status: string }[]) : [],
  );
  if (connections.length > 0)
    it('finds the connections of before by their ids', async () => {
      const query = 'query ($id: ID!) { node(id: $id) { __typename id ... on ToolAuthorization { status } } }';
      for (const { connection_id: id, status } of connections)
        expect(await ann.post('/graphql', { query, variables: { id } })).toEqual({
          data: { node: { __typename: 'ToolAuthorization', id, status } },
        });
    });

  if (reveals.length > 0)
    it('opens the secrets of before, each version', async () => {
      const [current, versions] = await answersOf(ann, reveals);
      expect(current!.body.value).toEqual({ api_key: 'test-only-3' });
      expect(versions!.body).toMatchObject(recorded.reveals[1]!.body);
    });
});

interface OldEvent {
  /** What follows the epoch in its cursor. */
  position: string;
  id: string;
  type: string;
  resourceId: string;
  data: Json;
  timestamp: string;
}

/** The events of a workspace that a user receives: some are for one user alone. */
async function eventsOf(db: pg.Client, workspaceId: string, userId: string): Promise<OldEvent[]> {
  const { rows } = await db.query<Omit<OldEvent, 'timestamp'> & { timestamp: Date }>(
    `select xid || '-' || seq as position, id, type, resource_id as "resourceId", data, timestamp
     from events e where workspace_id = $1 and coalesce(to_jsonb(e) ->> 'recipient_id', $2) = $2 order by xid, seq`,
    [workspaceId, userId],
  );
  return rows.map((row) => ({ ...row, timestamp: row.timestamp.toISOString() }));
}

describe('dumps of the schemas that landed', () => {
  it('are each of the first migrations of today, in their order', () => {
    const today = readMigrations(migrationsDir).map(({ name }) => name);
    for (const { name, migrations } of dumps) {
      expect(migrations.at(-1)).toBe(name);
      expect(today.slice(0, migrations.length)).toEqual(migrations);
    }
  });
});

describe('an older version', () => {
  it('does not start on a newer schema, says so in one sentence, and leaves the database alone', async () => {
    const database = await createTestDatabase();
    const history = 'select migration_name from _prisma_migrations order by 1';
    await withClient(database.url, (db) =>
      db.query(`insert into _prisma_migrations (id, checksum, migration_name, finished_at)
        values ('newer', 'newer', '29991231235959_newer', now())`),
    );
    const before = await withClient(database.url, async (db) => (await db.query(history)).rows);
    const service = startService({ ...SERVICE, DATABASE_URL: database.url, DATA_DIR: path.join(dataDir, 'older') });
    expect(await service.exited()).toBe(1);
    expect(service.output()).toBe(
      'The service could not start. The database was migrated by a newer version of the service ' +
        '(29991231235959_newer): start that version, or a newer one.\n',
    );
    expect(await withClient(database.url, async (db) => (await db.query(history)).rows)).toEqual(before);
    await database.drop();
  });
});
