import { Client } from 'platform-management-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Json } from '../../examples/runner/pipeline.ts';
import { follow } from '../../examples/runner/runner.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { startTarget, type TargetServer } from '../support/target-server.ts';
import { waitUntil } from '../support/wait.ts';

const CANNED = 'It is sixty percent.';

let app: TestApp;
let url: string;
let ann: Person;
let target: TargetServer;
let isBroken = false;
beforeAll(async () => {
  // a model server, and the provider of a tool
  target = await startTarget((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'GET') return response.end('{"hits":["greenhouse"]}');
    if (isBroken) return response.writeHead(500).end('{}');
    const usage = { prompt_tokens: 12, completion_tokens: 5 };
    return response.end(JSON.stringify({ choices: [{ message: { content: CANNED } }], usage }));
  });
  app = await startTestApp({ env: { OUTBOUND_ALLOW: `127.0.0.1:${target.port}` } });
  url = await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await target.close();
});

async function made<Key extends string>(at: string, body: object, key: Key): Promise<string> {
  const answer = await ann.call<Record<Key, string>>('POST', at, body);
  expect([at, answer.body, answer.status]).toEqual([at, answer.body, 201]);
  return answer.body[key];
}

/** A model that a local server answers for, and that the workspace may use. */
async function makeModel(): Promise<void> {
  const organization = `/v1/orgs/${ann.orgId}`;
  const account = { name: 'Ours', provider_type: 'openai_compatible', credentials_ref: 'none' };
  const provider_account_id = await made(
    `${organization}/provider-accounts`,
    { ...account, base_url: `http://127.0.0.1:${target.port}/v1` },
    'provider_account_id',
  );
  const model = { logical_model_id: 'default-chat', name: 'Chat' };
  const targets = [{ provider_account_id, model_name: 'canned-1' }];
  await made(`${organization}/model-catalog`, { ...model, targets }, 'logical_model_id');
  await made(`${ann.home}/model-entitlements`, { logical_model_id: 'default-chat' }, 'logical_model_id');
}

/** An instance of a tool of its own, with one action. */
async function makeInstance(slug: string): Promise<string> {
  const find = { name: 'find', method: 'GET', url_template: `http://127.0.0.1:${target.port}/find` };
  const action = {
    ...find,
    query_params_template: { q: '{{query}}' },
    parameters: [{ name: 'query', type: 'string' }],
  };
  const tool = { name: slug, slug, description: 'Finds.', action_schemas: [action] };
  const tool_id = await made(`/v1/orgs/${ann.orgId}/tools`, tool, 'tool_id');
  return made(`${ann.home}/tool-instances`, { tool_id, name: slug }, 'instance_id');
}

/** A second pipeline of the app, with a step that calls an action of a tool. */
async function makeLookUp(A: string): Promise<string> {
  const tool_instance_id = await makeInstance('places');
  const step = { key: 'find', name: 'Find', step_type: 'tool', tool_instance_id, tool_slug: 'places', action: 'find' };
  const steps = [
    { ...step, config: { parameters: { query: '{{input.message}}' } } },
    { key: 'say', name: 'Say', step_type: 'output', config: { places: '{{steps.find.result}}' } },
  ];
  return made(`${A}/augmentations`, { name: 'Look up', stages: [{ name: 'All', steps }] }, 'augmentation_id');
}

test('the example runs starter-chat and a tool by events, and reports what it did', async () => {
  await makeModel();
  const { body: applied } = await ann.call<{ app_id: string; augmentation_id: string }>(
    'POST',
    `${ann.home}/recipes/apply`,
    { recipe_id: 'starter-chat' },
  );
  const A = `${ann.home}/apps/${applied.app_id}`;
  const trigger = (augmentation_id: string, trigger_event: string, message: string) =>
    made(
      `${A}/actions`,
      { name: message, kind: 'trigger', trigger_event, augmentation_id, input: { message } },
      'action_id',
    );
  await trigger(applied.augmentation_id, 'namespace.created', 'How humid is it?');
  const lookUp = await makeLookUp(A);
  await trigger(lookUp, 'environment.*', 'humidity');

  const place = { org_id: ann.orgId, workspace_id: ann.workspaceId, app_id: applied.app_id };
  const stop = new AbortController();
  const outcomes = new Map<string, Json | Error>();
  let isReady = false;
  const running = follow({
    client: new Client({ url, credentials: ann.accessToken }),
    place,
    signal: stop.signal,
    onReady: () => (isReady = true),
    onEnd: (id, outcome) => outcomes.set(id, outcome),
  });
  await waitUntil(() => isReady);
  await made(`${ann.home}/namespaces`, { name: 'Greenhouse' }, 'namespace_id');
  await waitUntil(() => outcomes.size === 1);
  await ann.call('POST', `${ann.home}/environments`, { name: 'Staging', slug: 'staging' });
  await waitUntil(() => outcomes.size === 2);
  isBroken = true;
  await made(`${ann.home}/namespaces`, { name: 'Cellar' }, 'namespace_id');
  await waitUntil(() => outcomes.size === 3);
  stop.abort();
  await running;

  expect([...outcomes.values()]).toEqual([
    { message: CANNED },
    { places: { hits: ['greenhouse'] } },
    new Error('The model answered 500.'),
  ]);
  const [asked, called] = target.requests;
  expect([asked!.path, JSON.parse(asked!.body)]).toEqual([
    '/v1/chat/completions',
    {
      model: 'canned-1',
      messages: [
        { role: 'system', content: 'You are a helpful assistant. Your tone is friendly.' },
        { role: 'user', content: 'How humid is it?' },
      ],
    },
  ]);
  expect(called!.path).toBe('/find?q=humidity');
  const { body } = await ann.call<{ executions: Json[] }>('GET', `${ann.home}/executions`);
  const ids = [...outcomes.keys()];
  const byId = new Map(body.executions.map((execution) => [execution.execution_id, execution]));
  expect(ids.map((id) => byId.get(id))).toMatchObject([
    { status: 'completed', stages_completed: 1, token_usage: { input: 12, output: 5, total: 17 }, error: null },
    { status: 'completed', stages_completed: 1, token_usage: { total: 0 } },
    { status: 'failed', stages_completed: 0, error: 'The model answered 500.' },
  ]);
});

test('what a run does starts no run, and what somebody does goes on starting them', async () => {
  const { app_id } = (await ann.call<{ app_id: string }>('POST', `${ann.home}/apps`, { name: 'Watcher' })).body;
  const A = `${ann.home}/apps/${app_id}`;
  const instance_id = await makeInstance('rooms');
  const step = { key: 'find', name: 'Find', step_type: 'tool', tool_slug: 'rooms', action: 'find' };
  const steps = [
    { ...step, tool_instance_id: instance_id, config: { parameters: { query: '{{input.message}}' } } },
    { key: 'say', name: 'Say', step_type: 'output', config: { because: '{{input.message}}' } },
  ];
  const augmentation = { name: 'Look again', stages: [{ name: 'All', steps }] };
  const augmentation_id = await made(`${A}/augmentations`, augmentation, 'augmentation_id');
  for (const trigger_event of ['tool_action.executed', 'execution.*', 'namespace.created']) {
    const trigger = { name: trigger_event, kind: 'trigger', trigger_event, augmentation_id };
    await made(`${A}/actions`, { ...trigger, input: { message: trigger_event } }, 'action_id');
  }

  const stop = new AbortController();
  const outcomes: (Json | Error)[] = [];
  let isReady = false;
  const running = follow({
    client: new Client({ url, credentials: ann.accessToken }),
    place: { org_id: ann.orgId, workspace_id: ann.workspaceId, app_id },
    signal: stop.signal,
    onReady: () => (isReady = true),
    onEnd: (_id, outcome) => void outcomes.push(outcome),
  });
  await waitUntil(() => isReady);
  const { status } = await ann.call('POST', `${ann.home}/tool-instances/${instance_id}/execute`, {
    action: 'find',
    parameters: { query: 'by hand' },
  });
  expect(status).toBe(200);
  await waitUntil(() => outcomes.length === 1);
  // its event comes after all that the run has caused
  await made(`${ann.home}/namespaces`, { name: 'Attic' }, 'namespace_id');
  await waitUntil(() => outcomes.some((one) => !(one instanceof Error) && one.because === 'namespace.created'));
  stop.abort();
  await running;
  expect(outcomes.slice(0, 2)).toEqual([{ because: 'tool_action.executed' }, { because: 'namespace.created' }]);
});
