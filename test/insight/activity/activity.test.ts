// own process: a process prepares a thousand statements, and other files may have used them up
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Account, colleague, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitUntil } from '../../support/wait.ts';

interface Record {
  id: string;
  timestamp: string;
  user_id: string;
  action: string;
  resource_type: string;
  resource_id: string | null;
  path: string;
  success: boolean;
}
interface List {
  activities: Record[];
  total: number;
  has_more: boolean;
  next_cursor: string | null;
}
interface Summary {
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
  avg_duration_ms: number;
  total_tokens_used: number;
  by_action: { [action: string]: number };
  by_resource: { [resource: string]: number };
  start_time: string;
  end_time: string;
}

let app: TestApp;
let other: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  other = await app.another();
});
afterAll(() => app.close());

/** Waits until everything that was recorded is written, on both nodes. */
const written = () => Promise.all([app.services.activity.flush(), other.services.activity.flush()]);

const org = ({ orgId }: Account) => `/v1/orgs/${orgId}`;
const workspace = ({ orgId, workspaceId }: Account) => `${org({ orgId } as Account)}/workspaces/${workspaceId}`;

async function list(who: Person, path: string): Promise<List> {
  await written();
  const { status, body } = await who.call<List>('GET', path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

const refused = async (who: Person, path: string): Promise<[number, unknown]> => {
  const { status, body } = await who.call<{ details: { required_permission?: string } }>('GET', path);
  return [status, body.details?.required_permission];
};

const made = async (who: Person, path: string, key: string, payload: object): Promise<string> =>
  (await who.call<{ [name: string]: string }>('POST', path, payload)).body[key]!;

describe('the list of activity', () => {
  it('has the exact record of each operation, with all fields of the spec', async () => {
    const ann = await register(app, { name: 'ann' });
    const appId = await made(ann, `${workspace(ann)}/apps`, 'app_id', { name: 'a' });
    const { activities, total } = await list(ann, `${workspace(ann)}/apps/${appId}/activity`);
    expect(total).toBe(1);
    expect(activities).toEqual([
      {
        id: expect.stringMatching(/^act_/) as string,
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
        trace_id: expect.any(String) as string,
        user_id: ann.userId,
        workspace_id: ann.workspaceId,
        app_id: appId,
        principal_type: 'user',
        principal_id: ann.userId,
        token_id: null,
        token_type: null,
        method: 'POST',
        path: `${workspace(ann)}/apps`,
        resource_type: 'app',
        resource_id: appId,
        action: 'create',
        status_code: expect.any(Number) as number,
        success: true,
        error_code: null,
        duration_ms: expect.any(Number) as number,
        execution_id: null,
        augmentation_id: null,
        stages_completed: null,
        total_stages: null,
        token_usage: {},
        metadata: {},
      },
    ]);
  });

  it('is walked page by page, newest first, whether records are summed or not', async () => {
    const ann = await register(app, { name: 'ann' });
    const names = ['one', 'two', 'three', 'four', 'five'];
    for (const [index, name] of names.entries()) {
      await ann.call('PUT', workspace(ann), { name });
      if (index === 2) await app.database.pool.query('select fold_activity(1000)');
    }
    await written();
    const until = new Date().toISOString();
    const seen: Record[] = [];
    let page = await list(ann, `${workspace(ann)}/activity?limit=2&end_time=${until}`);
    const totals = [page.total];
    for (;;) {
      seen.push(...page.activities);
      if (!page.has_more) break;
      page = await list(ann, `${workspace(ann)}/activity?limit=2&end_time=${until}&cursor=${page.next_cursor!}`);
      totals.push(page.total);
    }
    expect(page.next_cursor).toBeNull();
    expect(new Set(totals)).toEqual(new Set([seen.length]));
    expect(seen.filter(({ action }) => action === 'update')).toHaveLength(5);
    const keys = seen.map(({ timestamp, id }) => `${timestamp} ${id}`);
    expect(keys).toEqual(keys.toSorted().toReversed());
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('is planned once on a connection, and not for each request', async () => {
    // on connections that have planned nothing before, over tables that others do not read
    const fresh = await startTestApp({ ownDatabase: true });
    onTestFinished(() => fresh.close());
    const ann = await register(fresh, { name: 'ann' });
    await ann.call('PUT', workspace(ann), { name: 'one' });
    const { pool } = fresh.database;
    // PostgreSQL expects a million records on each page of the table, and does not find out meanwhile what there is
    await pool.query(`do $$ declare name text; begin
      for name in select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
        execute format('alter table %I set (autovacuum_enabled = off)', name);
      end loop; end $$`);
    await pool.query(`update pg_class set reltuples = 1e6, relpages = 1 where oid = 'activity_first'::regclass`);
    const log = logQueries(pool);
    const { next_cursor: cursor } = await list(ann, `${org(ann)}/activity?limit=1`);
    const time = new Date().toISOString();
    for (const query of [
      `${org(ann)}/activity?limit=1`,
      `${org(ann)}/activity?limit=1&cursor=${cursor!}`,
      `${workspace(ann)}/activity?start_time=2026-01-01&end_time=${time}`,
      `${org(ann)}/users/${ann.userId}/activity?workspace_id=${ann.workspaceId}`,
    ]) {
      const isPlannedOnce = async () => {
        const sent = await log.during(() => ann.call('GET', query));
        const pages = sent.filter((text) => /from activity t where .* order by/s.test(text));
        expect(pages).toHaveLength(1);
        const plans = 'select 1 from pg_prepared_statements where statement = $1 and generic_plans > 0';
        // each connection plans for itself, and any of them may have read the page
        const all = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.query(plans, pages)));
        return all.some(({ rowCount }) => rowCount === 1);
      };
      await waitUntil(isPlannedOnce);
    }
  });

  it('takes times in every ISO form: the start belongs to it, the end does not', async () => {
    const ann = await register(app, { name: 'ann' });
    await ann.call('PUT', workspace(ann), { name: 'one' });
    const [update] = (await list(ann, `${workspace(ann)}/activity`)).activities;
    const at = update!.timestamp;
    const naive = at.replace('Z', '');
    const ids = async (query: string) =>
      (await list(ann, `${workspace(ann)}/activity?${query}`)).activities
        .filter(({ action }) => action === 'update')
        .map(({ id }) => id);
    for (const form of [at, naive, `${naive}%2B00:00`, naive.replace('T', ' ').replace(' ', '%20')])
      expect(await ids(`start_time=${form}`), form).toEqual([update!.id]);
    expect(await ids(`end_time=${at}`)).toEqual([]);
    const later = new Date(Date.parse(at) + 1).toISOString();
    expect(await ids(`start_time=${at}&end_time=${later}`)).toEqual([update!.id]);
    expect(await ids(`start_time=${later}`)).toEqual([]);
    expect(await ids(`start_time=${at}&end_time=${at}`)).toEqual([]);
    expect((await list(ann, `${workspace(ann)}/activity?start_time=${at}&end_time=${later}`)).total).toBe(1);
  });

  it('refuses an end before the start, a limit out of bounds and the cursor of other filters', async () => {
    const ann = await register(app, { name: 'ann' });
    const path = `${org(ann)}/activity`;
    const reversed = await ann.call('GET', `${path}?start_time=2026-02-01T00:00:00Z&end_time=2026-01-01`);
    expect([reversed.status, reversed.body]).toEqual([
      422,
      { detail: [expect.objectContaining({ type: 'value_error', loc: ['query', 'end_time'] }) as object] },
    ]);
    for (const limit of [0, 201, 'many']) expect((await ann.call('GET', `${path}?limit=${limit}`)).status).toBe(422);
    await ann.call('PUT', workspace(ann), { name: 'one' });
    const { next_cursor } = await list(ann, `${path}?limit=1`);
    for (const query of ['start_time=2026-01-01', 'end_time=2099-01-01'])
      expect((await ann.call('GET', `${path}?limit=1&cursor=${next_cursor!}&${query}`)).status).toBe(422);
    expect((await ann.call('GET', `${workspace(ann)}/activity?limit=1&cursor=${next_cursor!}`)).status).toBe(422);
    expect((await ann.call('GET', `${path}?limit=1&cursor=${next_cursor!}`)).status).toBe(200);
  });

  it('shows members their own records, and administrators those of everybody', async () => {
    const ann = await register(app, { name: 'ann' });
    const ben = await colleague(app, ann, 'member');
    const benHere = { ...ben, orgId: ann.orgId, workspaceId: ann.workspaceId };
    await ann.call('PUT', workspace(ann), { name: 'by ann' });
    await ben.call('PUT', workspace(ann), { name: 'by ben' });
    for (const path of [`${org(ann)}/activity`, `${workspace(ann)}/activity`]) {
      const own = await list(benHere, path);
      expect(new Set(own.activities.map(({ user_id }) => user_id))).toEqual(new Set([ben.userId]));
      expect(own.activities.map(({ action, success }) => [action, success])).toContainEqual(['update', false]);
      expect(own.total).toBe(own.activities.length);
      const all = await list(ann, path);
      expect(new Set(all.activities.map(({ user_id }) => user_id))).toEqual(new Set([ann.userId, ben.userId]));
      expect(all.total).toBe(all.activities.length);
    }
    expect((await list(benHere, `${org(ann)}/users/${ben.userId}/activity`)).total).toBeGreaterThan(0);
    expect((await list(ann, `${org(ann)}/users/${ben.userId}/activity`)).total).toBeGreaterThan(0);
    for (const end of ['activity', 'activity/summary']) {
      expect(await refused(benHere, `${org(ann)}/users/${ann.userId}/${end}`)).toEqual([403, 'activity:read']);
      expect(await refused(ann, `${org(ann)}/users/usr_nobody/${end}`)).toEqual([404, undefined]);
    }
    const elsewhere = await list(ann, `${org(ann)}/users/${ben.userId}/activity?workspace_id=${ann.workspaceId}`);
    expect(elsewhere.activities.every(({ path }) => path.includes(ann.workspaceId))).toBe(true);
    expect(elsewhere.total).toBe(elsewhere.activities.length);
    const stranger = await register(app, { name: 'stranger' });
    for (const path of [`${org(ann)}/activity`, `${org(ann)}/activity/summary`])
      expect(await refused(stranger, path)).toEqual([403, 'organization:access']);
  });

  it('shows a token that is restricted to a place only the records of that place', async () => {
    const ann = await register(app, { name: 'ann' });
    const second = await made(ann, `${org(ann)}/workspaces`, 'workspace_id', { organization_id: ann.orgId, name: 'b' });
    await ann.call('PUT', workspace(ann), { name: 'first' });
    await ann.call('PUT', `${org(ann)}/workspaces/${second}`, { name: 'second' });
    const token = async (input: object) => {
      const { headers } = await issueToken(app, ann, { scopes: ['read'], ...input });
      return async <T>(path: string) => {
        await written();
        const answer = await app.server.inject({ method: 'GET', url: path, headers });
        return { status: answer.statusCode, body: answer.json<T>() };
      };
    };
    const restricted = await token({ workspace_ids: [second] });
    const { body } = await restricted<List>(`${org(ann)}/activity`);
    expect(body.activities.length).toBeGreaterThan(0);
    expect(body.activities.filter(({ path }) => !path.includes(second) && path !== `${org(ann)}/workspaces`)).toEqual(
      [],
    );
    expect(body.total).toBe(body.activities.length);
    expect((await restricted(`${workspace(ann)}/activity`)).status).toBe(403);
    const summary = await restricted<Summary>(`${org(ann)}/activity/summary`);
    expect(summary.body.total_requests).toBe(body.total);
    const namespaceId = await made(ann, `${org(ann)}/workspaces/${second}/namespaces`, 'namespace_id', {
      name: 'n',
      slug: 'n',
    });
    const inNamespace = await token({ workspace_ids: [second], namespace_ids: [namespaceId] });
    // its creation
    expect((await inNamespace<List>(`${org(ann)}/activity`)).body).toMatchObject({
      activities: [{ action: 'create', resource_type: 'namespace', resource_id: namespaceId }],
      total: 1,
    });
    const free = await token({});
    expect((await free<List>(`${org(ann)}/activity`)).body.total).toBeGreaterThan(body.total);
  });

  it('asks of a token for `activity:read`, which gives what its owner may read', async () => {
    const ann = await register(app, { name: 'ann' });
    const ben = await colleague(app, ann, 'member');
    const appId = await made(ann, `${workspace(ann)}/apps`, 'app_id', { name: 'a' });
    const inApp = `${workspace(ann)}/apps/${appId}`;
    const augmentation_id = await made(ann, `${inApp}/augmentations`, 'augmentation_id', { name: 'a' });
    const endpoint = await made(ann, `${inApp}/endpoints`, 'endpoint_id', { name: 'e', path: '/e', augmentation_id });
    await ben.call('GET', workspace(ann));
    const ofUser = (userId: string) => `${org(ann)}/users/${userId}/activity`;
    const all = [org(ann), workspace(ann)].flatMap((of) => [`${of}/activity`, `${of}/activity/summary`]);
    const parts = [`${inApp}/activity`, `${inApp}/endpoints/${endpoint}/activity`];
    const asked = async (owner: Person, permissions: string[], paths: readonly string[]) => {
      const { headers } = await issueToken(app, { orgId: ann.orgId, headers: owner.headers }, { permissions });
      await written();
      const answers = [];
      for (const url of paths) answers.push(await app.server.inject({ method: 'GET', url, headers }));
      return answers.map((answer) => ({ status: answer.statusCode, body: answer.json<List & Summary>() }));
    };
    const paths = [...all, ...parts, ofUser(ann.userId), `${ofUser(ann.userId)}/summary`];
    for (const { status, body } of await asked(ann, ['workspace:read', 'analytics:read'], paths)) {
      expect(status).toBe(403);
      expect(body).toMatchObject({ details: { required_permission: 'activity:read' } });
    }
    for (const { status } of await asked(ann, ['activity:read'], paths)) expect(status).toBe(200);
    const [everybody] = await asked(ann, ['activity:read'], all);
    expect(new Set(everybody!.body.activities.map(({ user_id }) => user_id))).toEqual(
      new Set([ann.userId, ben.userId]),
    );
    const [own, , , , others] = await asked(ben, ['activity:read'], [...all, ofUser(ann.userId)]);
    expect(new Set(own!.body.activities.map(({ user_id }) => user_id))).toEqual(new Set([ben.userId]));
    expect(others!.status).toBe(403);
  });

  it('has the same over GraphQL, with more filters, also below what has a history', async () => {
    const ann = await register(app, { name: 'ann' });
    const appId = await made(ann, `${workspace(ann)}/apps`, 'app_id', { name: 'a' });
    await ann.call('PUT', workspace(ann), { name: 'one' });
    await ann.call('GET', `${workspace(ann)}/apps/nothing`);
    await written();
    // the query itself is recorded, too
    const until = new Date().toISOString();
    const query = `query ($orgId: ID!, $workspaceId: ID!, $appId: ID!, $userId: ID!, $until: DateTime!) {
      all: organizationActivity(orgId: $orgId) { totalCount nodes { id } }
      updates: workspaceActivity(orgId: $orgId, workspaceId: $workspaceId, action: "update") {
        totalCount nodes { action user { id } workspace { id } resource { id } } }
      failed: organizationActivity(orgId: $orgId, success: false, userId: $userId) { totalCount nodes { errorCode } }
      apps: organizationActivity(orgId: $orgId, resourceType: "app", action: "create") { totalCount }
      one: organizationActivity(orgId: $orgId, resourceId: $appId) { totalCount nodes { action } }
      none: organizationActivity(orgId: $orgId, tokenId: "tok_none") { totalCount nodes { id } }
      app(orgId: $orgId, workspaceId: $workspaceId, id: $appId) {
        activity(endTime: $until) { totalCount nodes { action } } }
      workspace(orgId: $orgId, id: $workspaceId) { activity(action: "update") { totalCount } }
    }`;
    const { data, errors } = await ann.ask<{ [name: string]: unknown }>(query, {
      orgId: ann.orgId,
      workspaceId: ann.workspaceId,
      appId,
      userId: ann.userId,
      until,
    });
    expect(errors).toBeUndefined();
    expect(data).toMatchObject({
      updates: {
        totalCount: 1,
        nodes: [
          {
            action: 'update',
            user: { id: ann.userId },
            workspace: { id: ann.workspaceId },
            resource: { id: ann.workspaceId },
          },
        ],
      },
      failed: { totalCount: 1, nodes: [{ errorCode: 'RESOURCE_NOT_FOUND' }] },
      apps: { totalCount: 1 },
      one: { totalCount: 1, nodes: [{ action: 'create' }] },
      none: { totalCount: 0, nodes: [] },
      app: { activity: { totalCount: 1, nodes: [{ action: 'create' }] } },
      workspace: { activity: { totalCount: 1 } },
    });
  });
});

describe('the history of what its records do not name by its id', () => {
  it('is that of its kind and place: an execution, a model, a member', async () => {
    const ann = await register(app, { name: 'ann' });
    const bob = await colleague(app, ann, 'editor');
    const elsewhere = await made(ann, `${org(ann)}/workspaces`, 'workspace_id', {
      organization_id: ann.orgId,
      name: 'Elsewhere',
    });
    for (const home of [workspace(ann), `${org(ann)}/workspaces/${elsewhere}`]) {
      const app_id = await made(ann, `${home}/apps`, 'app_id', { name: 'a' });
      const inApp = `${home}/apps/${app_id}/augmentations`;
      const augmentation_id = await made(ann, inApp, 'augmentation_id', { name: 'a' });
      await made(ann, `${home}/executions`, 'execution_id', { execution_id: 'same', app_id, augmentation_id });
    }
    await ann.call('POST', `${org(ann)}/model-catalog`, { logical_model_id: 'same', name: 'Same' });
    await ann.call('PATCH', `${workspace(ann)}/members/${bob.userId}`, { role: 'viewer' });
    await written();
    const until = new Date().toISOString();
    const query = `query ($orgId: ID!, $workspaceId: ID!, $until: DateTime!) {
      execution(orgId: $orgId, workspaceId: $workspaceId, executionId: "same") {
        activity(endTime: $until) { totalCount nodes { resourceType action } }
        none: activity(endTime: $until, resourceType: "model") { totalCount nodes { id } } }
      logicalModel(orgId: $orgId, logicalModelId: "same") {
        activity(endTime: $until) { totalCount nodes { resourceType action } } }
      workspaceMembers(orgId: $orgId, workspaceId: $workspaceId) {
        nodes { user { id } activity(endTime: $until, action: "update") { totalCount nodes { resourceType action } } } }
    }`;
    const variables = { orgId: ann.orgId, workspaceId: ann.workspaceId, until };
    const { data, errors } = await ann.ask<{ [name: string]: unknown }>(query, variables);
    expect(errors).toBeUndefined();
    const one = (resourceType: string, action: string) => ({ totalCount: 1, nodes: [{ resourceType, action }] });
    expect(data).toEqual({
      execution: { activity: one('execution', 'execute'), none: { totalCount: 0, nodes: [] } },
      logicalModel: { activity: one('model', 'create') },
      workspaceMembers: {
        nodes: expect.arrayContaining([
          { user: { id: ann.userId }, activity: { totalCount: 0, nodes: [] } },
          { user: { id: bob.userId }, activity: one('workspace_member', 'update') },
        ]) as unknown,
      },
    });
  });
});

describe('the activity of an endpoint', () => {
  it('is what was done to it; a missing endpoint and one of another app are not found', async () => {
    const ann = await register(app, { name: 'ann' });
    const inApp = async (name: string) =>
      `${workspace(ann)}/apps/${await made(ann, `${workspace(ann)}/apps`, 'app_id', { name })}`;
    const [here, there] = [await inApp('a'), await inApp('b')];
    const augmentation_id = await made(ann, `${here}/augmentations`, 'augmentation_id', { name: 'a' });
    const payload = { name: 'e', path: '/e', augmentation_id };
    const id = await made(ann, `${here}/endpoints`, 'endpoint_id', payload);
    await ann.call('GET', `${here}/endpoints/${id}`);
    const { activities, total } = await list(ann, `${here}/endpoints/${id}/activity`);
    expect(activities.map(({ action, resource_type }) => [action, resource_type])).toEqual([
      ['read', 'endpoint'],
      ['create', 'endpoint'],
    ]);
    expect(total).toBe(2);
    expect(await refused(ann, `${here}/endpoints/end_none/activity`)).toEqual([404, undefined]);
    expect(await refused(ann, `${there}/endpoints/${id}/activity`)).toEqual([404, undefined]);
  });
});

describe('the summary of activity', () => {
  it('adds up what both nodes did', async () => {
    const ann = await register(app, { name: 'ann' });
    await ann.call('PUT', workspace(ann), { name: 'one' });
    const authorization = ann.headers.authorization;
    await other.server.inject({ method: 'GET', url: workspace(ann), headers: { authorization } });
    await ann.call('GET', `${org(ann)}/workspaces/ws_none`);
    const listed = await list(ann, `${org(ann)}/activity`);
    // that was done, too
    const activities = [...listed.activities, { action: 'list', resource_type: 'activity' }];
    await written();
    const { body } = await ann.call<Summary>('GET', `${org(ann)}/users/${ann.userId}/activity/summary?hours=1`);
    const count = (key: 'action' | 'resource_type') => {
      const counts: { [name: string]: number } = {};
      for (const record of activities) counts[record[key]] = (counts[record[key]] ?? 0) + 1;
      return counts;
    };
    expect(body).toEqual({
      total_requests: activities.length,
      successful_requests: activities.length - 1,
      failed_requests: 1,
      avg_duration_ms: expect.any(Number) as number,
      total_tokens_used: 0,
      by_action: count('action'),
      by_resource: count('resource_type'),
      start_time: expect.any(String) as string,
      end_time: expect.any(String) as string,
    });
    expect(Date.parse(body.end_time) - Date.parse(body.start_time)).toBe(3_600_000);
  });

  it('is zero where nothing happened', async () => {
    const ann = await register(app, { name: 'ann' });
    const id = await made(ann, `${org(ann)}/workspaces`, 'workspace_id', { organization_id: ann.orgId, name: 'b' });
    await app.database.pool.query(`delete from activity where workspace_id = $1`, [id]);
    const { body } = await ann.call<Summary>('GET', `${org(ann)}/workspaces/${id}/activity/summary`);
    expect(body).toMatchObject({ total_requests: 0, avg_duration_ms: 0, by_action: {}, by_resource: {} });
    for (const hours of [0, 169]) {
      const answer = await ann.call('GET', `${workspace(ann)}/activity/summary?hours=${hours}`);
      expect(answer.status).toBe(422);
    }
  });
});
