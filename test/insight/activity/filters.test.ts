import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { foldActivity } from '../../../src/insight/activity/activity.service.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { waitUntil } from '../../support/wait.ts';

let app: TestApp;
let ann: Person;
let bob: Person;
let appId: string;
let endpointId: string;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
  bob = await colleague(app, ann, 'member');
  const made = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'App' });
  appId = made.body.app_id;
  const path = `${ann.home}/apps/${appId}/endpoints`;
  const augmentation = await ann.call<{ augmentation_id: string }>('POST', `${ann.home}/apps/${appId}/augmentations`, {
    name: 'Run',
  });
  const { augmentation_id } = augmentation.body;
  const endpoint = { name: 'In', path: '/in', augmentation_id };
  endpointId = (await ann.call<{ endpoint_id: string }>('POST', path, endpoint)).body.endpoint_id;
  await ann.call('PATCH', `${path}/${endpointId}`, { name: 'Renamed' });
  await ann.call('PUT', `${ann.home}/apps/${appId}`, { name: 'Renamed' });
  await bob.call('GET', `${ann.home}/apps/${appId}`);
  await ann.call('GET', `${ann.home}/apps/app_00000000000000000000000000`);
});
afterAll(() => app.close());

interface Listed {
  total: number;
  activities: { action: string; resource_type: string; resource_id: string; user_id: string; success: boolean }[];
}

const lists = () => [
  `/v1/orgs/${ann.orgId}`,
  ann.home,
  `${ann.home}/apps/${appId}`,
  `${ann.home}/apps/${appId}/endpoints/${endpointId}`,
  `/v1/orgs/${ann.orgId}/users/${ann.userId}`,
];

async function listed(place: string, query: string): Promise<Listed> {
  await app.services.activity.flush();
  const { status, body } = await ann.call<Listed>('GET', `${place}/activity?limit=200&${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  expect(body.total).toBe(body.activities.length);
  return body;
}

test('every list of records takes the filters of GraphQL, and counts what they leave', async () => {
  for (const place of lists()) {
    const changes = await listed(place, 'action=update');
    expect(changes.total, place).toBeGreaterThan(0);
    expect(new Set(changes.activities.map(({ action }) => action)), place).toEqual(new Set(['update']));
    const none = await listed(place, 'action=update&success=false');
    expect(none, place).toMatchObject({ total: 0, activities: [] });
    // the set of actions grows: one that nobody knows has no records
    expect(await listed(place, 'action=unheard_of'), place).toMatchObject({ total: 0 });
    expect(await listed(place, 'token_id=tok_00000000000000000000000000'), place).toMatchObject({ total: 0 });
  }
  for (const place of lists().slice(0, 3)) {
    const { activities } = await listed(place, 'resource_type=endpoint');
    expect(new Set(activities.map((record) => record.resource_type))).toEqual(new Set(['endpoint']));
    const ofOne = await listed(place, `resource_id=${endpointId}&action=update`);
    expect(ofOne.activities).toMatchObject([{ resource_id: endpointId, action: 'update' }]);
    const ofBob = await listed(place, `user_id=${bob.userId}&resource_id=${appId}`);
    expect(ofBob.activities).toMatchObject([{ user_id: bob.userId, action: 'read' }]);
  }
  const failed = await listed(`/v1/orgs/${ann.orgId}`, 'success=false');
  expect(failed.activities).toMatchObject([{ action: 'read', resource_type: 'app', success: false }]);
});

test('a filter that is no such value is refused with its place', async () => {
  const url = `/v1/orgs/${ann.orgId}/activity?success=perhaps&action=${'a'.repeat(300)}`;
  const { status, body } = await ann.call<{ detail: { loc: string[] }[] }>('GET', url);
  expect(status).toBe(422);
  expect(body.detail.map(({ loc }) => loc.join('.')).toSorted()).toEqual(['query.action', 'query.success']);
});

test('a record of GraphQL names its field, also if the operation was refused or changed something', async () => {
  const rename = `mutation ($o: ID!, $w: ID!, $a: ID!, $name: String!) {
    renamed: updateApp(orgId: $o, workspaceId: $w, id: $a, input: { name: $name }) { name } }`;
  const names = { o: ann.orgId, w: ann.workspaceId };
  await ann.ask(rename, { ...names, a: appId, name: 'Again' });
  await ann.ask(rename, { ...names, a: 'app_00000000000000000000000000', name: 'Again' });
  await ann.ask(`query ($o: ID!, $w: ID!, $a: ID!) { app(orgId: $o, workspaceId: $w, id: $a) { name } }`, {
    ...names,
    a: appId,
  });
  await app.services.activity.flush();
  const { data } = await ann.ask<{ workspaceActivity: { nodes: object[] } }>(
    `query ($o: ID!, $w: ID!) { workspaceActivity(orgId: $o, workspaceId: $w, first: 3) {
      nodes { action success path metadata } } }`,
    names,
  );
  expect(data?.workspaceActivity.nodes).toEqual([
    { action: 'read', success: true, path: '/graphql', metadata: { graphql_field: 'app' } },
    { action: 'update', success: false, path: '/graphql', metadata: { graphql_field: 'updateApp' } },
    { action: 'update', success: true, path: '/graphql', metadata: { fields: ['name'], graphql_field: 'updateApp' } },
  ]);
});

const WITHOUT_READS = `query ($o: ID!, $w: ID!, $e: ID!, $action: String, $success: Boolean, $type: String,
    $from: DateTime, $user: ID, $first: Int) {
  organizationActivity(orgId: $o, withoutReads: true, action: $action, success: $success, resourceType: $type,
    startTime: $from, userId: $user, first: $first) { ...Page }
  workspaceActivity(orgId: $o, workspaceId: $w, withoutReads: true, action: $action, success: $success,
    resourceType: $type, startTime: $from, userId: $user, first: $first) { ...Page }
  appActivity(orgId: $o, workspaceId: $w, appId: $e, withoutReads: true, action: $action, success: $success,
    resourceType: $type, startTime: $from, userId: $user, first: $first) { ...Page }
}
fragment Page on ActivityConnection { totalCount nodes { action success } }`;

test.each<[string, { mine?: boolean; [filter: string]: unknown }]>([
  ['nothing', {}],
  ['a read that failed', { action: 'read' }],
  ['a change', { action: 'update' }],
  ['what succeeded', { success: true }],
  ['what failed', { success: false }],
  ['a resource', { type: 'endpoint' }],
  ['a time', { from: new Date(Date.now() - 3_600_000).toISOString() }],
  ['a user', { mine: true }],
])('counts what is left without reads from the sums, with a filter on %s', async (_, { mine, ...filters }) => {
  await app.services.activity.flush();
  for (const isSummed of [false, true]) {
    if (isSummed) await foldActivity(app.services.sql);
    const names = { o: ann.orgId, w: ann.workspaceId, e: appId, first: 200, ...(mine && { user: ann.userId }) };
    const { data, errors } = await ann.ask<Record<string, { totalCount: number; nodes: unknown[] }>>(WITHOUT_READS, {
      ...names,
      ...filters,
    });
    expect(errors).toBeUndefined();
    for (const [list, { totalCount, nodes }] of Object.entries(data)) expect(totalCount, list).toBe(nodes.length);
  }
});

test('a count without reads is of the sums: no record is read for it', async () => {
  const zoe = await register(app);
  const made = await zoe.call<{ app_id: string }>('POST', `${zoe.home}/apps`, { name: 'App' });
  await zoe.call('GET', `${zoe.home}/apps/${made.body.app_id}`);
  await app.services.activity.flush();
  // as long as an older transaction is open somewhere, records are not summed
  await waitUntil(async () => {
    await foldActivity(app.services.sql);
    const sums = 'select from activity_sums where org_id = $1 and scope = $2';
    return (await app.database.pool.query(sums, [zoe.orgId, `app ${made.body.app_id}`])).rowCount;
  });
  const names = { o: zoe.orgId, w: zoe.workspaceId, e: made.body.app_id, first: 1 };
  const total = async (): Promise<number> => {
    const { data } = await zoe.ask<{ appActivity: { totalCount: number } }>(WITHOUT_READS, names);
    return data.appActivity.totalCount;
  };
  expect(await total()).toBe(1);
  await app.database.pool.query(`delete from activity where app_id = $1`, [made.body.app_id]);
  expect(await total()).toBe(1);
});

test('a successful read, without reads, is nothing: no statement asks for it', async () => {
  const read = vi.spyOn(app.services.sql, 'readMarked');
  const { data } = await ann.ask<Record<string, object>>(WITHOUT_READS, {
    o: ann.orgId,
    w: ann.workspaceId,
    e: appId,
    action: 'list',
    success: true,
  });
  expect(Object.values(data)).toEqual(Array(3).fill({ totalCount: 0, nodes: [] }));
  expect(read.mock.calls.filter(([text]) => / from activity t/.test(text))).toEqual([]);
  read.mockRestore();
});

test('leaves out what only looked on, unless it failed, and counts the rest', async () => {
  await app.services.activity.flush();
  const { data } = await ann.ask<{ workspaceActivity: { totalCount: number; nodes: Listed['activities'] } }>(
    `query ($o: ID!, $w: ID!) { workspaceActivity(orgId: $o, workspaceId: $w, withoutReads: true, first: 200) {
      totalCount nodes { action success } } }`,
    { o: ann.orgId, w: ann.workspaceId },
  );
  const { totalCount, nodes } = data.workspaceActivity;
  expect(totalCount).toBe(nodes.length);
  const kinds = new Set(nodes.map(({ action, success }) => `${action} ${success}`));
  expect([...kinds]).toEqual(expect.arrayContaining(['create true', 'update true', 'read false']));
  expect(kinds).not.toContain('read true');
  expect(kinds).not.toContain('list true');
  expect((await listed(ann.home, 'action=read&success=true')).total).toBeGreaterThan(0);
});
