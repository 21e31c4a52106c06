import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf } from '../../support/person.ts';
import { type Augmentation, createPipeline, keptCounts } from './pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** The `loc` and the message of each refused value. */
const refusals = (body: unknown) =>
  (body as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [loc.join('.'), msg]);

test('makes an augmentation with stages and steps, keeps those that are given with their ids, deletes it', async () => {
  const { who, url, appId } = await createPipeline(app);
  const org = `/v1/orgs/${who.orgId}`;
  await who.call('POST', `${org}/model-catalog`, { logical_model_id: 'large', name: 'Large' });
  const { status, body } = await who.call<Augmentation>('POST', `${url}/augmentations`, {
    name: 'Answers',
    description: 'Answers questions',
    metadata: { aB: 1 },
    stages: [
      {
        name: 'Find',
        execution_mode: 'parallel',
        steps: [{ name: 'Search', step_type: 'retrieval', config: { topK: 5 } }],
      },
      { name: 'Say', steps: [{ name: 'Ask', step_type: 'llm', logical_model_id: 'large' }] },
    ],
  });
  expect(status).toBe(201);
  const step = {
    logical_model_id: null,
    tool_instance_id: null,
    tool_slug: null,
    action: null,
    position: 1,
    step_id: expect.stringMatching(/^stp_/),
  };
  const stage = { stage_id: expect.stringMatching(/^stg_/), execution_mode: 'sequential' };
  expect(body).toEqual({
    augmentation_id: expect.stringMatching(/^aug_/),
    org_id: who.orgId,
    workspace_id: who.workspaceId,
    app_id: appId,
    name: 'Answers',
    description: 'Answers questions',
    status: 'active',
    metadata: { aB: 1 },
    stages: [
      {
        ...stage,
        name: 'Find',
        position: 1,
        execution_mode: 'parallel',
        steps: [{ ...step, key: 'search', name: 'Search', step_type: 'retrieval', config: { topK: 5 } }],
      },
      {
        ...stage,
        name: 'Say',
        position: 2,
        steps: [{ ...step, key: 'ask', name: 'Ask', step_type: 'llm', config: {}, logical_model_id: 'large' }],
      },
    ],
    created_by: who.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = `${url}/augmentations/${body.augmentation_id}`;
  expect((await who.call('GET', one)).body).toEqual(body);
  expect((await who.call<{ total: number }>('GET', `${url}/augmentations`)).body).toMatchObject({
    total: 1,
    augmentations: [body],
  });

  // the model is gone: the step still says which it was, and may stay as it is
  await who.call('DELETE', `${org}/model-catalog/large`);
  const [find, say] = body.stages as [Augmentation['stages'][number], Augmentation['stages'][number]];
  const kept = { step_id: say.steps[0]!.step_id, name: 'Ask again', step_type: 'llm', logical_model_id: 'large' };
  const stages = [
    { stage_id: say.stage_id, name: 'Say', steps: [{ name: 'New', step_type: 'tool' }, kept] },
    { stage_id: find.stage_id, name: 'Find' },
  ];
  // what was read can be sent back: every stage and step is kept
  expect((await who.call<Augmentation>('PATCH', one, { stages: body.stages })).body.stages).toEqual(body.stages);
  const changed = (await who.call<Augmentation>('PATCH', one, { stages })).body;
  expect(changed.stages.map(({ stage_id, position, steps }) => [stage_id, position, steps.length])).toEqual([
    [say.stage_id, 1, 2],
    [find.stage_id, 2, 0],
  ]);
  expect(changed.stages[0]!.steps[1]).toEqual({
    tool_slug: null,
    action: null,
    key: 'ask',
    step_id: say.steps[0]!.step_id,
    position: 2,
    name: 'Ask again',
    step_type: 'llm',
    config: {},
    logical_model_id: 'large',
    tool_instance_id: null,
  });
  expect((await who.call('PATCH', one, { description: null, status: 'draft' })).body).toEqual({
    ...changed,
    description: null,
    status: 'draft',
    updated_at: expect.any(String),
  });
  expect(await who.call('DELETE', one)).toEqual({ status: 204, body: null });
  expect((await who.call('GET', one)).status).toBe(404);
  const events = ['created', 'updated', 'updated', 'updated', 'deleted'].map((name) => `augmentation.${name}`);
  expect(await eventsOf(app, body.augmentation_id)).toEqual(events);
  expect(
    (await changesOf(app, body.augmentation_id)).slice(0, 5).map(({ action, metadata }) => [action, metadata]),
  ).toEqual([
    ['create', {}],
    ['update', { fields: ['stages'] }],
    ['update', { fields: ['stages'] }],
    ['update', { fields: ['description', 'status'] }],
    ['delete', {}],
  ]);
});

test('a change of the stages alone raises the version', async () => {
  const { who, url, augmentation } = await createPipeline(app);
  const { augmentation_id: id } = await augmentation({ stages: [{ name: 'a' }] });
  const versionOf = async () =>
    (await app.database.prisma.augmentation.findUniqueOrThrow({ where: { id } })).resourceVersion;
  const before = await versionOf();
  await who.call('PATCH', `${url}/augmentations/${id}`, { stages: [{ name: 'b' }] });
  expect(await versionOf()).toBe(before + 1);
});

test('refuses stages with the place of each fault, and leaves the old ones', async () => {
  const { who, url, augmentation } = await createPipeline(app);
  const [mine, other] = [
    await augmentation({ stages: [{ name: 'a' }] }),
    await augmentation({ stages: [{ name: 'b' }] }),
  ];
  const one = `${url}/augmentations/${mine.augmentation_id}`;
  const foreign = other.stages[0]!.stage_id;
  const own = mine.stages[0]!.stage_id;
  const refused = await who.call('PATCH', one, {
    stages: [
      { stage_id: own, name: 'a', steps: [{ name: 's', step_type: 'llm' }] },
      {
        stage_id: own,
        name: 'a',
        steps: [{ step_id: 'stp_none', name: 's', step_type: 'tool', tool_instance_id: 'ti_none' }],
      },
      { stage_id: foreign, name: 'b' },
    ],
  });
  expect(refused.status).toBe(422);
  expect(refusals(refused.body)).toEqual([
    ['body.stages.1.stage_id', `Value error, the stage '${own}' is given twice`],
    ['body.stages.2.stage_id', `Value error, the augmentation has no stage '${foreign}'`],
    ['body.stages.1.steps.0.step_id', `Value error, the augmentation has no step 'stp_none'`],
    ['body.stages.1.steps.0.tool_instance_id', `Value error, there is no tool instance 'ti_none' in the workspace`],
  ]);
  const step = { name: 's', step_type: 'llm' };
  const many = Array.from({ length: 5 }, () => ({ name: 'a', steps: Array.from({ length: 41 }, () => step) }));
  expect(refusals((await who.call('PATCH', one, { stages: many })).body)).toEqual([
    ['body.stages', 'Value error, an augmentation may have at most 200 steps, not 205'],
  ]);
  const large = [
    { name: 'a', steps: Array.from({ length: 5 }, () => ({ ...step, config: { a: 'x'.repeat(60_000) } })) },
  ];
  expect(refusals((await who.call('PATCH', one, { stages: large })).body)[0]![0]).toBe('body.stages');
  expect((await who.call('PATCH', one, { stages: [{ name: 'a', execution_mode: 'random' }] })).status).toBe(422);
  expect((await who.call('GET', one)).body).toEqual(mine);
});

test('cannot be deleted while an endpoint or an action runs it; goes with its app', async () => {
  const { who, url, appId, augmentation, endpoint, action } = await createPipeline(app);
  const { augmentation_id } = await augmentation();
  const { body: chat } = await endpoint({ path: '/chat', augmentation_id });
  const { body: report } = await action({ augmentation_id });
  const refused = await who.call<{ details: unknown }>('DELETE', `${url}/augmentations/${augmentation_id}`);
  expect(refused.status).toBe(409);
  expect(refused.body.details).toEqual({
    resource_type: 'augmentation',
    resource_id: augmentation_id,
    reason: 'in_use',
    references: [
      { resource_type: 'action', resource_id: report.action_id },
      { resource_type: 'endpoint', resource_id: chat.endpoint_id },
    ],
  });
  expect((await who.call('DELETE', url)).status).toBe(204);
  for (const model of ['augmentation', 'endpoint', 'action'] as const)
    expect(
      await (app.database.prisma[model] as { count(args: object): Promise<number> }).count({ where: { appId } }),
    ).toBe(0);
});

test('counts are kept per workspace and per app, also through changes, refusals and cascades', async () => {
  const first = await createPipeline(app);
  const second = await createPipeline(app, first.who);
  const { who } = first;
  expect(await keptCounts(app, first.appId)).toEqual({});
  const { augmentation_id } = await first.augmentation();
  await first.augmentation({ status: 'draft' });
  const { body: chat } = await first.endpoint({ path: '/chat', augmentation_id });
  await first.endpoint({ path: '/chat', augmentation_id });
  await first.endpoint({ path: '/other', augmentation_id, enabled: false });
  const { body: nightly } = await first.action({ kind: 'scheduled', cron: '0 0 1 1 *', augmentation_id });
  await first.action({ kind: 'trigger', trigger_event: 'artifact.created', augmentation_id });
  await second.augmentation();
  const ofFirst = {
    actions: 2,
    'actions.enabled': 2,
    'actions.scheduled': 1,
    'actions.trigger': 1,
    augmentations: 2,
    'augmentations.active': 1,
    endpoints: 2,
    'endpoints.enabled': 1,
  };
  const ofSecond = { augmentations: 1, 'augmentations.active': 1 };
  expect(await keptCounts(app, first.appId)).toEqual(ofFirst);
  expect(await keptCounts(app, second.appId)).toEqual(ofSecond);
  expect(await keptCounts(app, who.workspaceId)).toEqual({ ...ofFirst, augmentations: 3, 'augmentations.active': 2 });

  await who.call('PATCH', `${first.url}/endpoints/${chat.endpoint_id}`, { enabled: false });
  await who.call('PATCH', `${first.url}/actions/${nightly.action_id}`, { kind: 'manual', name: 'By hand' });
  await who.call('PATCH', `${first.url}/actions/${nightly.action_id}`, { name: 'Still by hand' });
  expect(await keptCounts(app, first.appId)).toEqual({
    actions: 2,
    'actions.enabled': 2,
    'actions.manual': 1,
    'actions.trigger': 1,
    augmentations: 2,
    'augmentations.active': 1,
    endpoints: 2,
  });

  await who.call('DELETE', first.url);
  expect(await keptCounts(app, first.appId)).toEqual({});
  expect(await keptCounts(app, who.workspaceId)).toEqual(ofSecond);
  await app.retention.run();
  const { rows } = await app.database.pool.query<{ place_id: string }>(
    'select distinct place_id from place_counts where org_id = $1 order by 1',
    [who.orgId],
  );
  expect(rows.map(({ place_id }) => place_id)).toEqual([second.appId, who.workspaceId].sort());
});

test('members read, editors write', async () => {
  const { who, url, augmentation } = await createPipeline(app);
  const { augmentation_id } = await augmentation();
  const member = await colleague(app, who, 'member');
  expect((await member.call('GET', `${url}/augmentations/${augmentation_id}`)).status).toBe(200);
  const refused = await member.call<{ details: unknown }>('POST', `${url}/augmentations`, { name: 'b' });
  expect(refused.body.details).toEqual({ required_permission: 'augmentation:create' });
  const editor = await colleague(app, who, 'editor');
  expect((await editor.call('POST', `${url}/augmentations`, { name: 'b' })).status).toBe(201);
});

test('steps have keys: given, kept, or made from names; references are checked, in REST and GraphQL', async () => {
  const { who, url, appId } = await createPipeline(app);
  const llm = { step_type: 'llm' };
  const stagesOf = (...steps: object[]) => [{ name: 'Work', steps: steps.map((step) => ({ ...llm, ...step })) }];
  const create = (...steps: object[]) =>
    who.call<Augmentation>('POST', `${url}/augmentations`, { name: 'Answers', stages: stagesOf(...steps) });
  const prompt = 'Answer {{input.text}} by {{steps.find.text}} and {{steps.read-it-2.pages}}, else {{step.find}}';
  const { status, body } = await create(
    { name: 'Search', key: 'find' },
    { name: 'Read it!' },
    { name: 'Read it!', config: { list: [{ prompt }] } },
    { name: '日本' },
  );
  expect(status, JSON.stringify(body)).toBe(201);
  const keysOf = ({ stages }: Augmentation) => stages.flatMap(({ steps }) => steps.map(({ key }) => key));
  expect(keysOf(body)).toEqual(['find', 'read-it', 'read-it-2', 'step']);
  const one = `${url}/augmentations/${body.augmentation_id}`;
  expect((await who.call<Augmentation>('GET', one)).body.stages).toEqual(body.stages);

  // another name leaves the key of a step that is kept; a new step does not take it
  const [find, second, third] = body.stages[0]!.steps;
  const kept = { step_id: find!.step_id, name: 'Another name' };
  const patched = await who.call<Augmentation>('PATCH', one, {
    stages: stagesOf({ name: 'Find' }, kept, second!, { ...third!, key: 'read-it-2' }),
  });
  expect(keysOf(patched.body)).toEqual(['find-2', 'find', 'read-it', 'read-it-2']);
  // the step that others refer to cannot go alone
  expect((await who.call('PATCH', one, { stages: stagesOf(second!, third!) })).status).toBe(422);

  const msg = (key: string) => `Value error, no step of the augmentation has the key '${key}'`;
  const config = 'body.stages.0.steps.0.config';
  const refused = async (...steps: object[]) => {
    const answer = await create(...steps);
    expect(answer.status).toBe(422);
    return refusals(answer.body);
  };
  expect(await refused({ name: 'a', config: { x: 'of {{steps.b.text}} and {{step.c}}' } })).toEqual([
    [config, msg('b')],
    [config, msg('c')],
  ]);
  expect(await refused({ name: 'a', key: 'a' }, { name: 'b', key: 'a' })).toEqual([
    ['body.stages.0.steps.1.key', "Value error, the key 'a' is given twice"],
  ]);
  expect((await refused({ name: 'a', key: 'No key' }))[0]![0]).toBe('body.stages.0.steps.0.key');
  const mutation = `mutation ($org: ID!, $ws: ID!, $app: ID!, $text: String!) {
    createAugmentation(orgId: $org, workspaceId: $ws, appId: $app, input: { name: "A", stages: [{ name: "Work",
      steps: [{ name: "One", key: "one", stepType: "llm" }, { name: "Two", stepType: "llm", config: { text: $text } }]
    }] }) { stages { steps { key config } } } }`;
  const ask = (text: string) =>
    who.ask<{ createAugmentation: unknown }>(mutation, { org: who.orgId, ws: who.workspaceId, app: appId, text });
  expect((await ask('{{steps.one.text}}')).data.createAugmentation).toEqual({
    stages: [
      {
        steps: [
          { key: 'one', config: {} },
          { key: 'two', config: { text: '{{steps.one.text}}' } },
        ],
      },
    ],
  });
  expect((await ask('{{steps.none.text}}')).errors).toMatchObject([{ extensions: { code: 'VALIDATION_ERROR' } }]);
});

test('a reference that had no step before keys were checked may stay', async () => {
  const { url, who, augmentation } = await createPipeline(app);
  const { augmentation_id, stages } = await augmentation({
    stages: [{ name: 'Work', steps: [{ name: 'a', step_type: 'llm', config: { x: 1 } }] }],
  });
  await app.database.pool.query(`update augmentation_steps set config = '{"x": "{{steps.old.text}}"}' where id = $1`, [
    stages[0]!.steps[0]!.step_id,
  ]);
  const one = `${url}/augmentations/${augmentation_id}`;
  const { body } = await who.call<Augmentation>('GET', one);
  expect((await who.call('PATCH', one, { stages: body.stages })).status).toBe(200);
  body.stages[0]!.steps[0]!.config = { x: '{{steps.other.text}}' };
  expect((await who.call('PATCH', one, { stages: body.stages })).status).toBe(422);
});

test('a step names its tool: by itself, or as that of its instance, also when that is gone', async () => {
  const { who, url, augmentation } = await createPipeline(app);
  const org = `/v1/orgs/${who.orgId}`;
  const { tools } = (await who.call<{ tools: { tool_id: string }[] }>('GET', `${org}/tools?search=wikipedia`)).body;
  const instance = { tool_id: tools[0]!.tool_id, name: 'Encyclopedia' };
  const { instance_id } = (await who.call<{ instance_id: string }>('POST', `${who.home}/tool-instances`, instance))
    .body;
  const step = { name: 'Read', step_type: 'tool' };
  const stages = [
    {
      name: 'Work',
      steps: [
        { ...step, tool_instance_id: instance_id, action: 'summary' },
        { ...step, tool_slug: 'none-yet' },
      ],
    },
  ];
  const made = await augmentation({ stages });
  const shown = [
    { tool_instance_id: instance_id, tool_slug: 'wikipedia', action: 'summary' },
    { tool_instance_id: null, tool_slug: 'none-yet', action: null },
  ];
  expect(made.stages[0]!.steps).toMatchObject(shown);
  const one = `${url}/augmentations/${made.augmentation_id}`;
  await who.call('DELETE', `${who.home}/tool-instances/${instance_id}`);
  const { body, status } = await who.call<Augmentation>('PATCH', one, { stages: made.stages });
  expect(status, JSON.stringify(body)).toBe(200);
  expect(body.stages[0]!.steps).toMatchObject(shown);
  const other = [{ name: 'Work', steps: [{ ...made.stages[0]!.steps[0], tool_slug: 'slack' }] }];
  const refused = await who.call('PATCH', one, { stages: other });
  expect([refused.status, refusals(refused.body)]).toEqual([
    422,
    [['body.stages.0.steps.0.tool_slug', "Value error, the tool instance belongs to the tool 'wikipedia'"]],
  ]);
});
