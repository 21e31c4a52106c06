import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entitle, entitlementsOf, modelUrl, newAccount, newModel } from '../../models/models/catalogue.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { issueToken } from '../../support/tokens.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const USAGE = `query ($org: ID!, $ws: ID!, $model: String, $account: ID, $name: String, $from: DateTime, $to: DateTime,
    $step: SeriesStep, $tz: String) {
  modelUsage(orgId: $org, workspaceId: $ws, logicalModelId: $model, providerAccountId: $account, modelName: $name,
    from: $from, to: $to, step: $step, tz: $tz) {
    step from to points { timestamp requests errors inputTokens outputTokens cost }
  }
}`;

interface Usage {
  step: string;
  from: string;
  to: string;
  points: { timestamp: string; requests: number; errors: number; cost: string }[];
}

const ask = (who: Person, place: Pick<Person, 'orgId' | 'workspaceId'>, asked: object = {}) =>
  who.ask<{ modelUsage: Usage } | null>(USAGE, { org: place.orgId, ws: place.workspaceId, ...asked });

async function usageOf(who: Person, asked: object = {}): Promise<Usage> {
  const { data, errors } = await ask(who, who, asked);
  if (!data) throw new Error(JSON.stringify(errors));
  return data.modelUsage;
}

/** The sums of all points. */
async function totalOf(who: Person, asked: object = {}) {
  const points = (await usageOf(who, asked)).points.filter(({ requests }) => requests > 0);
  // a report may come just before a quarter of an hour or a day ends, and the next one after it
  return {
    requests: points.reduce((sum, { requests }) => sum + requests, 0),
    errors: points.reduce((sum, { errors }) => sum + errors, 0),
    cost: points.map(({ cost }) => Number(cost)).reduce((sum, cost) => sum + cost, 0),
  };
}

async function modelOf(ann: Person) {
  const account = await newAccount(app, ann);
  const { logical_model_id: id } = await newModel(ann, {}, [account, account]);
  await entitle(ann, id);
  const report = async (more: object, name = 'target-0', by: Person = ann) => {
    const payload = { provider_account_id: account, model_name: name, outcome: 'success', ...more };
    const { status } = await by.call('POST', `${ann.home}/models/${id}/usage`, payload);
    expect(status).toBe(200);
  };
  return { id, account, report };
}

/** Usage at some time, as reports leave it. */
const used = (ann: Person, start: string, { id, account }: { id: string; account: string }, requests: number) =>
  app.database.pool.query(
    `insert into model_usage_sums (workspace_id, start, logical_model_id, provider_account_id, model_name, requests,
       errors, input_tokens, output_tokens, cost) values ($1, $2, $3, $4, 'target-0', $5, 0, 10, 1, 0.1)`,
    [ann.workspaceId, start, id, account, requests],
  );

test('reports add up: requests, failures, tokens and cost, of all models, one, or a target', async () => {
  const ann = await register(app);
  const [first, second] = [await modelOf(ann), await modelOf(ann)];
  await first.report({ input_tokens: 100, output_tokens: 20, cost: '0.1' });
  await first.report({ input_tokens: 50, output_tokens: 5, cost: '0.2' }, 'target-1');
  await first.report({ outcome: 'timeout' });
  await second.report({ cost: '1.5', outcome: 'invalid_request' });
  const range = { from: new Date(Date.now() - 3_600_000).toISOString(), step: 'MONTH' };
  const { points } = await usageOf(ann, { ...range, model: first.id });
  expect(points.filter(({ requests }) => requests > 0)).toMatchObject([
    { requests: 3, errors: 1, inputTokens: 150, outputTokens: 25, cost: '0.3' },
  ]);
  expect(await totalOf(ann)).toEqual({ requests: 4, errors: 2, cost: 1.8 });
  expect(await totalOf(ann, { account: second.account })).toEqual({ requests: 1, errors: 1, cost: 1.5 });
  const target = { model: first.id, account: first.account, name: 'target-1' };
  expect(await totalOf(ann, target)).toEqual({ requests: 1, errors: 0, cost: 0.2 });
  expect(await totalOf(ann, { ...target, model: second.id })).toEqual({ requests: 0, errors: 0, cost: 0 });
});

test('what senders make up has no sums of its own, and costs count from editors and above alone', async () => {
  const ann = await register(app);
  const { id, account, report } = await modelOf(ann);
  const bob = await colleague(app, ann, 'member');
  for (const name of ['made-up-1', 'made-up-2', 'made-up-3']) await report({ cost: '1' }, name);
  await report({ cost: '500', output_tokens: 7 }, 'target-0', bob);
  expect(await totalOf(ann, { model: id })).toEqual({ requests: 4, errors: 0, cost: 3 });
  expect(await totalOf(ann, { name: 'made-up-1' })).toMatchObject({ requests: 0 });
  expect(await totalOf(ann, { account })).toEqual({ requests: 1, errors: 0, cost: 0 });
  const { rows } = await app.database.pool.query(
    'select distinct model_name as name from model_usage_sums where workspace_id = $1 order by 1',
    [ann.workspaceId],
  );
  expect(rows.map(({ name }) => name)).toEqual(['', 'target-0']);
});

test('a report counts in the quarter of an hour in which it arrives', async () => {
  const ann = await register(app);
  const { report } = await modelOf(ann);
  const before = Date.now();
  await report({});
  const { rows } = await app.database.pool.query<{ start: Date }>(
    'select start from model_usage_sums where workspace_id = $1',
    [ann.workspaceId],
  );
  const [{ start }] = rows as [{ start: Date }];
  expect(start.getTime() % 900_000).toBe(0);
  expect(start.getTime()).toBeGreaterThan(before - 901_000);
  expect(start.getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
});

test('usage outlives the entitlement, the targets and the model, and ends with the workspace', async () => {
  const ann = await register(app);
  const { id, account, report } = await modelOf(ann);
  await report({ cost: '2' });
  expect((await ann.call('DELETE', `${entitlementsOf(ann)}/${id}`)).status).toBeLessThan(300);
  expect((await ann.call('DELETE', modelUrl(ann, id))).status).toBeLessThan(300);
  expect(await totalOf(ann, { model: id, account, name: 'target-0' })).toMatchObject({ requests: 1, cost: 2 });
  await app.database.pool.query('delete from workspaces where id = $1', [ann.workspaceId]);
  const left = await app.database.pool.query('select from model_usage_sums where workspace_id = $1', [ann.workspaceId]);
  expect(left.rowCount).toBe(0);
});

test.each(['Asia/Kolkata', 'Asia/Kathmandu', 'Europe/Berlin', 'UTC'])('days and hours are those of %s', async (tz) => {
  const ann = await register(app);
  const model = await modelOf(ann);
  const day = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10);
  // the day of the zone that has this noon
  const { points } = await usageOf(ann, { from: `${day}T12:00:00Z`, to: `${day}T12:00:01Z`, tz });
  expect(points).toHaveLength(1);
  const { from, to } = await usageOf(ann, { from: `${day}T12:00:00Z`, to: `${day}T12:00:01Z`, tz });
  const at = (time: string, ms: number) => new Date(Date.parse(time) + ms).toISOString();
  const quarter = 900_000;
  await used(ann, at(from, -quarter), model, 1);
  await used(ann, from, model, 2);
  await used(ann, at(to, -quarter), model, 4);
  await used(ann, to, model, 8);
  const around = { from: at(from, -1), to: at(to, 1), tz };
  const days = (await usageOf(ann, around)).points;
  expect(days.map(({ requests, cost }) => [requests, cost])).toEqual([
    [1, '0.1'],
    [6, '0.2'],
    [8, '0.1'],
  ]);
  const hours = (await usageOf(ann, { ...around, step: 'HOUR' })).points;
  expect(hours.map(({ requests }) => requests).filter((requests) => requests > 0)).toEqual([1, 2, 4, 8]);
  expect(hours[1]!.timestamp).toBe(from);
});

describe('a series', () => {
  test('is of the last 24 days by default, with a point for each', async () => {
    const ann = await register(app);
    const { step, points } = await usageOf(ann);
    expect([step, points.length]).toEqual(['DAY', 24]);
    expect(points[0]).toEqual({
      timestamp: points[0]!.timestamp,
      requests: 0,
      errors: 0,
      inputTokens: 0,
      outputTokens: 0,
      cost: '0',
    });
  });

  test.each([
    ['no time zone', { tz: 'Mars/Olympus' }, 'tz'],
    ['an end before the start', { from: '2026-02-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'to'],
    ['too many points', { from: '2020-01-01T00:00:00Z', step: 'HOUR' }, 'from'],
    ['a time that no calendar has', { to: '9999-12-31T00:00:00Z' }, 'to'],
    ['no identifier of a model', { model: 'a b' }, 'logicalModelId'],
    ['a name with a NUL', { name: 'a\u0000' }, 'modelName'],
  ])('of %s is refused at its place', async (_, asked, place) => {
    const ann = await register(app);
    const { errors } = await ask(ann, ann, asked);
    expect(errors).toMatchObject([
      { extensions: { code: 'VALIDATION_ERROR', details: { issues: [{ path: [place] }] } } },
    ]);
  });

  test('is for members of the workspace, viewers included, and for nobody else', async () => {
    const ann = await register(app);
    const { report } = await modelOf(ann);
    await report({});
    const vic = await colleague(app, ann, 'viewer');
    const { data } = await ask(vic, ann, { step: 'MONTH' });
    expect(data!.modelUsage.points.reduce((sum, { requests }) => sum + requests, 0)).toBe(1);
    const eve = await register(app);
    const { data: none, errors } = await ask(eve, ann);
    expect([none, errors]).toMatchObject([null, [{ extensions: { code: 'FORBIDDEN' } }]]);
  });
});

test('an operation cannot ask for many series at once, even without their points', async () => {
  const ann = await register(app);
  const asked = (count: number) => {
    const series = Array.from({ length: count }, (_, n) => `a${n}: modelUsage(orgId: $o, workspaceId: $w) { step }`);
    return ann.ask(`query ($o: ID!, $w: ID!) { ${series.join(' ')} }`, { o: ann.orgId, w: ann.workspaceId });
  };
  expect((await asked(2)).errors).toBeUndefined();
  expect((await asked(25)).errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_LARGE' } }]);
});

test.each([
  ['modelUsage(orgId: $o, workspaceId: $w) { step }', 'model_entitlement:read'],
  ['topResources(orgId: $o, workspaceId: $w) { uses }', 'activity:read'],
])('%s says which permission a token of an app lacks', async (field, permission) => {
  const ann = await register(app);
  const { body } = await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'App' });
  const { headers } = await issueToken(app, ann, { scopes: ['admin'], app_id: body.app_id });
  const variables = { o: ann.orgId, w: ann.workspaceId };
  const answer = await app.server.inject(
    graphqlRequest(`query ($o: ID!, $w: ID!) { ${field} }`, variables, headers.authorization),
  );
  expect(answer.json().errors).toMatchObject([
    { extensions: { code: 'FORBIDDEN', details: { required_permission: permission } } },
  ]);
});

test('the last 90 days are told, and none before', async () => {
  const ann = await register(app);
  const model = await modelOf(ann);
  const dayAt = (ago: number) => `${new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)}T12:00:00Z`;
  await used(ann, dayAt(85), model, 1);
  await used(ann, dayAt(91), model, 2);
  expect(await totalOf(ann, { from: dayAt(120) })).toMatchObject({ requests: 1 });
});

test('reports at the same time are all counted', async () => {
  const ann = await register(app);
  const { id, report } = await modelOf(ann);
  await Promise.all(Array.from({ length: 12 }, () => report({ cost: '0.25' })));
  expect(await totalOf(ann, { model: id })).toEqual({ requests: 12, errors: 0, cost: 3 });
});
