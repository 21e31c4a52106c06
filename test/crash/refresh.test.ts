// own process: starts processes, which is slow from a large process
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type OAuthServer, startOAuthServer } from '../support/oauth-server.ts';
import { type Service, startService } from '../support/service.ts';
import { waitFor } from '../support/wait.ts';
import { Client } from './client.ts';

let dataDir: string;
let database: TestDatabase;
let server: OAuthServer;
let db: pg.Client;
const services = new Set<Service>();

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'crash-'));
  database = await createTestDatabase();
  server = await startOAuthServer();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
});

afterEach(async () => {
  for (const service of services) {
    service.child.kill('SIGKILL');
    await service.exited();
  }
  services.clear();
  await db.end();
  await server.close();
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

function start(): Service {
  const env = { DATA_DIR: dataDir, DATABASE_URL: database.url, OUTBOUND_ALLOW: '127.0.0.1', LOG_LEVEL: 'error' };
  const service = startService({ ...env, RATE_LIMIT_RPS: '0' });
  services.add(service);
  return service;
}

interface Row {
  status: string;
  refresh_claim: string | null;
  expires_at: Date;
  last_refreshed_at: Date | null;
}

/** Connects an instance, and has its token refreshed by a service that is killed when the provider has answered. */
async function killedInRefresh(): Promise<() => Promise<Row>> {
  const service = start();
  const client = await Client.register(await service.url());
  const { orgId, workspaceId } = client;
  const [toolId, instanceId] = [newId('tool'), newId('tool_instance')];
  await db.query(
    `insert into tools (id, org_id, name, slug, description, supports_connection, credential_schema)
     values ($1, $2, 'Mail', 'mail', 'Mail', true, $3)`,
    [toolId, orgId, JSON.stringify([{ ...server.service, token_endpoint_auth_method: 'none' }])],
  );
  await db.query(
    `insert into tool_instances (id, org_id, workspace_id, tool_id, name, client_id)
     values ($1, $2, $3, $4, 'Mail', $5)`,
    [instanceId, orgId, workspaceId, toolId, server.clientId],
  );
  const send = async (url: string, body?: object) => {
    const outcome = await client.send('POST', url, body);
    if (outcome.is !== 'acknowledged') throw new Error(`${url}: ${outcome.is} ${client.strange.join()}`);
    return outcome.body as Record<string, string>;
  };
  const base = `/v1/orgs/${orgId}/workspaces/${workspaceId}/connections`;
  const begun = await send(`${base}/oauth/initiate`, { tool_instance_id: instanceId });
  const code = server.consent(begun.authorization_url!);
  await send(`/v1/connections/oauth/exchange?${new URLSearchParams({ code, state: begun.state! }).toString()}`);
  const row = async () =>
    (await db.query<Row>('select * from connections where id = $1', [begun.connection_id])).rows[0]!;
  // the server has rotated the tokens, and its answer is on the way when the service ends
  server.misbehave.push({
    until: async () => {
      service.child.kill('SIGKILL');
      await service.exited();
    },
  });
  await db.query('update connections set refresh_at = now() where id = $1', [begun.connection_id]);
  await service.exited();
  services.delete(service);
  expect(server.grants).toEqual({ authorization_code: 1, refresh_token: 1 });
  const left = await row();
  expect(left).toMatchObject({ status: 'connected', refresh_claim: expect.any(String), last_refreshed_at: null });
  expect(left.expires_at.getTime()).toBeGreaterThan(Date.now() + 50 * 60_000);
  return row;
}

/** The claim of the service that was killed has ended, and so has its lock on the job that refreshes. */
const endClaim = () =>
  db.query(`update connections set claimed_until = now(), refresh_at = now();
    update jobs._private_jobs set locked_at = locked_at - interval '1 minute' where locked_at is not null`);

test('kill -9 between answer and commit: a provider that still takes the old refresh token goes on', async () => {
  const row = await killedInRefresh();
  // the grace that some providers give: the tokens of the lost answer never arrived
  const form = new URLSearchParams(server.requests.at(-1)!.body);
  server.refreshTokens.add(form.get('refresh_token')!);
  await endClaim();
  await start().url();
  await waitFor(async () => expect((await row()).last_refreshed_at).not.toBeNull());
  expect(await row()).toMatchObject({ status: 'connected', refresh_claim: null });
  expect(server.grants.refresh_token).toBe(2);
});

test('kill -9 between answer and commit: one that has ended it needs the user, and nothing is deleted', async () => {
  const row = await killedInRefresh();
  await endClaim();
  await start().url();
  await waitFor(async () => expect((await row()).status).toBe('needs_reauth'));
  // the access token is there still
  const { rows } = await db.query('select 1 from credentials c join connections t on t.id = c.connection_id');
  expect(rows).toHaveLength(1);
  expect(server.grants.refresh_token).toBe(2);
});
