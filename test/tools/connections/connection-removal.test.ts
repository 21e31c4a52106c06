import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { newId } from '../../../src/kernel/ids.ts';
import type { TestApp } from '../../support/app.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { changesOf, eventsOf, type Person, register } from '../../support/person.ts';
import { logQueries, type QueryLog } from '../../support/query-log.ts';
import { openEvents } from '../../support/sockets.ts';
import { makeClient, makeInstance, makeTool } from '../../support/tool-instance.ts';
import { waitFor } from '../../support/wait.ts';
import { connect, initiate, makeInstanceAt, startConnectingApp } from './connecting.ts';

let app: TestApp;
let url: string;
let server: OAuthServer;
let log: QueryLog;
beforeAll(async () => {
  [app, server] = await Promise.all([startConnectingApp(), startOAuthServer()]);
  url = await app.listen();
  log = logQueries(app.database.pool);
});
const opened: { close(): void }[] = [];
afterEach(() => {
  for (const stream of opened.splice(0)) stream.close();
});
afterAll(async () => {
  await app.close();
  await server.close();
});

interface Told {
  type: string;
  resourceId: string;
  namespaceId: string | null;
}

/** What the stream of a workspace says from now on. */
async function listen({ orgId, workspaceId, headers }: Person): Promise<() => Told[]> {
  const query = `subscription { workspaceEvents(orgId: "${orgId}", workspaceId: "${workspaceId}",
    types: ["connection.deleted", "tool_instance.deleted", "namespace.deleted"]) { type resourceId namespaceId } }`;
  const stream = await openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify({ query }),
  });
  opened.push(stream);
  await waitFor(() => expect(app.services.tail.size).toBe(opened.length));
  return () =>
    stream.events.flatMap(({ event, data }) =>
      event === 'next' ? [(JSON.parse(data) as { data: { workspaceEvents: Told } }).data.workspaceEvents] : [],
    );
}

const newNamespace = async (person: Person, name: string): Promise<string> =>
  (await person.call<{ namespace_id: string }>('POST', `${person.home}/namespaces`, { name })).body.namespace_id;

interface Granted {
  id: string;
  tokens: string[];
}

/** Connects an instance, and says what the provider has granted. */
async function granted(person: Person, base: string, instanceId: string): Promise<Granted> {
  const { connection_id: id } = await connect(person, server, base, instanceId);
  return { id, tokens: [[...server.refreshTokens].at(-1)!, [...server.accessTokens].at(-1)!] };
}

/** A person with connections of one instance for the workspace and two namespaces, and one of another instance. */
async function connected() {
  const ann = await register(app, { name: 'ann' });
  const notes = await newNamespace(ann, 'Notes');
  const [shared, inNotes] = [
    await makeInstanceAt(server, ann),
    await makeInstanceAt(server, ann, { namespaceId: notes }),
  ];
  const workspace = await granted(ann, `${ann.home}/connections`, shared);
  const byDefault = await granted(ann, `${ann.home}/namespaces/default/connections`, shared);
  const ofNotes = await granted(ann, `${ann.home}/namespaces/${notes}/connections`, shared);
  const wholeOfNotes = await granted(ann, `${ann.home}/connections`, inNotes);
  return { ann, notes, shared, inNotes, workspace, byDefault, ofNotes, wholeOfNotes };
}

const tokensOf = (...of: Granted[]) => of.flatMap(({ tokens }) => tokens).toSorted();
const idsOf = (...of: Granted[]) => of.map(({ id }) => id).toSorted();
const revokedAmong = (...of: Granted[]) => {
  const known = tokensOf(...of);
  return server.revoked.filter((token) => known.includes(token)).toSorted();
};

/** Which of some connections are stored still, with how many credentials and states. */
async function leftOf(...of: Granted[]) {
  const { prisma } = app.database;
  const connectionId = { in: idsOf(...of) };
  const rows = await prisma.connection.findMany({ where: { id: connectionId }, orderBy: { id: 'asc' } });
  const credentials = await prisma.credential.count({ where: { connectionId } });
  return {
    ids: rows.map(({ id }) => id),
    credentials,
    states: await prisma.oAuthState.count({ where: { connectionId } }),
  };
}
const nothing = { ids: [], credentials: 0, states: 0 };
const whole = (...of: Granted[]) => ({ ids: idsOf(...of), credentials: of.length, states: of.length });

test('a deleted tool instance: each of its connections is deleted and revoked, and says so', async () => {
  const { ann, notes, shared, workspace, byDefault, ofNotes, wholeOfNotes } = await connected();
  const gone = [workspace, byDefault, ofNotes] as const;
  const told = await listen(ann);
  expect((await ann.call('DELETE', `${ann.home}/tool-instances/${shared}`)).status).toBe(204);
  expect([await leftOf(...gone), await leftOf(wholeOfNotes)]).toEqual([nothing, whole(wholeOfNotes)]);
  await app.jobsDone();
  expect(revokedAmong(...gone, wholeOfNotes)).toEqual(tokensOf(...gone));
  await waitFor(() => expect(told()).toHaveLength(4));
  expect(
    told()
      .slice(0, 3)
      .map(({ resourceId }) => resourceId)
      .toSorted(),
  ).toEqual(idsOf(...gone));
  expect(told().find(({ resourceId }) => resourceId === ofNotes.id)).toEqual({
    type: 'connection.deleted',
    resourceId: ofNotes.id,
    namespaceId: notes,
  });
  expect(told().map(({ type }) => type)).toEqual([
    ...Array<string>(3).fill('connection.deleted'),
    'tool_instance.deleted',
  ]);
  const also = {
    action: 'disconnect',
    resource_type: 'connection',
    resource_id: null,
    tool_instance_id: shared,
    connection_ids: idsOf(...gone),
  };
  expect((await changesOf(app, shared)).at(-1)).toMatchObject({ action: 'delete', metadata: { also: [also] } });
});

test('a deleted namespace: its connections and those of its instances, and no others', async () => {
  const { ann, notes, shared, inNotes, workspace, byDefault, ofNotes, wholeOfNotes } = await connected();
  const [gone, kept] = [
    [ofNotes, wholeOfNotes],
    [workspace, byDefault],
  ] as const;
  const told = await listen(ann);
  expect((await ann.call('DELETE', `${ann.home}/namespaces/${notes}`)).status).toBe(204);
  expect([await leftOf(...gone), await leftOf(...kept)]).toEqual([nothing, whole(...kept)]);
  const { prisma } = app.database;
  const instances = await prisma.toolInstance.findMany({ where: { id: { in: [shared, inNotes] } } });
  expect(instances.map(({ id, connectionStatus }) => [id, connectionStatus])).toEqual([[shared, 'connected']]);
  await app.jobsDone();
  expect(revokedAmong(...gone, ...kept)).toEqual(tokensOf(...gone));
  await waitFor(() => expect(told().at(-1)?.type).toBe('namespace.deleted'));
  expect(
    told()
      .slice(0, -1)
      .map(({ type, resourceId }) => `${type} ${resourceId}`)
      .toSorted(),
  ).toEqual(idsOf(...gone).map((id) => `connection.deleted ${id}`));
});

test('the secret of the client goes with the namespace, and revokes once more', async () => {
  const ann = await register(app, { name: 'ann' });
  const notes = await newNamespace(ann, 'Notes');
  const place = { workspace_id: ann.workspaceId, namespace_id: notes };
  const [toolId, client] = [await makeTool(ann, server.service), await makeClient(ann, server, place)];
  const instanceId = await makeInstance(ann, { toolId, client, namespaceId: notes });
  const one = await granted(ann, `${ann.home}/connections`, instanceId);
  server.revocation = { status: 500 };
  expect((await ann.call('DELETE', `${ann.home}/namespaces/${notes}`)).status).toBe(204);
  await app.jobsDone();
  const { prisma, pool } = app.database;
  const secret = await prisma.secret.findUniqueOrThrow({ where: { id: client.client_secret_vault_id } });
  expect(secret.status).toBe('deleted');
  expect(revokedAmong(one)).toEqual([]);
  const { rows } = await pool.query<{ text: string }>('select payload::text as text from jobs._private_jobs');
  for (const text of [...one.tokens, server.clientSecret])
    expect(rows.map((row) => row.text).join()).not.toContain(text);
  server.revocation = null;
  await pool.query('update jobs._private_jobs set run_at = now() where attempts > 0');
  app.jobs.wake();
  await waitFor(() => expect(revokedAmong(one)).toEqual(tokensOf(one)));
  const form = new URLSearchParams(server.requests.at(-1)!.body);
  expect(form.get('client_secret')).toBe(server.clientSecret);
});

test('a client whose secret is disabled revokes nothing', async () => {
  const ann = await register(app, { name: 'ann' });
  const client = await makeClient(ann, server);
  const instanceId = await makeInstance(ann, { toolId: await makeTool(ann, server.service), client });
  const one = await granted(ann, `${ann.home}/connections`, instanceId);
  const secret = `/v1/orgs/${ann.orgId}/secrets/${client.client_secret_vault_id}`;
  expect((await ann.call('PATCH', secret, { status: 'disabled' })).status).toBe(200);
  const before = server.requests.length;
  expect((await ann.call('DELETE', `${ann.home}/tool-instances/${instanceId}`)).status).toBe(204);
  await app.jobsDone();
  expect([server.requests.length, await leftOf(one)]).toEqual([before, nothing]);
});

test('a change that fails deletes, revokes and tells nothing', async () => {
  const { ann, notes, shared, workspace, byDefault, ofNotes, wholeOfNotes } = await connected();
  const all = [workspace, byDefault, ofNotes, wholeOfNotes] as const;
  for (const path of [`tool-instances/${shared}`, `namespaces/${notes}`]) {
    const headers = { ...ann.headers, 'if-match': '"99"' };
    const answer = await app.server.inject({ method: 'DELETE', url: `${ann.home}/${path}`, headers });
    expect([answer.statusCode, answer.json()]).toMatchObject([412, { error: 'PRECONDITION_FAILED' }]);
  }
  await app.jobsDone();
  expect(await leftOf(...all)).toEqual(whole(...all));
  expect(revokedAmong(...all)).toEqual([]);
  for (const { id } of all) expect(await eventsOf(app, id)).not.toContain('connection.deleted');
});

test('a connection that is begun while its namespace is deleted finds none', async () => {
  const ann = await register(app, { name: 'ann' });
  const instanceId = await makeInstanceAt(server, ann);
  for (let round = 0; round < 5; round++) {
    const notes = await newNamespace(ann, `Notes ${round}`);
    const base = `${ann.home}/namespaces/${notes}/connections`;
    const begin = () => ann.call('POST', `${base}/oauth/initiate`, { tool_instance_id: instanceId });
    const [gone, ...begun] = await Promise.all([
      ann.call('DELETE', `${ann.home}/namespaces/${notes}`),
      ...Array.from({ length: 4 }, begin),
    ]);
    expect(gone.status).toBe(204);
    for (const { status } of begun) expect([200, 404]).toContain(status);
    expect(await app.database.prisma.connection.count({ where: { namespaceId: notes } })).toBe(0);
  }
});

test.each(['workspaces', 'organizations'])('of %s, when they end for good and not before', async (table) => {
  const { ann, workspace, byDefault, ofNotes, wholeOfNotes } = await connected();
  const all = [workspace, byDefault, ofNotes, wholeOfNotes] as const;
  const id = table === 'workspaces' ? ann.workspaceId : ann.orgId;
  const deleted =
    table === 'workspaces'
      ? (await ann.call('DELETE', ann.home)).status === 200
      : (
          await ann.ask<{ deleteOrganization: { id: string } }>(
            `mutation { deleteOrganization(id: "${ann.orgId}") { id } }`,
          )
        ).data.deleteOrganization.id === ann.orgId;
  expect(deleted).toBe(true);
  const { pool, prisma } = app.database;
  const sweep = async (days: number) => {
    await pool.query(`update ${table} set deleted_at = now() - make_interval(days => $1) where id = $2`, [days, id]);
    await app.retention.run();
    await app.jobsDone();
  };
  await sweep(29);
  expect([await leftOf(...all), revokedAmong(...all)]).toEqual([whole(...all), []]);
  await sweep(31);
  expect([await leftOf(...all), revokedAmong(...all)]).toEqual([nothing, tokensOf(...all)]);
  expect(await prisma.workspace.findUnique({ where: { id: ann.workspaceId } })).toBeNull();
});

test('a workspace and an organization stay until their connections were revoked', async () => {
  const { ann, workspace } = await connected();
  const { pool, prisma } = app.database;
  for (const [table, id] of [
    ['workspaces', ann.workspaceId],
    ['organizations', ann.orgId],
  ] as const)
    await pool.query(`update ${table} set deleted_at = now() - interval '31 days' where id = $1`, [id]);
  // the rules alone, as if the connections had come after the sweep
  for (const rule of app.owners.flatMap(({ retention }) => retention ?? [])) await app.services.sql.write(rule, []);
  expect((await leftOf(workspace)).ids).toEqual([workspace.id]);
  await app.retention.run();
  expect(await prisma.organization.findUnique({ where: { id: ann.orgId } })).toBeNull();
});

test('thousands of connections end with their instance by a few statements', async () => {
  const ann = await register(app, { name: 'ann' });
  const instanceId = await makeInstanceAt(server, ann);
  const real = await granted(ann, `${ann.home}/connections`, instanceId);
  const { toolId } = await app.database.prisma.toolInstance.findUniqueOrThrow({ where: { id: instanceId } });
  const count = 1_200;
  const namespaces = Array.from({ length: count }, () => newId('namespace'));
  const { orgId, workspaceId } = ann;
  await app.database.prisma.namespace.createMany({
    data: namespaces.map((id) => ({ id, orgId, workspaceId, name: id, slug: id.toLowerCase().replace('_', '-') })),
  });
  await app.database.prisma.connection.createMany({
    data: namespaces.map((namespaceId) => ({
      id: newId('connection'),
      orgId,
      workspaceId,
      namespaceId,
      toolId,
      toolInstanceId: instanceId,
      authType: 'oauth2',
    })),
  });
  const statements = await log.by(() => ann.call('DELETE', `${ann.home}/tool-instances/${instanceId}`));
  expect(await app.database.prisma.connection.count({ where: { toolInstanceId: instanceId } })).toBe(0);
  expect(statements.length).toBeGreaterThan(0);
  expect(statements.length).toBeLessThan(40);
  const { rows } = await app.database.pool.query<{ n: number }>(
    `select count(*)::int as n from events where workspace_id = $1 and type = 'connection.deleted'`,
    [workspaceId],
  );
  expect(rows[0]!.n).toBe(count + 1);
  await app.jobsDone();
  expect(revokedAmong(real)).toEqual(tokensOf(real));
});

test('a pending connection, an API key and a provider without revocation have nothing to revoke', async () => {
  const ann = await register(app, { name: 'ann' });
  const [pending, byKey] = [await makeInstanceAt(server, ann), await makeInstanceAt(server, ann)];
  await initiate(ann, `${ann.home}/connections`, pending);
  await ann.call('POST', `${ann.home}/connections/api-key`, { tool_instance_id: byKey, api_key: 'k' });
  const before = server.requests.length;
  for (const id of [pending, byKey])
    expect((await ann.call('DELETE', `${ann.home}/tool-instances/${id}`)).status).toBe(204);
  await app.jobsDone();
  expect(server.requests).toHaveLength(before);
  expect(await app.database.prisma.connection.count({ where: { orgId: ann.orgId } })).toBe(0);
});

test('tokens that an API key replaces are revoked, once the key is stored', async () => {
  const ann = await register(app, { name: 'ann' });
  const base = `${ann.home}/connections`;
  const instanceId = await makeInstanceAt(server, ann);
  const replaced = await granted(ann, base, instanceId);
  const before = server.requests.length;
  const store = (api_key: string) =>
    ann.call<{ connection_id: string }>('POST', `${base}/api-key`, { tool_instance_id: instanceId, api_key });
  const { status, body } = await store('the key');
  expect([status, body.connection_id]).toEqual([201, replaced.id]);
  await app.jobsDone();
  expect(revokedAmong(replaced)).toEqual(tokensOf(replaced));
  const after = server.requests.length;
  expect(after).toBe(before + replaced.tokens.length);
  // a key in place of a key has nothing to revoke
  expect((await store('another key')).status).toBe(201);
  await app.jobsDone();
  expect(server.requests).toHaveLength(after);
});
