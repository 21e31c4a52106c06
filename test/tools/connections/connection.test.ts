import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { dated } from '../../support/dated.ts';
import { gate } from '../../support/gate.ts';
import { type OAuthServer, startOAuthServer } from '../../support/oauth-server.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';
import { makeClient, makeInstance, makeTool } from '../../support/tool-instance.ts';
import { waitFor } from '../../support/wait.ts';
import {
  type Connection,
  connect,
  exchange,
  type Initiated,
  initiate,
  makeInstanceAt,
  rowOf,
  shownBy,
  startConnectingApp,
  withInstance,
} from './connecting.ts';

let app: TestApp;
let server: OAuthServer;
beforeAll(async () => {
  [app, server] = await Promise.all([startConnectingApp(), startOAuthServer()]);
});
beforeEach(() => {
  server.misbehave.length = 0;
  server.revocation = null;
});
afterAll(async () => {
  await app.close();
  await server.close();
});

const wrongState = {
  detail: [
    {
      type: 'value_error',
      loc: ['query', 'state'],
      msg: 'Value error, the state is unknown, was used, has expired or belongs to another user: start again',
      input: '[redacted]',
      ctx: { error: 'the state is unknown, was used, has expired or belongs to another user: start again' },
    },
  ],
};

test('an authorization: the URL, the exchange, the record, its events and its place in lists', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const begun = await ann.call<Initiated>('POST', `${ofNamespace}/oauth/initiate`, { tool_instance_id: instanceId });
  expect([begun.status, begun.body]).toEqual([
    200,
    {
      authorization_url: expect.any(String),
      state: expect.stringMatching(/^[\w-]{43}$/),
      expires_in: 600,
      tool_instance_id: instanceId,
      connection_id: expect.stringMatching(/^conn_/),
    },
  ]);
  const { authorization_url, state, connection_id: id } = begun.body;
  const url = new URL(authorization_url);
  expect(url.origin + url.pathname).toBe(`${server.url}/authorize`);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    response_type: 'code',
    client_id: server.clientId,
    scope: 'read write',
    redirect_uri: expect.stringMatching(/\/connections\/callback$/),
    state,
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  });
  expect((await ann.call<{ connections: unknown[] }>('GET', ofNamespace)).body).toMatchObject({
    connections: [{ connection_id: id, status: 'pending' }],
    total: 1,
  });
  const done = await exchange(ann, server.consent(authorization_url), state);
  expect([done.status, done.body]).toEqual([
    200,
    {
      status: 'connected',
      connection_id: id,
      tool_instance_id: instanceId,
      scopes: ['read', 'write'],
      account_label: null,
      expires_at: expect.any(String),
    },
  ]);
  const { namespaceId, refreshAt, expiresAt } = await rowOf(app, id);
  const record = {
    connection_id: id,
    workspace_id: ann.workspaceId,
    namespace_id: namespaceId,
    tool_instance_id: instanceId,
    tool_id: expect.stringMatching(/^tool_/),
    auth_type: 'oauth2',
    status: 'connected',
    scopes: ['read', 'write'],
    account_label: null,
    expires_at: done.body.expires_at,
    last_refreshed_at: null,
    last_error: null,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  };
  expect((await ann.call('GET', ofNamespace)).body).toEqual({ connections: [record], total: 1 });
  expect((await ann.call('GET', `${ann.home}/connections`)).body).toEqual({ connections: [record], total: 1 });
  expect(expiresAt!.getTime() - refreshAt!.getTime()).toBe(15 * 60_000);
  expect(await eventsOf(app, id)).toEqual(['connection.created', 'connection.updated']);
  expect((await changesOf(app, id)).map(({ action, metadata }) => [action, metadata])).toEqual([
    ['connect', { tool_instance_id: instanceId, step: 'initiate' }],
    ['connect', { tool_instance_id: instanceId }],
  ]);
  // a connection of a namespace is not that of the workspace
  expect(await shownBy(app, instanceId)).toBe('not_connected');
});

test('tokens, verifier and state are nowhere in the database as they are', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const begun = await initiate(ann, ofNamespace, instanceId);
  const code = server.consent(begun.authorization_url);
  await exchange(ann, code, begun.state);
  const form = new URLSearchParams(server.requests.at(-1)!.body);
  const { rows } = await app.database.pool.query<{ text: string }>(
    `select query_to_xml('select * from ' || quote_ident(schemaname) || '.' || quote_ident(tablename),
      true, false, '')::text as text
     from pg_tables where schemaname in ('public', 'jobs')`,
  );
  const all = rows.map(({ text }) => text).join('\n');
  expect(all).toContain(begun.connection_id);
  const secrets = [begun.state, form.get('code_verifier')!, code, server.clientSecret, ...server.refreshTokens];
  for (const secret of [...secrets, ...server.accessTokens]) {
    expect(all).not.toContain(secret);
    expect(all).not.toContain(Buffer.from(secret).toString('base64'));
    expect(all).not.toContain(Buffer.from(secret).toString('hex'));
  }
});

describe('a state', () => {
  test('is no longer good after its first use, by whoever', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const begun = await initiate(ann, ofNamespace, instanceId);
    const code = server.consent(begun.authorization_url);
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(ann, code, begun.state)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 422)).toHaveLength(7);
    expect(await exchange(ann, code, begun.state)).toEqual({ status: 422, body: wrongState });
  });

  test('of another user is refused with the same words, and stays good for its user', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const bob = await colleague(app, ann, 'admin');
    const begun = await initiate(ann, ofNamespace, instanceId);
    const code = server.consent(begun.authorization_url);
    const before = server.requests.length;
    expect(await exchange(bob, code, begun.state)).toEqual({ status: 422, body: wrongState });
    expect(await exchange(bob, code, 'nobody-was-given-this')).toEqual({ status: 422, body: wrongState });
    expect(server.requests).toHaveLength(before);
    expect((await rowOf(app, begun.connection_id)).status).toBe('pending');
    expect((await exchange(ann, code, begun.state)).status).toBe(200);
  });

  test('ends after ten minutes', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const { result: begun, expectAfter } = await dated(() => initiate(ann, ofNamespace, instanceId));
    const { prisma } = app.database;
    const state = await prisma.oAuthState.findFirstOrThrow({ where: { connectionId: begun.connection_id } });
    expectAfter(600_000, state.expiresAt);
    await prisma.oAuthState.update({ where: { hash: state.hash }, data: { expiresAt: new Date(Date.now() - 1) } });
    const code = server.consent(begun.authorization_url);
    expect(await exchange(ann, code, begun.state)).toEqual({ status: 422, body: wrongState });
    expect((await rowOf(app, begun.connection_id)).status).toBe('pending');
  });

  test('is of no use to a user who may not connect the instance any more', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const bob = await colleague(app, ann, 'editor');
    const begun = await initiate({ ...bob, home: ann.home }, ofNamespace, instanceId);
    await ann.call('PATCH', `${ann.home}/members/${bob.userId}`, { role: 'member' });
    await ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${bob.userId}`, { role: 'member' });
    expect(await exchange(bob, server.consent(begun.authorization_url), begun.state)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'connection:create' } },
    });
    await ann.call('DELETE', `/v1/orgs/${ann.orgId}/members/${bob.userId}`);
    expect(await exchange(bob, 'code', begun.state)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'organization:access' } },
    });
  });
});

describe('a provider', () => {
  const begin = async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    await connect(ann, server, ofNamespace, instanceId);
    const { id } = await app.database.prisma.connection.findFirstOrThrow({ where: { toolInstanceId: instanceId } });
    const before = await rowOf(app, id);
    const begun = await initiate(ann, ofNamespace, instanceId);
    return { ann, begun, before, code: server.consent(begun.authorization_url) };
  };

  test.each([
    ['answers 500', { status: 500, body: 'oops' }, 502, 'UPSTREAM_ERROR'],
    ['breaks the connection', { breaks: true }, 502, 'UPSTREAM_ERROR'],
    ['answers what is no JSON', { status: 200, body: '<html>' }, 502, 'UPSTREAM_ERROR'],
    ['answers without a token', { status: 200, body: { token_type: 'bearer' } }, 502, 'UPSTREAM_ERROR'],
    ['refuses the client', { status: 401, body: { error: 'invalid_client' } }, 502, 'UPSTREAM_ERROR'],
  ])('that %s: the old credential stays as it is', async (_title, wrong, status, error) => {
    const { ann, begun, before, code } = await begin();
    server.misbehave.push(wrong);
    const answer = await exchange(ann, code, begun.state);
    expect(answer).toMatchObject({ status, body: { error, details: { upstream: 'mailer' } } });
    expect(await rowOf(app, before.id)).toEqual(before);
  });

  test('that does not accept the code', async () => {
    const { ann, begun, before } = await begin();
    expect(await exchange(ann, 'made-up', begun.state)).toEqual({
      status: 422,
      body: {
        detail: [
          {
            type: 'value_error',
            loc: ['query', 'code'],
            msg: 'Value error, the provider does not accept the code: start again',
            input: '[redacted]',
            ctx: { error: 'the provider does not accept the code: start again' },
          },
        ],
      },
    });
    expect(await rowOf(app, before.id)).toEqual(before);
  });

  test('that is dead', async () => {
    const dead = await startOAuthServer();
    const { ann, instanceId, ofNamespace } = await withInstance(app, dead);
    const begun = await initiate(ann, ofNamespace, instanceId);
    await dead.close();
    const answer = await exchange<{ message: string }>(ann, 'code', begun.state);
    expect(answer).toMatchObject({ status: 502, body: { error: 'UPSTREAM_ERROR', details: { upstream: 'mailer' } } });
    expect(answer.body.message).not.toContain('127.0.0.1');
  });

  test('that answers too late', async () => {
    const { ann, begun, before, code } = await begin();
    const { opened: later, open: free } = gate();
    server.misbehave.push({ until: () => later });
    const answer = await exchange(ann, code, begun.state);
    free();
    expect(answer).toMatchObject({ status: 504, body: { error: 'UPSTREAM_TIMEOUT', details: { upstream: 'mailer' } } });
    expect(await rowOf(app, before.id)).toEqual(before);
  });

  test('with habits of its own is understood', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const idToken = `e30.${Buffer.from(JSON.stringify({ email: 'ann@mail.test' })).toString('base64url')}.x`;
    server.more = { token_type: 'bot', scope: 'read,write', id_token: idToken, expires_in: '3600' };
    const body = await connect(ann, server, ofNamespace, instanceId);
    server.more = {};
    expect(body).toMatchObject({ status: 'connected', scopes: ['read', 'write'], account_label: 'ann@mail.test' });
    const begun = await initiate(ann, ofNamespace, instanceId);
    // an error with the status of a success
    server.misbehave.push({ status: 200, body: { error: 'invalid_grant' } });
    expect((await exchange(ann, 'code', begun.state)).status).toBe(422);
  });
});

describe('API keys', () => {
  test('connect a namespace or a workspace, replace what is there, and never come back', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const body = { tool_instance_id: instanceId, api_key: 'sk-first' };
    const made = await ann.call<Connection>('POST', ofNamespace, body);
    expect(made).toMatchObject({ status: 201, body: { auth_type: 'api_key', status: 'connected', expires_at: null } });
    expect(JSON.stringify(made.body)).not.toContain('sk-first');
    const again = await ann.call<Connection>('POST', ofNamespace, { ...body, api_key: 'sk-second' });
    expect(again.body.connection_id).toBe(made.body.connection_id);
    const shared = await ann.call<Connection>('POST', `${ann.home}/connections/api-key`, body);
    expect(shared).toMatchObject({ status: 201, body: { namespace_id: null, status: 'connected' } });
    expect(await shownBy(app, instanceId)).toBe('connected');
    expect(await eventsOf(app, made.body.connection_id)).toEqual(['connection.created', 'connection.updated']);
    expect((await changesOf(app, shared.body.connection_id)).map(({ action }) => action)).toEqual(['connect']);
    const namespaceId = made.body.namespace_id as string;
    const use = { orgId: ann.orgId, toolInstanceId: instanceId };
    const { connectionCredentials: credentials } = app.services;
    expect(await credentials.credentialFor({ ...use, namespaceId })).toEqual({
      connectionId: made.body.connection_id,
      authType: 'api_key',
      status: 'connected',
      secret: 'sk-second',
    });
    expect(await credentials.credentialFor({ ...use, namespaceId: null })).toMatchObject({ secret: 'sk-first' });
    await ann.call('DELETE', `${ofNamespace}/${instanceId}`);
    expect(await credentials.credentialFor({ ...use, namespaceId })).toMatchObject({ secret: 'sk-first' });
  });

  test('the key must be there and of one line, and no answer repeats it', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    for (const api_key of ['', 'two\nlines', 'x'.repeat(8_193), 7]) {
      const { status, body } = await ann.call<{ detail: { loc: string[]; input: unknown }[] }>('POST', ofNamespace, {
        tool_instance_id: instanceId,
        api_key,
      });
      expect([status, body.detail[0]?.loc, body.detail[0]?.input]).toEqual([422, ['body', 'api_key'], '[redacted]']);
    }
  });
});

describe('what cannot be connected', () => {
  test('an instance that is not there, of another workspace, or of another namespace', async () => {
    const { ann, ofNamespace } = await withInstance(app, server);
    const bob = await withInstance(app, server);
    const { body: other } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'x' });
    const elsewhere = await makeInstanceAt(server, ann, { namespaceId: other.namespace_id });
    for (const id of ['ti_00000000000000000000000000', bob.instanceId, elsewhere])
      expect(await ann.call('POST', `${ofNamespace}/oauth/initiate`, { tool_instance_id: id })).toMatchObject({
        status: 404,
        body: { details: { resource_type: 'tool_instance', resource_id: id } },
      });
  });

  test('an instance without a client, a tool without OAuth', async () => {
    const { ann, ofNamespace } = await withInstance(app, server);
    const toolOfServer = await makeTool(ann, server.service);
    const without = await makeInstance(ann, { toolId: toolOfServer, client: null });
    const toolId = await makeTool(ann, { name: 'key', type: 'secret' });
    const byKey = await makeInstance(ann, { toolId });
    const reasonOf = async (id: string) =>
      (
        await ann.call<{ details: { reason: string } }>('POST', `${ofNamespace}/oauth/initiate`, {
          tool_instance_id: id,
        })
      ).body.details.reason;
    expect([await reasonOf(without), await reasonOf(byKey)]).toEqual(['oauth_client_missing', 'oauth_not_supported']);
  });

  test('more than thirty authorizations in a minute', async () => {
    const { ann, instanceId, ofNamespace } = await withInstance(app, server);
    const statuses: number[] = [];
    for (let i = 0; i < 31; i++) statuses.push((await exchange(ann, 'code', `made-up-${i}`)).status);
    expect(statuses).toEqual([...Array<number>(30).fill(422), 429]);
    expect((await ann.call('POST', ofNamespace, { tool_instance_id: instanceId, api_key: 'k' })).status).toBe(201);
  });
});

describe('a deleted connection', () => {
  test('is gone, and its tokens are revoked at the provider', async () => {
    const { ann, instanceId } = await withInstance(app, server);
    const base = `${ann.home}/connections`;
    const { connection_id: id } = await connect(ann, server, base, instanceId);
    expect(await shownBy(app, instanceId)).toBe('connected');
    const [access, refresh] = [[...server.accessTokens].at(-1)!, [...server.refreshTokens].at(-1)!];
    expect(await ann.call('DELETE', `${base}/${instanceId}`)).toEqual({
      status: 200,
      body: { message: 'Connection deleted successfully' },
    });
    expect(await app.database.prisma.connection.findUnique({ where: { id } })).toBeNull();
    expect(await app.database.prisma.credential.findUnique({ where: { connectionId: id } })).toBeNull();
    expect(await shownBy(app, instanceId)).toBe('not_connected');
    await app.jobsDone();
    expect(server.revoked.slice(-2)).toEqual([refresh, access]);
    expect((await eventsOf(app, id)).at(-1)).toBe('connection.deleted');
    expect(await ann.call('DELETE', `${base}/${instanceId}`)).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'connection' } },
    });
  });

  test('is gone although the provider fails, which is told later', async () => {
    const { ann, instanceId } = await withInstance(app, server);
    const base = `${ann.home}/connections`;
    await connect(ann, server, base, instanceId);
    const refresh = [...server.refreshTokens].at(-1)!;
    server.revocation = { status: 500 };
    expect((await ann.call('DELETE', `${base}/${instanceId}`)).status).toBe(200);
    await app.jobsDone();
    const waiting = `select j.payload::text as text from jobs._private_jobs j
      join jobs._private_tasks t on t.id = j.task_id where t.identifier = 'revoke_tokens' and j.attempts > 0`;
    const { rows } = await app.database.pool.query<{ text: string }>(waiting);
    expect(rows).toHaveLength(1);
    expect(rows[0]!.text).not.toContain(refresh);
    server.revocation = null;
    await app.database.pool.query('update jobs._private_jobs set run_at = now() where attempts > 0');
    app.jobs.wake();
    await waitFor(() => expect(server.revoked).toContain(refresh));
  });
});

test('members connect the instances that they made, editors all, viewers none', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const [member, editor, viewer] = [
    await colleague(app, ann, 'member'),
    await colleague(app, ann, 'editor'),
    await colleague(app, ann, 'viewer'),
  ];
  const own = await makeInstance(
    { ...member, orgId: ann.orgId, home: ann.home },
    { toolId: await makeTool(ann, server.service) },
  );
  const put = async (person: typeof ann, tool_instance_id: string) =>
    (await person.call('POST', ofNamespace, { tool_instance_id, api_key: 'k' })).status;
  expect([await put(member, instanceId), await put(member, own)]).toEqual([403, 201]);
  expect([await put(editor, instanceId), await put(viewer, own)]).toEqual([201, 403]);
  const remove = async (person: typeof ann, id: string) => (await person.call('DELETE', `${ofNamespace}/${id}`)).status;
  // the editor connected that one
  expect([await remove(member, instanceId), await remove(viewer, own)]).toEqual([403, 403]);
  expect([await remove(member, own), await remove(editor, instanceId)]).toEqual([200, 200]);
  expect((await viewer.call('GET', ofNamespace)).body).toEqual({ connections: [], total: 0 });
});

test('requirements: what an app uses, what is missing, and which connection counts', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const toolId = await makeTool(ann, server.service);
  const { body: made } = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, {
    name: 'Shop',
    metadata: { steps: [{ uses: instanceId }] },
  });
  const ask = async () =>
    (await ann.call<{ requirements: unknown[] }>('GET', `${ofNamespace}/requirements?app_id=${made.app_id}`)).body;
  const first = {
    tool_id: expect.stringMatching(/^tool_/),
    tool_slug: expect.stringMatching(/^mail-/),
    tool_name: 'Mail',
    tool_instance_id: instanceId,
    auth_type: 'oauth2',
    scopes: ['read', 'write'],
    status: 'not_connected',
    satisfied: false,
  };
  expect(await ask()).toEqual({ app_id: made.app_id, requirements: [first], total: 1, all_satisfied: false });
  await connect(ann, server, `${ann.home}/connections`, instanceId);
  const satisfied = { ...first, status: 'connected', satisfied: true };
  expect(await ask()).toMatchObject({ requirements: [satisfied], all_satisfied: true });
  await ann.call('POST', `${ann.home}/apps/${made.app_id}/releases`, { version: '1', metadata: { tool: toolId } });
  const missing = { ...first, tool_id: toolId, tool_instance_id: null };
  const both = await ask();
  expect(both).toMatchObject({ total: 2, all_satisfied: false });
  expect(both.requirements).toEqual(expect.arrayContaining([satisfied, missing]));
  // one that was never finished does not hide that of the workspace
  await initiate(ann, ofNamespace, instanceId);
  expect((await ask()).requirements).toEqual(expect.arrayContaining([satisfied, missing]));
  const { connection_id } = await connect(ann, server, ofNamespace, instanceId);
  await app.database.prisma.connection.update({ where: { id: connection_id }, data: { status: 'needs_reauth' } });
  expect((await ask()).requirements).toEqual(expect.arrayContaining([{ ...first, status: 'needs_reauth' }, missing]));
  expect(await ann.call('GET', `${ofNamespace}/requirements?app_id=app_x`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'app' } },
  });
});

test('requirements: what the steps of an app use, in REST and in GraphQL', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const make = async (name: string) =>
    (await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name })).body.app_id;
  const [appId, other] = [await make('Shop'), await make('Other')];
  const withSteps = async (of: string, steps: object[]) => {
    const stages = [{ name: 'Work', steps: steps.map((step) => ({ name: 'Send', step_type: 'tool', ...step })) }];
    const answer = await ann.call('POST', `${ann.home}/apps/${of}/augmentations`, { name: 'Mails', stages });
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  };
  const ask = async (of = appId) => {
    const { body } = await ann.call<object>('GET', `${ofNamespace}/requirements?app_id=${of}`);
    const { data } = await ann.ask<{ connectionRequirements: object }>(
      `{ connectionRequirements(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", namespaceId: "default",
        appId: "${of}") { total allSatisfied requirements { toolInstanceId satisfied } } }`,
    );
    return [body, data!.connectionRequirements];
  };
  const shown = (...requirements: [id: string | null, satisfied: boolean][]) => {
    const total = requirements.length;
    const isAll = requirements.every(([, satisfied]) => satisfied);
    return [
      {
        requirements: requirements.map(([id, satisfied]) => ({ tool_instance_id: id, satisfied })),
        total,
        all_satisfied: isAll,
      },
      {
        requirements: requirements.map(([toolInstanceId, satisfied]) => ({ toolInstanceId, satisfied })),
        total,
        allSatisfied: isAll,
      },
    ];
  };
  await withSteps(other, [{ tool_instance_id: instanceId }]);
  expect(await ask()).toMatchObject(shown());
  await withSteps(appId, [{ tool_instance_id: instanceId }, { tool_instance_id: instanceId }]);
  expect(await ask()).toMatchObject(shown([instanceId, false]));
  await connect(ann, server, ofNamespace, instanceId);
  expect(await ask()).toMatchObject(shown([instanceId, true]));
  // what only another namespace can use does not serve here, nor does what is named in a config
  const { body } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Elsewhere' });
  const toolId = await makeTool(ann, server.service);
  const elsewhere = await makeInstanceAt(server, ann, { toolId, namespaceId: body.namespace_id });
  const inConfig = await makeInstanceAt(server, ann);
  await withSteps(appId, [{ tool_instance_id: elsewhere }, { config: { call: { instance: inConfig } } }]);
  const [rest] = (await ask()) as [{ requirements: { tool_id: string; tool_instance_id: string | null }[] }];
  expect(rest.requirements.map(({ tool_instance_id }) => tool_instance_id)).toEqual(
    expect.arrayContaining([instanceId, inConfig, null]),
  );
  expect(rest).toMatchObject({ total: 3, all_satisfied: false });
  expect(rest.requirements.find(({ tool_instance_id }) => tool_instance_id === null)!.tool_id).toBe(toolId);
});

test('GraphQL: nested lists, node, and the version for a deletion', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const { body } = await ann.call<Connection>('POST', ofNamespace, { tool_instance_id: instanceId, api_key: 'k' });
  const { data } = await ann.ask<{ node: unknown; workspace: unknown }>(
    `query ($orgId: ID!, $workspaceId: ID!, $id: ID!) {
      node(id: $id) { ... on ToolAuthorization { status resourceVersion namespace { slug } createdByUser { id } } }
      workspace(orgId: $orgId, id: $workspaceId) {
        connections { totalCount nodes { id } }
        namespaces { nodes { slug connections { totalCount nodes { id toolInstanceId } } } } } }`,
    { orgId: ann.orgId, workspaceId: ann.workspaceId, id: body.connection_id },
  );
  const [id, toolInstanceId] = [body.connection_id, instanceId];
  expect(data).toEqual({
    node: {
      status: 'connected',
      resourceVersion: 1,
      namespace: { slug: 'default' },
      createdByUser: { id: ann.userId },
    },
    workspace: {
      connections: { totalCount: 1, nodes: [{ id }] },
      namespaces: { nodes: [{ slug: 'default', connections: { totalCount: 1, nodes: [{ id, toolInstanceId }] } }] },
    },
  });
  const url = `${ofNamespace}/${instanceId}`;
  const remove = (version: number) =>
    app.server.inject({ method: 'DELETE', url, headers: { ...ann.headers, 'if-match': `"${version}"` } });
  expect((await remove(7)).statusCode).toBe(412);
  expect((await remove(1)).statusCode).toBe(200);
});

test('a stranger learns nothing', async () => {
  const { ann, instanceId, ofNamespace } = await withInstance(app, server);
  const bob = await register(app, { name: 'bob' });
  expect((await bob.call('GET', ofNamespace)).status).toBe(403);
  expect((await bob.call('POST', ofNamespace, { tool_instance_id: instanceId, api_key: 'k' })).status).toBe(403);
  expect((await ann.call('POST', ofNamespace, { tool_instance_id: instanceId, api_key: 'k' })).status).toBe(201);
});

test('tokens are of who made the exchange: whoever began the connection cannot send them elsewhere', async () => {
  const ann = await register(app, { name: 'ann' });
  const member = await colleague(app, ann, 'member');
  const toolId = await makeTool(ann, server.service);
  const instanceId = await makeInstance({ ...member, home: ann.home, orgId: ann.orgId }, { toolId });
  await app.database.prisma.toolInstance.update({
    where: { id: instanceId },
    data: { clientId: server.clientId, clientSecretVaultId: (await makeClient(ann, server)).client_secret_vault_id },
  });
  const base = `${ann.home}/connections`;
  const steer = (prefix: string) =>
    member.call('PUT', `${ann.home}/tool-instances/${instanceId}`, { auth_config: { prefix } });
  const needsReveal = { status: 403, body: { details: { required_permission: 'secret:reveal' } } };
  const { connection_id: id } = await initiate(member, base, instanceId);
  expect((await steer('a')).status).toBe(200);
  // from the moment on when somebody else is at the provider
  const begun = await initiate(ann, base, instanceId);
  expect(begun.connection_id).toBe(id);
  expect(await steer('b')).toMatchObject(needsReveal);
  const done = await exchange<Connection>(ann, server.consent(begun.authorization_url), begun.state);
  expect(done).toMatchObject({ status: 200, body: { connection_id: id } });
  expect((await rowOf(app, id)).createdBy).toBe(member.userId);
  const { pool } = app.database;
  await pool.query(`update oauth_states set expires_at = now() - interval '1 hour' where tool_instance_id = $1`, [
    instanceId,
  ]);
  expect(await steer('c')).toMatchObject(needsReveal);
  // a refresh makes them nobody else's
  await app.database.prisma.connection.update({ where: { id }, data: { refreshAt: new Date() } });
  await app.services.connectionRefresh.refreshDue({ signal: new AbortController().signal });
  await waitFor(async () => expect((await rowOf(app, id)).lastRefreshedAt).not.toBeNull());
  expect(await steer('d')).toMatchObject(needsReveal);
  expect((await ann.call('PUT', `${ann.home}/tool-instances/${instanceId}`, { auth_config: {} })).status).toBe(200);
});
