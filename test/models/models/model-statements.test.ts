import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { stopAges } from '../../support/passing-time.ts';
import { register } from '../../support/person.ts';
import { logQueries, type QueryLog } from '../../support/query-log.ts';
import { catalogOf, entitle, newAccount, newModel } from './catalogue.ts';

let app: TestApp;
let log: QueryLog;
beforeAll(async () => {
  app = await startTestApp();
  log = logQueries(app.database.pool);
});
afterAll(() => app.close());

/** The fewest statements that a request needed: what access checks keep for a moment must not blur the count. */
async function fewest(work: () => Promise<unknown>): Promise<number> {
  stopAges(); // a slow run would outlast what access checks keep
  const runs: number[] = [];
  for (let i = 0; i < 4; i++) runs.push((await log.during(work)).length);
  return Math.min(...runs);
}

test('targets, accounts and the models of entitlements take as many statements for 20 models as for one', async () => {
  const ann = await register(app, { name: 'ann' });
  for (let i = 0; i < 20; i++) {
    const accounts = [await newAccount(app, ann), await newAccount(app, ann)];
    const { logical_model_id } = await newModel(ann, {}, accounts);
    await entitle(ann, logical_model_id);
  }
  const rest = (limit: number) => async () => {
    const { body } = await ann.call<{ models: { targets: unknown[] }[] }>('GET', `${catalogOf(ann)}?limit=${limit}`);
    expect(body.models.map(({ targets }) => targets.length)).toEqual(Array(limit).fill(2));
  };
  expect(await fewest(rest(20))).toBe(1);
  expect(await fewest(rest(1))).toBe(1);

  const nested = (first: number) => async () => {
    const { data, errors } = await ann.ask<{ organization: { models: { nodes: unknown[] } } }>(
      `query ($id: ID!, $workspaceId: ID!, $first: Int!) {
        organization(id: $id) { models(first: $first) { nodes { targets { account { id name } } } } }
        workspace(orgId: $id, id: $workspaceId) {
          modelEntitlements(first: $first) { nodes { model { targets { modelName } } } } } }`,
      { id: ann.orgId, workspaceId: ann.workspaceId, first },
    );
    expect(errors).toBeUndefined();
    expect(data.organization.models.nodes).toHaveLength(first);
  };
  expect(await fewest(nested(20))).toBe(await fewest(nested(1)));
});

test('a route is one statement for the model and one for its fallbacks, however many targets there are', async () => {
  const ann = await register(app, { name: 'ann' });
  const account = await newAccount(app, ann);
  const targets = Array.from({ length: 20 }, (_, i) => ({ provider_account_id: account, model_name: `t-${i}` }));
  const chain: string[] = [];
  for (let i = 0; i < 5; i++) {
    const { logical_model_id } = await newModel(ann, {}, targets);
    await entitle(ann, logical_model_id);
    chain.push(logical_model_id);
  }
  const { logical_model_id: id } = await newModel(ann, { fallback_chain: chain }, targets);
  await entitle(ann, id);
  const statements = await fewest(async () => {
    const { body } = await ann.call<{ targets: unknown[] }>('GET', `${ann.home}/models/${id}/route`);
    expect(body.targets).toHaveLength(120);
  });
  expect(statements).toBe(2);
});
