import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Service, startService } from '../support/service.ts';

// services start, die and start again here, beside another test file
vi.setConfig({ testTimeout: 90_000 });

const WRITERS = 8;
const ENOUGH = 40;

let dataDir: string;
const services = new Set<Service>();

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGTERM');
    await service.exited();
  }
  services.clear();
  await rm(dataDir, { recursive: true, force: true });
});

function start(env: Record<string, string> = {}): Service {
  const service = startService({ DATA_DIR: dataDir, RATE_LIMIT_RPS: '0', LOG_LEVEL: 'error', ...env });
  services.add(service);
  return service;
}

interface Tenant {
  orgId: string;
  authorization: string;
}

async function register(url: string): Promise<Tenant> {
  const response = await fetch(`${url}/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'writer@example.test', username: 'writer', password: 'writes a lot' }),
  });
  const body = (await response.json()) as { access_token: string; user: { settings: { current_org_id: string } } };
  return { orgId: body.user.settings.current_org_id, authorization: `Bearer ${body.access_token}` };
}

/** Writes until told to stop: creates workspaces and renames them. Keeps what was acknowledged, and nothing else. */
class Writers {
  /** Name that was acknowledged last, by workspace. */
  readonly acknowledged = new Map<string, string>();
  /** Answers that were neither a success nor a refusal in the promised shape. */
  readonly strange: string[] = [];
  readonly #url: string;
  readonly #tenant: Tenant;
  #stopped = false;
  readonly #running: Promise<void>[];

  constructor(url: string, tenant: Tenant) {
    this.#url = url;
    this.#tenant = tenant;
    this.#running = Array.from({ length: WRITERS }, (_, writer) => this.#write(writer));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #write(writer: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const created = await this.#send('POST', '', { organization_id: this.#tenant.orgId, name: `w${writer}-${n}` });
      const id = created?.workspace_id;
      if (!id) continue;
      this.acknowledged.set(id, `w${writer}-${n}`);
      const renamed = await this.#send('PUT', `/${id}`, { name: `renamed ${writer}-${n}` });
      if (renamed) this.acknowledged.set(id, `renamed ${writer}-${n}`);
      // an unanswered rename may or may not have happened: nothing was promised of it
      else this.acknowledged.delete(id);
    }
  }

  async #send(method: string, suffix: string, body: object): Promise<{ workspace_id?: string } | null> {
    try {
      const response = await fetch(`${this.#url}/v1/orgs/${this.#tenant.orgId}/workspaces${suffix}`, {
        method,
        headers: { authorization: this.#tenant.authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(20_000),
      });
      const answer = (await response.json()) as { workspace_id?: string; error?: string };
      if (response.ok) return answer;
      if (response.status !== 503 || answer.error !== 'SERVICE_UNAVAILABLE')
        this.strange.push(`${response.status} ${JSON.stringify(answer)}`);
    } catch (error) {
      if (!(error instanceof Error)) throw error; // the service is gone: nothing was acknowledged
    }
    return null;
  }
}

/** Every acknowledged write with its record and its event, and none of the others by half. */
async function expectWhole(databaseUrl: string, acknowledged: Map<string, string>): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{
      id: string;
      name: string;
      members: number;
      namespaces: number;
      creates: number;
      mentions: number;
      updates: number;
      created: number;
      updated: number;
    }>(
      `select w.id, w.name,
        (select count(*)::int from workspace_members m where m.workspace_id = w.id) as members,
        (select count(*)::int from namespaces n where n.workspace_id = w.id) as namespaces,
        (select count(*)::int from activity a where a.resource_id = w.id and a.action = 'create' and a.success) as creates,
        (select count(*)::int from activity a cross join lateral jsonb_array_elements(a.metadata->'also') m
          where a.resource_type = 'user' and a.action = 'create' and a.success and a.org_id = w.org_id
            and m @> jsonb_build_object('action', 'create', 'resource_type', 'workspace', 'resource_id', w.id)) as mentions,
        (select count(*)::int from activity a where a.resource_id = w.id and a.action = 'update' and a.success) as updates,
        (select count(*)::int from events e where e.resource_id = w.id and e.type = 'workspace.created') as created,
        (select count(*)::int from events e where e.resource_id = w.id and e.type = 'workspace.updated' and e.data = '{}') as updated
       from workspaces w`,
    );
    const found = new Map(rows.map((row) => [row.id, row]));
    expect(acknowledged.size).toBeGreaterThan(0);
    for (const [id, name] of acknowledged) expect(found.get(id)?.name, `acknowledged workspace ${id}`).toBe(name);
    for (const row of rows) {
      // a registration has one record: the workspace that comes with it is listed there
      const isDefault = row.name === 'Default workspace' ? 1 : 0;
      const isRenamed = row.name.startsWith('renamed ') ? 1 : 0;
      expect(row, 'a workspace by half').toMatchObject({
        members: 1,
        namespaces: 1,
        creates: 1 - isDefault,
        mentions: isDefault,
        created: 1,
        updates: isRenamed,
        updated: isRenamed,
      });
    }
    const orphans = await client.query(
      `select e.id from events e where e.resource_type = 'workspace' and not exists (select 1 from workspaces w where w.id = e.resource_id)`,
    );
    expect(orphans.rows).toEqual([]);
    const counted = await client.query<{ kept: string; real: string }>(
      `select (select sum(n) from resource_counts where resource = 'workspace')::text as kept, (select count(*) from workspaces)::text as real`,
    );
    expect(counted.rows[0]!.kept).toBe(counted.rows[0]!.real);
  } finally {
    await client.end();
  }
}

const enough = (writers: Writers) =>
  vi.waitUntil(() => writers.acknowledged.size >= ENOUGH, { timeout: 30_000, interval: 5 });

describe('what was acknowledged survives', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());

  it('kill -9 of the service under write load', async () => {
    const first = start({ DATABASE_URL: database.url });
    const url = await first.url();
    const writers = new Writers(url, await register(url));
    await enough(writers);
    first.child.kill('SIGKILL');
    await first.exited();
    await writers.stop();
    const second = start({ DATABASE_URL: database.url });
    expect((await fetch(`${await second.url()}/readyz`)).status).toBe(200);
    await expectWhole(database.url, writers.acknowledged);
    expect(writers.strange).toEqual([]);
  });
});

it('kill -9 of the database under write load: it comes back by itself, and no answer breaks the promised shape', async () => {
  const service = start();
  const url = await service.url();
  const tenant = await register(url);
  const writers = new Writers(url, tenant);
  await enough(writers);
  const pid = Number((await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0]);
  process.kill(pid, 'SIGKILL');
  const before = writers.acknowledged.size;
  await vi.waitUntil(() => writers.acknowledged.size >= before + ENOUGH, { timeout: 45_000, interval: 20 });
  await writers.stop();
  expect(writers.strange).toEqual([]);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  const port = await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8');
  const [, , , portText, socketDir] = port.split('\n');
  await expectWhole(
    `postgresql://postgres@localhost:${portText}/platform?host=${encodeURIComponent(socketDir!)}`,
    writers.acknowledged,
  );
});

it('kill -9 of the service with its embedded database: the next start comes up with everything', async () => {
  const first = start();
  const url = await first.url();
  const writers = new Writers(url, await register(url));
  await enough(writers);
  first.child.kill('SIGKILL');
  await first.exited();
  await writers.stop();
  const second = start();
  const again = await second.url();
  expect((await fetch(`${again}/readyz`)).status).toBe(200);
  const [, , , portText, socketDir] = (await readFile(path.join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split(
    '\n',
  );
  await expectWhole(
    `postgresql://postgres@localhost:${portText}/platform?host=${encodeURIComponent(socketDir!)}`,
    writers.acknowledged,
  );
});
