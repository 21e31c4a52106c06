import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { entitle, entitlementsOf, modelUrl, newModel } from '../models/catalogue.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Entitlement = Record<string, unknown> & { entitlement_id: string };
const urlOf = (owner: Person, id: string) => `${entitlementsOf(owner)}/${encodeURIComponent(id)}`;

test('a grant is known by its model; every field is there', async () => {
  const ann = await register(app, { name: 'ann' });
  await newModel(ann, { logical_model_id: 'org/model:1' });
  const { status, body } = await ann.call<Entitlement>('POST', entitlementsOf(ann), {
    logical_model_id: 'org/model:1',
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    entitlement_id: expect.stringMatching(/^ment_/),
    workspace_id: ann.workspaceId,
    org_id: ann.orgId,
    logical_model_id: 'org/model:1',
    workspace_limits: {},
    allowed_step_types: [],
    allowed_endpoints: [],
    allowed_purposes: [],
    enabled: true,
    request_count: 0,
    total_tokens: 0,
    last_used_at: null,
    granted_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  expect((await ann.call('GET', urlOf(ann, 'org/model:1'))).body).toEqual(body);
  expect((await ann.call('GET', entitlementsOf(ann))).body).toEqual({
    total: 1,
    has_more: false,
    next_cursor: null,
    entitlements: [body],
  });
  const changes = { workspace_limits: { requests_per_minute: 5 }, allowed_purposes: ['chat'], enabled: false };
  expect((await ann.call('PATCH', urlOf(ann, 'org/model:1'), changes)).body).toEqual({
    ...body,
    ...changes,
    workspace_limits: { requests_per_minute: 5 },
    updated_at: expect.any(String),
  });
  expect((await ann.call('PATCH', urlOf(ann, 'org/model:1'), { workspace_limits: null })).body).toMatchObject({
    workspace_limits: {},
    allowed_purposes: ['chat'],
  });
  expect((await ann.call('DELETE', urlOf(ann, 'org/model:1'))).status).toBe(204);
  const missing = { resource_type: 'model_entitlement', resource_id: 'org/model:1' };
  for (const method of ['GET', 'PATCH', 'DELETE'] as const)
    expect(await ann.call(method, urlOf(ann, 'org/model:1'), method === 'PATCH' ? {} : undefined)).toMatchObject({
      status: 404,
      body: { details: missing },
    });
  expect(await eventsOf(app, body.entitlement_id)).toEqual([
    'model_entitlement.created',
    'model_entitlement.updated',
    'model_entitlement.updated',
    'model_entitlement.deleted',
  ]);
  expect((await changesOf(app, body.entitlement_id))[0]).toMatchObject({
    action: 'create',
    resourceType: 'model_entitlement',
    workspaceId: ann.workspaceId,
    metadata: { logical_model_id: 'org/model:1' },
  });
});

test('the model must be there (404), and is granted once (409), also when two try at once', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  await newModel(eve, { logical_model_id: 'theirs' });
  expect(await ann.call('POST', entitlementsOf(ann), { logical_model_id: 'theirs' })).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'model', resource_id: 'theirs' } },
  });
  const { logical_model_id } = await newModel(ann);
  const answers = await Promise.all(
    [1, 2, 3].map(() => ann.call<Entitlement>('POST', entitlementsOf(ann), { logical_model_id })),
  );
  expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 409, 409]);
  const id = answers.find(({ status }) => status === 201)!.body.entitlement_id;
  expect(answers.find(({ status }) => status === 409)).toMatchObject({
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: {
        resource_type: 'model_entitlement',
        field: 'logical_model_id',
        value: logical_model_id,
        resource_id: id,
      },
    },
  });
});

test('limits that the service does not know are kept as they are; those that it knows are checked', async () => {
  const ann = await register(app, { name: 'ann' });
  const { logical_model_id } = await newModel(ann);
  const wrong = { max_images: 'any', requests_per_minute: 0, tokens_per_minute: 'x' };
  const refused = await ann.call('POST', entitlementsOf(ann), { logical_model_id, workspace_limits: wrong });
  expect(refused).toMatchObject({
    status: 422,
    body: {
      detail: [
        {
          type: 'greater_than_equal',
          loc: ['body', 'workspace_limits', 'requests_per_minute'],
          input: 0,
          ctx: { ge: 1 },
        },
        { type: 'int_parsing', loc: ['body', 'workspace_limits', 'tokens_per_minute'] },
      ],
    },
  });
  const workspace_limits = {
    max_tokens_per_month: 5,
    max_images: 7,
    maxRequestsPerDay: 'the name is not the one of the limit',
    more: { nested: [null, { camelCase: true }] },
    nothing: null,
  };
  const made = await ann.call('POST', entitlementsOf(ann), { logical_model_id, workspace_limits });
  expect(made).toMatchObject({ status: 201, body: { workspace_limits } });
  expect((await ann.call('GET', urlOf(ann, logical_model_id))).body).toMatchObject({ workspace_limits });
  const { max_tokens_per_month: _known, ...more } = workspace_limits;
  const read = await ann.ask(
    `query ($orgId: ID!, $workspaceId: ID!, $model: ID!) {
      modelEntitlement(orgId: $orgId, workspaceId: $workspaceId, logicalModelId: $model) {
        limits workspaceLimits { maxTokensPerMonth maxRequestsPerDay more } } }`,
    { orgId: ann.orgId, workspaceId: ann.workspaceId, model: logical_model_id },
  );
  expect(read.data).toEqual({
    modelEntitlement: {
      limits: workspace_limits,
      workspaceLimits: { maxTokensPerMonth: 5, maxRequestsPerDay: null, more },
    },
  });
  const NUL = { 'a key': { text: 'a\0b' } };
  expect(await ann.call('PATCH', urlOf(ann, logical_model_id), { workspace_limits: NUL })).toMatchObject({
    status: 422,
    body: { detail: [{ type: 'string_unicode', loc: ['body', 'workspace_limits', 'a key', 'text'] }] },
  });
  const hidden = await ann.ask(
    `mutation ($orgId: ID!, $workspaceId: ID!, $model: ID!) {
      updateModelEntitlement(orgId: $orgId, workspaceId: $workspaceId, logicalModelId: $model,
        input: { workspaceLimits: { more: { max_requests_per_day: 1 } } }) { id } }`,
    { orgId: ann.orgId, workspaceId: ann.workspaceId, model: logical_model_id },
  );
  expect(hidden.errors).toMatchObject([
    { extensions: { details: { issues: [{ path: ['input', 'workspaceLimits', 'more', 'max_requests_per_day'] }] } } },
  ]);
});

test('what an update cannot clear is refused', async () => {
  const ann = await register(app, { name: 'ann' });
  const { logical_model_id } = await newModel(ann);
  const nulls = { allowed_step_types: null, allowed_endpoints: [''], enabled: null };
  await entitle(ann, logical_model_id);
  expect((await ann.call('PATCH', urlOf(ann, logical_model_id), { ...nulls, allowed_endpoints: [] })).status).toBe(422);
  expect((await ann.call('PATCH', urlOf(ann, logical_model_id), { allowed_endpoints: [''] })).status).toBe(422);
});

describe('who may grant', () => {
  test('administrators of the organization; those of the workspace alone may not; everybody in it reads', async () => {
    const owner = await register(app, { name: 'owner' });
    const { logical_model_id } = await newModel(owner);
    const local = await register(app, { name: 'local' });
    await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: local.userId, role: 'member' });
    await owner.call('POST', `${owner.home}/members`, { user_id: local.userId, role: 'admin' });
    expect(await local.call('POST', entitlementsOf(owner), { logical_model_id })).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'model_entitlement:create' } },
    });
    const admin = await colleague(app, owner, 'admin');
    expect((await admin.call('POST', entitlementsOf(owner), { logical_model_id })).status).toBe(201);
    const viewer = await colleague(app, owner, 'viewer');
    expect((await viewer.call('GET', urlOf(owner, logical_model_id))).status).toBe(200);
    expect((await local.call('DELETE', urlOf(owner, logical_model_id))).status).toBe(403);
  });

  test('a grant is one of its workspace only', async () => {
    const ann = await register(app, { name: 'ann' });
    const { body: other } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
      organization_id: ann.orgId,
      name: 'Other',
    });
    const { logical_model_id } = await newModel(ann);
    await entitle(ann, logical_model_id);
    const elsewhere = `/v1/orgs/${ann.orgId}/workspaces/${other.workspace_id}/model-entitlements`;
    expect((await ann.call('GET', `${elsewhere}/${logical_model_id}`)).status).toBe(404);
    expect((await ann.call('GET', elsewhere)).body).toMatchObject({ total: 0 });
    expect((await ann.call('POST', elsewhere, { logical_model_id })).status).toBe(201);
    await ann.call('DELETE', urlOf(ann, logical_model_id));
    expect((await ann.call('GET', `${elsewhere}/${logical_model_id}`)).status).toBe(200);
  });
});

test('lists can show only entitlements in force; GraphQL leads from workspace to model and back', async () => {
  const ann = await register(app, { name: 'ann' });
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { logical_model_id } = await newModel(ann);
    await entitle(ann, logical_model_id, { enabled: i !== 1 });
    ids.unshift(logical_model_id);
  }
  const list = async (query: string) => {
    const { body } = await ann.call<{ total: number; entitlements: Entitlement[] }>(
      'GET',
      `${entitlementsOf(ann)}?${query}`,
    );
    return [body.total, body.entitlements.map((entitlement) => entitlement.logical_model_id)];
  };
  expect(await list('')).toEqual([3, ids]);
  expect(await list('enabled_only=yes')).toEqual([2, [ids[0], ids[2]]]);
  expect(await list('enabled_only=true&limit=1')).toEqual([2, [ids[0]]]);
  const data = (
    await ann.ask(
      `query ($orgId: ID!, $id: ID!) { workspace(orgId: $orgId, id: $id) { modelEntitlements(enabledOnly: true) {
      totalCount nodes { logicalModelId workspaceLimits { tokensPerMinute } model { name } } } } }`,
      { orgId: ann.orgId, id: ann.workspaceId },
    )
  ).data;
  const node = (logicalModelId: string) => ({
    logicalModelId,
    workspaceLimits: { tokensPerMinute: null },
    model: { name: 'Model' },
  });
  expect(data).toEqual({
    workspace: { modelEntitlements: { totalCount: 2, nodes: [node(ids[0]!), node(ids[2]!)] } },
  });
  await ann.call('DELETE', modelUrl(ann, ids[0]!));
  expect(await list('')).toEqual([2, ids.slice(1)]);
});
