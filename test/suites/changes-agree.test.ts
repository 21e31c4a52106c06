import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { newBrowser, openIdCompany, samlAnswer, samlCompany } from '../sso/companies.ts';
import { startOpenIdServer } from '../sso/openid-server.ts';
import { newIdpKey } from '../sso/saml-idp.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { expendable } from '../support/expendable.ts';
import { whileJobsWait } from '../support/held-jobs.ts';
import { startOAuthServer } from '../support/oauth-server.ts';
import { gentlestFirst, operationAt, operations, routeOf } from '../support/operations.ts';
import { register, signIn } from '../support/person.ts';
import { expectOk, injectable, type Parts } from '../support/requests.ts';
import { makeMarkedInstance } from '../support/tool-instance.ts';
import { changesBetween, comparable, idsOfSnapshot, type Snapshot, snapshotOf } from '../support/traces.ts';
import { createWorld, findKey, makeOne, type World } from '../support/world.ts';
import { askWritten, restBodyOf } from '../support/written.ts';

/** Questions in the shape of a change, because the specification has them so. */
const withoutChange = ['POST /v1/auth/sso/discover'];

/*
 * One world in two databases that are copies of each other: every change runs over REST in one and over GraphQL in the
 * other. Answers, rows, audit trail, outbox and mails must be the same.
 */
const mutations = gentlestFirst(
  operations.filter((operation) => operation.type === 'mutation' && !withoutChange.includes(routeOf(operation))),
);

type Prepare = (app: TestApp, world: World, parts: Parts) => Promise<void>;

const mailed = async (app: TestApp, address: string, subject: RegExp): Promise<string> => {
  await app.jobsDone();
  const mail = app.mails.findLast(({ to, subject: of }) => to === address && subject.test(of));
  return new URL(mail?.link ?? `http://nothing.mailed/${address}`).searchParams.get('token')!;
};
const inBody = (parts: Parts, fields: object) => {
  parts.body = { ...(parts.body as object), ...fields };
};
const asUser = (parts: Parts, token: string) => {
  parts.headers.authorization = `Bearer ${token}`;
};

/** What a change needs to succeed that its types do not tell. THE place to add one when a new operation fails here. */
const prepared: Record<string, Prepare> = {
  'POST /v1/auth/verify-email': async (app, { accounts: { owner } }, parts) =>
    inBody(parts, { token: await mailed(app, owner.email, /Confirm/) }),
  'POST /v1/auth/resend-verification': async (_app, { stranger }, parts) => inBody(parts, { email: stranger.email }),
  'POST /v1/auth/forgot-password': async (_app, { guest }, parts) => inBody(parts, { email: guest.email }),
  'POST /v1/auth/reset-password': async (app, { accounts: { viewer } }, parts) => {
    await expectOk(app, { method: 'POST', url: '/v1/auth/forgot-password', payload: { email: viewer.email } });
    inBody(parts, { token: await mailed(app, viewer.email, /Reset/) });
  },
  'POST /v1/auth/refresh': async (_app, { accounts: { editor } }, parts) =>
    inBody(parts, { refresh_token: editor.refreshToken }),
  'POST /v1/auth/logout': async (app, { accounts: { member } }, parts) =>
    asUser(parts, (await signIn(app, member)).accessToken),
  'POST /v1/auth/sso/logout': async (app, { accounts: { member } }, parts) =>
    asUser(parts, (await signIn(app, member)).accessToken),
  'POST /v1/auth/switch-org': async (app, { marker, accounts: { admin } }, parts) => {
    const headers = { authorization: `Bearer ${admin.accessToken}` };
    const made = await expectOk(app, {
      method: 'POST',
      url: '/v1/orgs',
      headers,
      payload: { name: `${marker} other` },
    });
    inBody(parts, { org_id: findKey(made, ['org_id', 'id']) });
    asUser(parts, admin.accessToken);
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/model-entitlements': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/model-catalog'));
    inBody(parts, { logical_model_id: made.logical_model_id });
  },
  'PUT /v1/users/{user_id}': async (app, world, parts) => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/members`;
    const payload = { user_id: parts.params.user_id, role: 'viewer' };
    await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload });
  },
  'POST /v1/invitations/accept': async (app, world, parts) => {
    const invited = await register(app, { username: `${world.marker}-invited` });
    const url = `/v1/orgs/${world.ids.org_id}/invitations`;
    await expectOk(app, { method: 'POST', url, headers: world.as('owner'), payload: { email: invited.email } });
    inBody(parts, { token: await mailed(app, invited.email, /invit/i) });
    asUser(parts, invited.accessToken);
  },
  'POST /v1/orgs/{org_id}/api-tokens/refresh': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/api-tokens'));
    inBody(parts, { refresh_token: made.refresh_token_plaintext });
  },
  'POST /v1/orgs/{org_id}/secrets/{secret_id}/restore': async (app, world, parts) => {
    const made = await makeOne(app, world, operationAt('POST', '/v1/orgs/{org_id}/secrets'));
    parts.params.secret_id = made.secret_id as string;
    const url = `/v1/orgs/${world.ids.org_id}/secrets/${parts.params.secret_id}`;
    await expectOk(app, { method: 'DELETE', url, headers: world.as('owner') });
  },
  'POST /v1/connections/oauth/exchange': async (app, world, parts) => {
    const server = await startOAuthServer();
    servers.push(server);
    const body = { access_token: 'access', refresh_token: 'refresh', token_type: 'bearer', expires_in: 3_600 };
    server.misbehave.push({ status: 200, body }, { status: 200, body });
    const id = await makeMarkedInstance(app, world, server.service);
    const begun = await expectOk<{ state: string }>(app, {
      method: 'POST',
      url: `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/connections/oauth/initiate`,
      headers: world.as('owner'),
      payload: { tool_instance_id: id },
    });
    parts.query = { code: 'code', state: begun.state };
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/upgrade': async (app, world) => {
    await app.database.pool.query(
      `update tools set current_schema_version = current_schema_version + 1
        where id = (select tool_id from tool_instances where id = $1)`,
      [world.ids.instance_id],
    );
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/test': async (app, world, parts) => {
    const server = await startOAuthServer();
    servers.push(server);
    // whatever it answers, the call is counted
    const actions = [{ name: 'ping', method: 'GET', url_template: server.url, is_read_only: true }];
    await app.database.pool.query(
      'update tools set action_schemas = $2 where id = (select tool_id from tool_instances where id = $1)',
      [world.ids.instance_id, JSON.stringify(actions)],
    );
    parts.body = { action: 'ping' };
  },
  'POST /v1/orgs/{org_id}/workspaces/{workspace_id}/sync/presence/leave': async (app, world) => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/sync/presence/join`;
    await expectOk(app, { method: 'POST', url, headers: world.as('owner') });
  },
  'POST /v1/auth/sso/initiate': async (app, _world, parts) => {
    const { domain } = await samlCompany(app, newIdpKey());
    parts.body = { email: `ann@${domain}` };
  },
  'GET /v1/auth/sso/callback/oidc': async (app, _world, parts) => {
    const server = Object.assign(await startOpenIdServer(), { keepsCodes: true });
    servers.push(server);
    const { domain } = await openIdCompany(app, server);
    server.account = { sub: 'callback', email: `by-callback@${domain}`, email_verified: true };
    const payload = { email: `by-callback@${domain}` };
    const { redirect_url: begun } = await expectOk<{ redirect_url: string }>(app, {
      method: 'POST',
      url: '/v1/auth/sso/initiate',
      payload,
    });
    parts.query = Object.fromEntries(server.authorize(begun).searchParams);
  },
  'POST /v1/auth/sso/callback/saml': async (app, _world, parts) => {
    const key = newIdpKey();
    const { message, relayState } = await samlAnswer(app, await samlCompany(app, key), key);
    parts.body = { saml_response: message, relay_state: relayState };
  },
  'POST /v1/auth/sso/exchange': async (app, _world, parts) => {
    const server = await startOpenIdServer();
    servers.push(server);
    const { domain } = await openIdCompany(app, server);
    server.account = { sub: 'ann', email: `ann@${domain}`, email_verified: true };
    const browser = newBrowser(app);
    const begun = await browser.begin(`ann@${domain}`, { redirect_uri: `${PUBLIC_URL}/account/sign-in` });
    const { pathname, search } = server.authorize(begun);
    const { headers } = await browser.send('GET', `${pathname}${search}`);
    parts.body = { code: new URL(headers.location ?? '').searchParams.get('code') };
  },
  'DELETE /v1/orgs/{org_id}': async (app, world, parts) => {
    parts.params.org_id = findKey(await makeOne(app, world, operationAt('POST', '/v1/orgs')), ['org_id', 'id'])!;
  },
};

/**
 * Changes by nobody in particular, of which the audit trail says nothing. A new one is added here on purpose, or not at
 * all.
 */
const withoutRecord = [
  'POST /v1/auth/forgot-password',
  'POST /v1/auth/resend-verification',
  'POST /v1/auth/sso/initiate',
];

/** The same for all nodes: providers send their answers there. */
const PUBLIC_URL = 'http://service.test';

const servers: { close(): Promise<unknown> }[] = [];
let keysDir: string;
let databases: TestDatabase[];
let rest: TestApp;
let graphql: TestApp;
let known: Set<string>;
let ownerId: string;
const requests = new Map<CompiledOperation, Parts>();

beforeAll(async () => {
  keysDir = mkdtempSync(path.join(os.tmpdir(), 'keys-'));
  const env = { KEYS_DIR: keysDir, OUTBOUND_ALLOW: '127.0.0.1', PUBLIC_URL };
  const original = await createTestDatabase();
  const maker = await startTestApp({ databaseUrl: original.url, env });
  const world = await createWorld(maker);
  ownerId = world.accounts.owner.userId;
  for (const operation of mutations) {
    const parts = await expendable(maker, world, operation, 'owner', { requiredOnly: false });
    await prepared[routeOf(operation)]?.(maker, world, parts);
    requests.set(operation, parts);
  }
  // who is present stays so: the end would come in the middle of another change
  await maker.database.pool.query(`create function stay() returns trigger language plpgsql
    as 'begin return null; end'`);
  await maker.database.pool.query(
    'create trigger stay before delete on presences for each row execute function stay()',
  );
  await settled(maker);
  await maker.close();
  const copy = await createTestDatabase({ template: new URL(original.url).pathname.slice(1) });
  databases = [original, copy];
  rest = await startTestApp({ databaseUrl: original.url, env });
  graphql = await startTestApp({ databaseUrl: copy.url, env });
  known = idsOfSnapshot(await snapshotOf(rest.database.pool));
}, 120_000);

afterAll(async () => {
  await rest.close();
  await graphql.close();
  for (const server of servers) await server.close();
  for (const database of databases) await database.drop();
  rmSync(keysDir, { recursive: true, force: true });
});

/** Everything that happens a moment later by itself has happened. */
async function settled(app: TestApp): Promise<Snapshot> {
  await app.jobsDone();
  await app.services.activity.flush();
  while ((await app.services.buckets.provisionPending()) > 0);
  return snapshotOf(app.database.pool);
}

const latest = new Map<TestApp, Snapshot>();

/** What a request leaves behind: rows, and mails. */
async function tracesOf<T>(app: TestApp, work: () => Promise<T>) {
  const [before, mails] = [latest.get(app) ?? (await settled(app)), app.mails.length];
  const answer = await work();
  const after = await settled(app);
  latest.set(app, after);
  // several leave at once, in whatever order
  const sent = app.mails.slice(mails).sort((a, b) => a.subject.localeCompare(b.subject));
  return { answer, rows: changesBetween(before, after), mails: sent };
}

type Traces = Awaited<ReturnType<typeof tracesOf>>;

/** What a request left behind, without how it came in: each record must say that as `cameIn` does. */
function left({ rows, mails }: Traces, records: number, cameIn: Record<string, unknown>) {
  const byRequest = (rows.activity?.written ?? []).filter(({ principal_type }) => principal_type !== 'system');
  expect(byRequest).toHaveLength(records);
  for (const record of byRequest) {
    expect(record).toMatchObject(cameIn);
    for (const key of Object.keys(cameIn)) delete record[key];
  }
  return { rows, mails };
}

/** Where REST takes a form, GraphQL takes the id of a file that was sent before: the same file. */
async function withFileSent({ body }: CompiledOperation, parts: Parts): Promise<Parts> {
  if (!body?.fileField) return parts;
  const given = parts.body as Record<string, unknown>;
  const owner = {
    orgId: parts.params.org_id!,
    workspaceId: parts.params.workspace_id!,
    namespaceId: parts.params.namespace_id!,
    userId: ownerId,
  };
  const { id } = await graphql.services.files.receive(owner, {
    content: Readable.from([Buffer.from(String(given[body.fileField]))]),
    fileName: 'file.bin',
    contentType: 'application/octet-stream',
  });
  return { ...parts, body: { ...given, [body.fileField]: id } };
}

/** The address of a sign-in without its parameters, which are random and packed. */
const withoutQuery = (body: unknown): unknown =>
  JSON.parse(JSON.stringify(body).replace(/("redirect_url":"[^"?]+)\?[^"]+/, '$1'));

const byText = (rows: object[]) => rows.map((row) => JSON.stringify(row)).sort();

describe.each(mutations.map((operation) => [routeOf(operation), operation] as const))('%s', (title, operation) => {
  test('REST and GraphQL do the same: answer, rows, events, records and mails', async () => {
    const parts = requests.get(operation)!;
    parts.headers['x-trace-id'] = operation.name;
    const now = Date.now();
    const request = injectable(operation, parts);
    // an answer may show the first step of what its change has started
    const calmly = <T>(app: TestApp, work: () => Promise<T>) =>
      title.includes('/artifacts') ? whileJobsWait(app, work) : work();
    const one = await tracesOf(rest, () => calmly(rest, async () => rest.server.inject(request)));
    expect(one.answer.statusCode, `${title} needs a sample in \`prepared\`: ${one.answer.body}`).toBe(operation.status);
    const other = await tracesOf(graphql, () =>
      calmly(graphql, async () => askWritten(graphql, operation, await withFileSent(operation, parts))),
    );
    expect(other.answer.errors).toBeUndefined();

    const body = one.answer.body === '' ? null : one.answer.json<unknown>();
    const wanted = operation.status === 204 ? null : restBodyOf(operation, other.answer.data!);
    expect(comparable({ body: withoutQuery(body) }, known, now)).toEqual(
      comparable({ body: withoutQuery(wanted) }, known, now),
    );

    const records = withoutRecord.includes(title) ? 0 : 1;
    const cameAs = { method: operation.method, path: request.url.split('?')[0], status_code: operation.status };
    const byRest = comparable(left(one, records, cameAs), known, now);
    const cameIn = { method: 'POST', path: '/graphql', status_code: 200 };
    const byGraphQL = comparable(left(other, records, cameIn), known, now);
    expect(
      Object.keys(byRest.rows).filter((table) => table !== 'activity'),
      'it changes something',
    ).not.toEqual([]);
    expect(Object.keys(byGraphQL.rows)).toEqual(Object.keys(byRest.rows));
    for (const [table, { gone, written: came }] of Object.entries(byRest.rows)) {
      expect(byText(byGraphQL.rows[table]!.gone), `rows of ${table} that went`).toEqual(byText(gone));
      expect(byText(byGraphQL.rows[table]!.written), `rows of ${table} that came`).toEqual(byText(came));
    }
    expect(byGraphQL.mails).toEqual(byRest.mails);
  });
});

test('every change is in here', () => {
  expect(mutations.length).toBeGreaterThan(50);
  const routes = mutations.map(routeOf);
  expect([...Object.keys(prepared), ...withoutRecord].filter((route) => !routes.includes(route))).toEqual([]);
});
