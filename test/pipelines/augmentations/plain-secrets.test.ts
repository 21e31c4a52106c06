import { afterAll, beforeAll, expect, test } from 'vitest';
import { masked } from '../../../src/kernel/plain-secrets.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, colleague, type Person } from '../../support/person.ts';
import { type Action, type Augmentation, createPipeline } from './pipeline.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const config = {
  api_key: 'sk-live-abcdef',
  headers: { Authorization: 'Bearer abc', 'X-Team': 'support' },
  other: [{ dsn: 'postgres://ann:hunter2@db.example.test/x' }, 'ghp_0123456789abcdef0123'],
  kept: ['{{secret.search}}', 'secret://search'],
  token: '{{secret.search}}',
  text: 'the secret of a good pie',
};
const hidden = {
  ...config,
  api_key: '********',
  headers: { Authorization: '********', 'X-Team': 'support' },
  other: [{ dsn: '********' }, '********'],
};

test('who may not change an app sees no secret that somebody wrote into it, over any face', async () => {
  const { who: owner, url, appId, augmentation, action } = await createPipeline(app);
  const made = await augmentation({ stages: [{ name: 'All', steps: [{ name: 'Ask', step_type: 'llm', config }] }] });
  const { augmentation_id: id } = made;
  const started = await action({ augmentation_id: id, input: config });
  expect([made.stages[0]!.steps[0]!.config, started.body.input]).toEqual([config, config]);
  const seenBy = async (person: Person) => {
    const one = await person.call<Augmentation>('GET', `${url}/augmentations/${id}`);
    const all = await person.call<{ augmentations: Augmentation[] }>('GET', `${url}/augmentations`);
    const actions = await person.call<{ actions: Action[] }>('GET', `${url}/actions`);
    const { data, errors } = await person.ask<{ node: object; workspace: object }>(
      `query ($orgId: ID!, $workspaceId: ID!, $id: ID!) {
        node(id: $id) { ... on Augmentation { stages { steps { config } } } }
        workspace(orgId: $orgId, id: $workspaceId) {
          apps(first: 5) { nodes { id augmentations(first: 5) { nodes { stages { steps { config } } } }
            actions(first: 5) { nodes { input } } } } } }`,
      { orgId: owner.orgId, workspaceId: owner.workspaceId, id },
    );
    const steps = { stages: [{ steps: [{ config: expect.anything() as unknown }] }] };
    expect(data, JSON.stringify(errors)).toMatchObject({
      node: steps,
      workspace: { apps: { nodes: [{ id: appId, augmentations: { nodes: [steps] } }] } },
    });
    const found = JSON.stringify([one.body, all.body, actions.body, data]);
    const configs = [one.body, all.body.augmentations[0]!].map(({ stages }) => stages[0]!.steps[0]!.config);
    return { configs: [...configs, actions.body.actions[0]!.input], shows: /sk-live-abcdef|hunter2|ghp_0/.test(found) };
  };
  for (const role of ['viewer', 'member'] as const)
    expect(await seenBy(await colleague(app, owner, role)), role).toEqual({
      configs: [hidden, hidden, hidden],
      shows: false,
    });
  const editor = await colleague(app, owner, 'editor');
  const whole = { configs: [config, config, config], shows: true };
  expect(await seenBy(editor)).toEqual(whole);
  // what runs the app reads it with a token that only reads
  const issued = await editor.call<{ plaintext_token: string }>('POST', `/v1/orgs/${owner.orgId}/api-tokens`, {
    name: 'runner',
    scopes: ['read'],
  });
  expect(await seenBy(caller(app, { ...editor, accessToken: issued.body.plaintext_token }))).toEqual(whole);
  // what an editor reads is what an editor can write back
  const { body } = await editor.call<Augmentation>('GET', `${url}/augmentations/${id}`);
  const again = await editor.call<Augmentation>('PATCH', `${url}/augmentations/${id}`, { stages: body.stages });
  expect(again.body.stages).toEqual(made.stages);
});

test.each<[string, string, boolean]>([
  ['password', 'hunter2', true],
  ['clientSecret', 'x', true],
  ['DB_PASSWD', 'x', true],
  ['password', '', false],
  ['secret', '{{secret.one}}', false],
  ['secret', 'sec_01M81B6EWGF6W861YYXF375G80', false],
  ['max_tokens', '500', false],
  ['any', 'sk-proj-0123456789', true],
  ['any', 'xoxb-0123456789-abcdef', true],
  ['any', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc', true],
  ['any', 'Bearer 0123456789abc', true],
  ['any', 'Bearer responsibilities', false],
  ['any', 'Basic knowledge', false],
  ['any', 'https://ann:pw@example.test/', true],
  ['any', 'https://example.test/a:b@c', false],
  ['any', '-----BEGIN RSA PRIVATE KEY-----\nabc', true],
  ['any', 'sk-', false],
])('%s: %j is a secret: %s', (key, text, isSecret) => {
  expect(masked({ [key]: text })).toEqual({ [key]: isSecret ? '********' : text });
});
