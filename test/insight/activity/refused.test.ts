import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/ids.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { openAcknowledged, openEvents } from '../../support/sockets.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
let owner: Person;
let member: Person;
let stranger: Person;
beforeAll(async () => {
  app = await startTestApp();
  stranger = await register(app, { name: 'stranger' });
});
afterAll(() => app.close());
beforeEach(async () => {
  owner = await register(app);
  member = await colleague(app, owner, 'member');
});

const org = () => `/v1/orgs/${owner.orgId}`;

interface Listed {
  total: number;
  activities: { path: string; resource_id: string | null; user_id: string | null; workspace_id: string | null }[];
}

async function listed(path: string, of: string): Promise<Listed['activities']> {
  await app.services.activity.flush();
  const { body } = await owner.call<Listed>('GET', `${path}/activity?limit=200`);
  expect(body.total).toBe(body.activities.length);
  return body.activities.filter((record) => record.path === of);
}

/** What of the organization has sums, once everything is summed. */
async function summed(orgId = owner.orgId): Promise<string[]> {
  await app.services.activity.flush();
  await waitFor(async () => {
    await app.database.pool.query('select fold_activity(10000)');
    const left = await app.database.pool.query(
      'select from activity a, activity_fold f where (a.xid, a.id) >= (f.xid, f.record_id)',
    );
    expect(left.rowCount).toBe(0);
  });
  const { rows } = await app.database.pool.query<{ name: string }>(
    `select distinct trim(scope || ' ' || user_id) as name from activity_sums where org_id = $1 order by 1`,
    [orgId],
  );
  return rows.map(({ name }) => name);
}

describe('a refused request of a stranger', () => {
  it('is in the list of the organization that it names, and in no other', async () => {
    const secret = newId('secret');
    const path = `${org()}/secrets/${secret}`;
    expect((await stranger.call('GET', path)).status).toBe(403);
    const tried = { resource_id: secret, user_id: stranger.userId };
    expect(await listed(org(), path)).toMatchObject([tried]);
    const inWorkspace = `${org()}/workspaces/${owner.workspaceId}`;
    expect((await stranger.call('GET', inWorkspace)).status).toBe(403);
    expect(await listed(org(), inWorkspace)).toMatchObject([
      { resource_id: owner.workspaceId, workspace_id: owner.workspaceId, user_id: stranger.userId },
    ]);
    expect(await listed(inWorkspace, inWorkspace)).toEqual([]);
  });

  it('is summed with the organization alone, whatever it makes up, by whichever face', async () => {
    const before = await summed();
    for (let i = 0; i < 3; i++) {
      const [workspace, app_, secret] = [newId('workspace'), newId('app'), newId('secret')];
      await stranger.call('GET', `${org()}/secrets/${secret}`);
      await stranger.call('PATCH', `${org()}/secrets/${secret}`, { name: 7 });
      await stranger.call('GET', `${org()}/workspaces/${workspace}/apps/${app_}`);
      await stranger.call('GET', `${org()}/workspaces/${owner.workspaceId}/apps/${app_}/namespaces/ns_x/entities`);
      await stranger.ask('query($org: ID!, $id: ID!) { secret(orgId: $org, id: $id) { id } }', {
        org: owner.orgId,
        id: secret,
      });
    }
    expect(await summed()).toEqual(before);
    const { body } = await owner.call<{ failed_requests: number }>('GET', `${org()}/activity/summary`);
    expect(body.failed_requests).toBe(15);
  });

  it('has no sums at all if there is no such organization', async () => {
    const orgId = newId('organization');
    expect((await stranger.call('GET', `/v1/orgs/${orgId}/secrets`)).status).toBe(403);
    expect(await summed(orgId)).toEqual([]);
    const records = await app.database.prisma.activity.findMany({
      where: { path: `/v1/orgs/${orgId}/secrets` },
      select: { orgId: true, userId: true, principalId: true, named: true },
    });
    expect(records).toEqual([
      { orgId: null, userId: null, principalId: stranger.userId, named: { org_id: orgId, user_id: stranger.userId } },
    ]);
  });
});

describe('a refused request of a member', () => {
  it('for something that is not there is a record of its place and of the member, not of what it names', async () => {
    const before = await summed();
    const made = newId('app');
    const path = `${org()}/workspaces/${owner.workspaceId}/apps/${made}`;
    expect((await owner.call('GET', path)).status).toBe(404);
    const tried = { resource_id: made, user_id: owner.userId, workspace_id: owner.workspaceId };
    expect(await listed(`${org()}/workspaces/${owner.workspaceId}`, path)).toMatchObject([tried]);
    const more = (await summed()).filter((scope) => !before.includes(scope));
    expect(more.filter((scope) => scope.includes(made))).toEqual([]);
  });

  it('for what they may not touch is a record of it', async () => {
    const { body } = await owner.call<{ secret_id: string }>('POST', `${org()}/secrets`, {
      name: 'a key',
      secret_type: 'api_key',
      value: { key: 'x' },
    });
    expect((await member.call('DELETE', `${org()}/secrets/${body.secret_id}`)).status).toBe(403);
    await app.services.activity.flush();
    const { data } = await owner.ask<{ secret: { activity: { nodes: object[]; totalCount: number } } }>(
      `query($org: ID!, $id: ID!) {
        secret(orgId: $org, id: $id) { activity(success: false) { totalCount nodes { userId statusCode } } }
      }`,
      { org: owner.orgId, id: body.secret_id },
    );
    expect(data.secret.activity).toEqual({ totalCount: 1, nodes: [{ userId: member.userId, statusCode: 403 }] });
  });
});

describe('what a member makes up in a real place', () => {
  it('makes no sums, by whatever way it is refused or not found', async () => {
    const home = `${org()}/workspaces/${owner.workspaceId}`;
    const viewer = await colleague(app, owner, 'viewer');
    await viewer.call('GET', `${org()}/secrets`);
    await member.call('GET', `${home}/namespaces/default/threads`);
    const before = await summed();
    const made = [newId('secret'), newId('tool'), newId('provider_account'), newId('thread'), newId('app')];
    const [secret, tool, account, thread, app_] = made;
    expect((await viewer.call('DELETE', `${org()}/secrets/${secret}`)).status).toBe(403);
    expect((await viewer.call('PUT', `${org()}/tools/${tool}`, { name: 'x' })).status).toBe(403);
    expect((await owner.call('PATCH', `${org()}/provider-accounts/${account}`, { name: 7 })).status).toBe(422);
    expect((await owner.call('PUT', `${home}/namespaces/default/threads/${thread}`, { title: 7 })).status).toBe(422);
    expect((await viewer.call('DELETE', `${home}/apps/${app_}`)).status).toBe(403);
    await owner.ask('query ($a: ID!, $b: ID!) { a: node(id: $a) { id } b: node(id: $b) { id } }', {
      a: secret,
      b: 'nothing',
    });
    const more = (await summed()).filter((scope) => !before.includes(scope));
    expect(more.filter((scope) => /^resource|^app|^namespace/.test(scope))).toEqual([]);
    const { body } = await owner.call<Listed>('GET', `${org()}/activity?limit=200`);
    const named = body.activities.map(({ resource_id }) => resource_id);
    for (const id of made) expect(named).toContain(id);
  });
});

describe('a record of what a request names otherwise', () => {
  const recordsOf = async (path: string) => {
    await app.services.activity.flush();
    return app.database.prisma.activity.findMany({
      where: { path },
      orderBy: { id: 'asc' },
      select: { action: true, resourceId: true, namespaceId: true },
    });
  };

  it('has the identifier of the namespace `default`', async () => {
    const namespaces = `${org()}/workspaces/${owner.workspaceId}/namespaces`;
    const { id } = await app.database.prisma.namespace.findFirstOrThrow({
      where: { workspaceId: owner.workspaceId, slug: 'default' },
    });
    const threads = `${namespaces}/default/threads`;
    await owner.call('GET', threads);
    await owner.call('POST', threads, { title: 'a thread' });
    await owner.call('POST', threads, { title: 7 });
    expect(await recordsOf(threads)).toEqual([
      { action: 'list', resourceId: null, namespaceId: id },
      { action: 'create', resourceId: expect.stringMatching(/^thr_/) as string, namespaceId: id },
      { action: 'create', resourceId: null, namespaceId: id },
    ]);
    await owner.call('GET', `${namespaces}/default`);
    await owner.call('DELETE', `${namespaces}/default`);
    expect(await recordsOf(`${namespaces}/default`)).toEqual([
      { action: 'read', resourceId: id, namespaceId: id },
      { action: 'delete', resourceId: id, namespaceId: id },
    ]);
  });

  it('has the identifier of an entitlement, which requests name by its model', async () => {
    const entitlements = `${org()}/workspaces/${owner.workspaceId}/model-entitlements`;
    await owner.call('POST', `${org()}/model-catalog`, { logical_model_id: 'large', name: 'Large' });
    await owner.call('POST', entitlements, { logical_model_id: 'large' });
    const one = `${entitlements}/large`;
    await owner.call('PATCH', one, { enabled: false });
    await owner.call('PATCH', one, { enabled: 7 });
    await member.call('DELETE', one);
    const { id } = await app.database.prisma.modelEntitlement.findFirstOrThrow({
      where: { workspaceId: owner.workspaceId },
    });
    expect((await recordsOf(one)).map(({ resourceId }) => resourceId)).toEqual([id, id, id]);
    await app.services.activity.flush();
    const { data } = await owner.ask<{ modelEntitlement: { activity: { totalCount: number } } }>(
      `query ($org: ID!, $ws: ID!) {
        modelEntitlement(orgId: $org, workspaceId: $ws, logicalModelId: "large") { activity { totalCount } }
      }`,
      { org: owner.orgId, ws: owner.workspaceId },
    );
    expect(data.modelEntitlement.activity.totalCount).toBe(4);
  });
});

describe('a GraphQL operation that is refused before it runs', () => {
  const LIST = `query ($org: ID!, $ws: ID! = "ws_00000000000000000000000000", $first: Int = 5) {
    workspaceActivity(orgId: $org, workspaceId: $ws, first: $first) { totalCount }
  }`;
  let known: () => Record<string, unknown>;
  let ofList: object;
  let count = 0;
  beforeEach(() => {
    known = () => ({ org: owner.orgId, ws: owner.workspaceId });
    ofList = {
      action: 'list',
      resourceType: 'activity',
      orgId: owner.orgId,
      workspaceId: owner.workspaceId,
      userId: owner.userId,
    };
  });

  interface Request {
    query?: string;
    variables?: object | null;
    extensions?: object;
    operationName?: string;
  }
  const recordsOf = async (where: object) => {
    await app.services.activity.flush();
    return app.database.prisma.activity.findMany({ where, orderBy: { id: 'asc' } });
  };
  /** What a request left. */
  const recordsAfter = async (request: Request, headers: object = owner.headers, method: 'POST' | 'GET' = 'POST') => {
    const traceId = `before-${++count}`;
    const texts = Object.entries(request).map(([key, part]: [string, unknown]) => [
      key,
      typeof part === 'string' ? part : JSON.stringify(part),
    ]);
    const search = new URLSearchParams(texts as string[][]).toString();
    const answer = await app.server.inject({
      method,
      url: method === 'GET' ? `/graphql?${search}` : '/graphql',
      headers: { 'content-type': 'application/json', 'x-trace-id': traceId, ...headers },
      ...(method === 'POST' && { payload: JSON.stringify(request) }),
    });
    const { errors } = answer.json<{ errors?: object[] }>();
    expect(errors, answer.body).not.toEqual([]);
    expect(errors, answer.body).toBeDefined();
    return recordsOf({ traceId });
  };
  const WRONG = { statusCode: 422, success: false, errorCode: 'VALIDATION_ERROR' };
  const TOO_LARGE = { statusCode: 400, success: false, errorCode: 'OPERATION_TOO_LARGE' };
  const INVALID = { statusCode: 400, success: false, errorCode: 'INVALID_REQUEST' };

  it('because of its variables has a record of what they name', async () => {
    const variables = { ...known(), first: 'five' };
    expect(await recordsAfter({ query: LIST, variables })).toMatchObject([{ ...ofList, ...WRONG, path: '/graphql' }]);
    expect(await recordsAfter({ query: LIST, variables }, owner.headers, 'GET')).toMatchObject([
      { ...ofList, ...WRONG },
    ]);
    // defaults of the document; what is no identifier may be anything, such as a secret in the wrong place
    const other = { ...variables, org: 'no identifier', ws: undefined };
    const [record] = await recordsAfter({ query: LIST, variables: other });
    expect(record).toMatchObject({ ...WRONG, orgId: owner.orgId, workspaceId: null, resourceId: null });
    expect(record!.named).toEqual({ workspace_id: 'ws_00000000000000000000000000' });
    const own = { query: 'query ($id: ID!) { workspace(orgId: "o", id: $id) { id } }', variables: { id: [1] } };
    expect(await recordsAfter(own)).toMatchObject([{ action: 'read', resourceType: 'workspace', ...WRONG }]);
    const node = { query: 'query ($id: ID!) { node(id: $id) { id } }' };
    expect(await recordsAfter(node)).toMatchObject([{ action: 'read', resourceType: 'node', ...WRONG }]);
  });

  it('because of its size has one record, however many fields it has, of the first', async () => {
    const large = 'workspaces(orgId: $org, first: 200) { nodes { apps(first: 200) { nodes { id } } } }';
    const query = `query ($org: ID!, $no: Boolean = false) {
      x: app(orgId: $org, workspaceId: "w", id: "a") @include(if: $no) { id }
      __typename
      ...First
      ${Array.from({ length: 9 }, (_, i) => `a${i}: ${large}`).join(' ')}
    }
    fragment First on Query { ... on Query { secret(orgId: $org, id: "sec_x") { id } } ...Second }
    fragment Second on Query { organizations { totalCount } }`;
    const [record, ...more] = await recordsAfter({ query, variables: known() });
    expect(record).toMatchObject({ action: 'read', resourceType: 'secret', orgId: owner.orgId, ...TOO_LARGE });
    expect(more).toEqual([]);
  });

  it('because of its rate has one record', async () => {
    const { body } = await owner.call<{ plaintext_token: string }>('POST', `${org()}/api-tokens`, {
      name: 'slow',
      rate_limit_rps: 1,
      rate_limit_burst: 2,
    });
    const query = `query ($org: ID!) {
      ${Array.from({ length: 5 }, (_, i) => `a${i}: workspaces(orgId: $org) { totalCount }`).join(' ')}
    }`;
    const headers = { authorization: `Bearer ${body.plaintext_token}` };
    expect(await recordsAfter({ query, variables: known() }, headers)).toMatchObject([
      { action: 'list', resourceType: 'workspace', statusCode: 429, errorCode: 'RATE_LIMIT_EXCEEDED' },
    ]);
  });

  it('because its document is invalid has a record of the first root field that there is', async () => {
    const query = (more: string) => `query A { nothing { at all } workspace(orgId: $org, id: $ws) { id ${more} } }`;
    const ofWorkspace = { action: 'read', resourceType: 'workspace', orgId: owner.orgId, ...INVALID };
    expect(await recordsAfter({ query: query('none'), variables: known() })).toMatchObject([ofWorkspace]);
    const place = `orgId: "${owner.orgId}", workspaceId: "${owner.workspaceId}"`;
    expect(await recordsAfter({ query: `{ workspaceActivity(${place}, first: "x") { a } }` })).toMatchObject([
      { ...ofList, ...INVALID },
    ]);
    const cycle = `{ ...A } fragment A on Query { ...B ...A } fragment B on Query { ...A organizations { no } }`;
    expect(await recordsAfter({ query: cycle })).toMatchObject([{ resourceType: 'organization', ...INVALID }]);
    const deep = `{ organizations ${'{ a '.repeat(40)}${'}'.repeat(40)} }`;
    expect(await recordsAfter({ query: deep })).toMatchObject([{ resourceType: 'organization', ...TOO_LARGE }]);
  });

  it('has none if it names no operation, or the caller is unknown', async () => {
    for (const request of [
      { query: '{ workspaces {' },
      { query: '{ nothing { id } }' },
      { query: '' },
      { query: `${LIST} query B { me { id } }`, variables: known(), operationName: 'C' },
      { query: 'query A { me { no } } query B { me { no } }' },
      { query: '{ __typename @no __schema { no } }' },
      { extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } },
    ])
      expect(await recordsAfter(request), JSON.stringify(request)).toEqual([]);
    expect(await recordsAfter({ query: LIST, variables: { first: 'five' } }, {})).toEqual([]);
  });

  it('because of an argument that only execution checks has a record, by a plan too', async () => {
    const query = `query ($org: ID!, $ws: ID!, $hours: Int = 3) {
      a: organizations { totalCount }
      b: workspaceActivitySummary(orgId: $org, workspaceId: $ws, hours: $hours) { totalRequests }
    }`;
    const request = { query, variables: { ...known(), hours: null } };
    for (let i = 0; i < 3; i++) {
      const records = await recordsAfter(request);
      const wrong = records.filter(({ success }) => !success);
      expect(wrong).toMatchObject([
        { resourceType: 'activity', action: 'read', workspaceId: owner.workspaceId, ...WRONG },
      ]);
      expect(records.length).toBeLessThanOrEqual(2);
    }
  });

  it('has a record over a stream and over a socket', async () => {
    const subscription =
      'subscription ($org: ID!, $ws: ID!) { workspaceEvents(orgId: $org, workspaceId: $ws) { __typename } }';
    const variables = { org: owner.orgId, ws: [7] };
    const url = await app.listen();
    const traceId = `before-${++count}`;
    const stream = await openEvents(`${url}/graphql`, {
      method: 'POST',
      headers: {
        ...owner.headers,
        accept: 'text/event-stream',
        'content-type': 'application/json',
        'x-trace-id': traceId,
      },
      body: JSON.stringify({ query: subscription, variables }),
    });
    await stream.ended;
    expect(await recordsOf({ traceId })).toMatchObject([{ orgId: owner.orgId, ...WRONG, method: 'POST' }]);
    const socket = await openAcknowledged(url, owner.headers.authorization);
    const ofSocket = () => recordsOf({ userId: owner.userId, method: 'WS' });
    const answered = (id: string) => socket.next((message) => message.id === id);
    socket.send({ type: 'subscribe', id: '1', payload: { query: subscription, variables } });
    await answered('1');
    expect(await ofSocket()).toMatchObject([{ orgId: owner.orgId, ...WRONG }]);
    socket.send({ type: 'subscribe', id: '2', payload: { query: LIST, variables: { ...known(), first: 'x' } } });
    await answered('2');
    expect((await ofSocket()).slice(1)).toMatchObject([{ ...ofList, ...WRONG }]);
    socket.send({
      type: 'subscribe',
      id: '3',
      payload: { query: LIST.replace('totalCount', 'no'), variables: known() },
    });
    await answered('3');
    expect((await ofSocket()).slice(2)).toMatchObject([{ ...ofList, ...INVALID }]);
    socket.close();
  });
});
