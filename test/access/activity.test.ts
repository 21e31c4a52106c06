import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Calls, callsOf } from '../support/calls.ts';
import { type Person, register } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';

let app: TestApp;
let api: Calls;
let user: Person;
let stranger: Person;
let number = 0;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
  user = await register(app);
  stranger = await register(app);
});
afterAll(() => app.close());

/** The records of one request. */
async function recordsOf(request: (headers: Record<string, string>) => Promise<unknown>) {
  const traceId = `activity-${++number}`;
  await request({ ...user.headers, 'x-trace-id': traceId });
  return recordsWith(traceId);
}

async function recordsWith(traceId: string) {
  await app.services.activity.flush();
  return app.database.prisma.activity.findMany({ where: { traceId } });
}

const workspaces = () => `/v1/orgs/${user.orgId}/workspaces`;

describe('a record of what was done', () => {
  it('says who did what to what, from where, with which outcome', async () => {
    const [record, ...more] = await recordsOf((headers) =>
      api.get(`${workspaces()}/${user.workspaceId}?x=secret`, headers),
    );
    expect(more).toEqual([]);
    expect(record).toMatchObject({
      orgId: user.orgId,
      userId: user.userId,
      workspaceId: user.workspaceId,
      principalType: 'user',
      principalId: user.userId,
      method: 'GET',
      path: `${workspaces()}/${user.workspaceId}`,
      resourceType: 'workspace',
      resourceId: user.workspaceId,
      action: 'read',
      statusCode: 200,
      success: true,
      errorCode: null,
    });
    expect(record!.durationMs).toBeGreaterThanOrEqual(0);
  });

  it('is one for a list', async () => {
    expect(await recordsOf((headers) => api.get(workspaces(), headers))).toMatchObject([
      { action: 'list', resourceType: 'workspace', statusCode: 200 },
    ]);
  });

  it('is there for a change as soon as it is answered', async () => {
    await api.put(
      `${workspaces()}/${user.workspaceId}`,
      { name: 'recorded' },
      { ...user.headers, 'x-trace-id': 'a-change' },
    );
    expect(await app.database.prisma.activity.findMany({ where: { traceId: 'a-change' } })).toMatchObject([
      { action: 'update', resourceType: 'workspace', statusCode: 200 },
    ]);
  });

  it('shows the status of the answer: 201 for what was made', async () => {
    const records = await recordsOf((headers) =>
      api.post(workspaces(), { organization_id: user.orgId, name: 'made' }, headers),
    );
    expect(records).toMatchObject([{ action: 'create', resourceType: 'workspace', statusCode: 201, success: true }]);
  });

  it('is one for each root field of GraphQL', async () => {
    const records = await recordsOf((headers) => api.graphql('{ a: me { id } b: me { id } }', {}, headers));
    expect(records.map((record) => `${record.action} ${record.resourceType} ${record.path}`)).toEqual([
      'read user /graphql',
      'read user /graphql',
    ]);
  });

  it('never holds a body', async () => {
    const [record] = await recordsOf((headers) =>
      api.put(`/v1/users/${user.userId}`, { bio: 'a marker in a body' }, headers),
    );
    expect(JSON.stringify(record)).not.toContain('a marker in a body');
    expect(record!.metadata).toEqual({ fields: ['bio'] });
  });
});

describe('a record of a failure', () => {
  it.each([
    [422, 'VALIDATION_ERROR', () => `${workspaces()}?limit=1000`],
    [404, 'RESOURCE_NOT_FOUND', () => `${workspaces()}/ws_00000000000000000000000000`],
  ])('shows the status %s and the error %s', async (statusCode, errorCode, url) => {
    const records = await recordsOf((headers) => api.get(url(), headers));
    expect(records).toMatchObject([
      { resourceType: 'workspace', userId: user.userId, statusCode, success: false, errorCode },
    ]);
  });

  it('shows that a stranger was refused, in no list but that of the organization', async () => {
    const records = await recordsOf((headers) => api.get(`/v1/orgs/${stranger.orgId}/workspaces`, headers));
    expect(records).toMatchObject([
      { resourceType: 'workspace', orgId: stranger.orgId, statusCode: 403, success: false, errorCode: 'FORBIDDEN' },
    ]);
    expect(records).toMatchObject([{ userId: null, named: { user_id: user.userId } }]);
  });

  it('is there for a change that was refused', async () => {
    const url = `${workspaces()}/${user.workspaceId}/members/${stranger.userId}`;
    const records = await recordsOf((headers) => api.patch(url, { role: 'viewer' }, headers));
    expect(records).toMatchObject([
      { action: 'update', resourceType: 'workspace_member', statusCode: 404, success: false },
    ]);
  });

  it('is one for each root field of GraphQL that failed', async () => {
    const query = `{ a: me { id } b: user(id: "usr_00000000000000000000000000") { id } }`;
    await api.graphql(query, {}, { ...user.headers, 'x-trace-id': 'two-fields' });
    // a failure that leaves no data is answered at once, perhaps before the other field has ended
    await waitFor(async () => {
      const records = await recordsWith('two-fields');
      expect(records.map((record) => `${record.statusCode} ${record.errorCode}`).sort()).toEqual([
        '200 null',
        '404 RESOURCE_NOT_FOUND',
      ]);
    });
  });

  it('is not written for strangers', async () => {
    expect(await recordsOf(({ 'x-trace-id': traceId }) => api.get('/v1/auth/me', { 'x-trace-id': traceId! }))).toEqual(
      [],
    );
  });
});

describe('sign-ins', () => {
  it('are recorded: in and out', async () => {
    const credentials = { username: user.username, password: user.password };
    let accessToken = '';
    const login = await recordsOf(async ({ 'x-trace-id': traceId }) => {
      accessToken = (await api.post('/v1/auth/login', credentials, { 'x-trace-id': traceId! })).json().access_token;
    });
    expect(login).toMatchObject([
      {
        action: 'login',
        resourceType: 'user',
        userId: user.userId,
        orgId: user.orgId,
        principalType: 'user',
        statusCode: 200,
      },
    ]);
    const logout = await recordsOf(({ 'x-trace-id': traceId }) =>
      api.post('/v1/auth/logout', undefined, { authorization: accessToken, 'x-trace-id': traceId! }),
    );
    expect(logout).toMatchObject([{ action: 'logout', resourceType: 'user', userId: user.userId, statusCode: 200 }]);
  });

  it('are recorded under who signed in, not under the token that the request carried', async () => {
    const credentials = { username: stranger.username, password: stranger.password };
    expect(await recordsOf((headers) => api.post('/v1/auth/login', credentials, headers))).toMatchObject([
      { userId: stranger.userId, principalId: stranger.userId },
    ]);
  });
});

describe('a clean stop', () => {
  it('loses no record', async () => {
    const node = await startTestApp({ env: { DATA_DIR: app.dataDir }, databaseUrl: app.database.url });
    const answers = await Promise.all(
      Array.from({ length: 60 }, () =>
        callsOf(node).get('/v1/auth/me', { ...user.headers, 'x-trace-id': 'before-the-stop' }),
      ),
    );
    expect(answers.every((answer) => answer.statusCode === 200)).toBe(true);
    await node.close();
    expect(await app.database.prisma.activity.count({ where: { traceId: 'before-the-stop' } })).toBe(60);
  });
});
