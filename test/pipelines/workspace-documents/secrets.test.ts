import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { exported, imported, newInstance, newModel, newTool, newWorkspace, orgOf, sent } from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const SECRET = 'sk-live-4eC39HqLyjWDarjtT1zdp7dc';

const PLACEHOLDER = /^\{\{secret\.\w+\}\}$/;

const documentOf = (...tool_instances: object[]) => ({
  format: 'workspace',
  version: 1,
  workspace: { name: 'Any' },
  tool_instances,
});

test('an import that is refused repeats no secret of the document, in REST and in GraphQL', async () => {
  const ann = await register(app, { name: 'ann' });
  await newTool(ann, 'own');
  const named = { key: 'ours', tool: 'own', name: 'Ours' };
  const wide = { note: SECRET, more: 'x'.repeat(256 * 1024) };
  const instances = [
    { ...named, connection_credentials: { client_secret: SECRET } },
    { ...named, connection_credentials: { client_secret: SECRET.repeat(20) } },
    { ...named, connection_credentials: { client_secret: 4242424242 } },
    { ...named, configuration: wide },
    { ...named, configuration: SECRET },
    { ...named, auth_config: SECRET },
    { ...named, configuration: { api_key: SECRET } },
    // the enclosing object is shown of what is missing
    { key: 'ours', tool: 'own', configuration: { note: SECRET }, connection_credentials: { client_secret: SECRET } },
  ];
  for (const instance of instances) {
    const document = documentOf(instance);
    const { status, body } = await imported(ann, ann.home, { document });
    expect([status, JSON.stringify(body)]).toEqual([422, expect.stringContaining('[redacted]')]);
    const errors = await graphQLErrors(ann, document);
    for (const answer of [body, errors]) expect(JSON.stringify(answer)).not.toMatch(/sk-live|4242424242/);
  }
});

async function graphQLErrors(who: Person, document: object): Promise<unknown> {
  const { errors } = await who.ask(
    `mutation ($org: ID!, $ws: ID!, $document: JSONObject!) {
      importWorkspace(orgId: $org, workspaceId: $ws, input: { document: $document }) { message } }`,
    { org: who.orgId, ws: who.workspaceId, document },
  );
  expect(errors).toHaveLength(1);
  return errors;
}

test('a field that became sensitive after an instance was made is a credential in the export', async () => {
  const ann = await register(app, { name: 'ann' });
  const fields = [
    { name: 'host', type: 'string' },
    { name: 'phrase', type: 'string' },
  ];
  const tool = await newTool(ann, 'own', { config_schema: fields });
  const configuration = { host: 'https://a.test', phrase: 'blue horse seven', api_key: 'k' };
  await newInstance(ann, ann.home, tool, { configuration });
  const config_schema = fields.map((field) => ({ ...field, sensitive: field.name === 'phrase' }));
  await sent(ann, 'PUT', `${orgOf(ann)}/tools/${tool}`, { config_schema });
  const { document } = (await exported(ann)).body;
  expect(document.tool_instances).toMatchObject([
    { configuration: { host: 'https://a.test' }, credentials: ['api_key', 'phrase'] },
  ]);
  expect(JSON.stringify(document)).not.toContain('blue horse');
  const { status, body } = await imported(ann, await newWorkspace(ann), { document });
  expect([status, body.missing.map(({ kind, name }) => [kind, name])]).toEqual([
    200,
    [
      ['credential', 'api_key'],
      ['credential', 'phrase'],
    ],
  ]);
});

test('clients, entitlements and labels leave without the secrets that somebody wrote into them', async () => {
  const ann = await register(app, { name: 'ann' });
  await newModel(ann, 'large');
  const entitlement = { logical_model_id: 'large', allowed_purposes: [SECRET], allowed_endpoints: ['answers'] };
  await sent(ann, 'POST', `${ann.home}/model-entitlements`, entitlement);
  await sent(ann, 'PUT', ann.home, { tags: ['ours', SECRET] });
  const connection_credentials = {
    client_id: SECRET,
    callback_url: `https://user:${SECRET}@h.test/cb?access_token=${SECRET}`,
    scopes_override: ['read', SECRET],
  };
  await newInstance(ann, ann.home, await newTool(ann, 'own'), { connection_credentials });
  const plain = { connection_credentials: { client_id: 'us', callback_url: 'https://h.test/cb?of=1' } };
  await newInstance(ann, ann.home, await newTool(ann, 'plain'), { name: 'Plain', ...plain });
  const { document, warnings } = (await exported(ann)).body;
  expect(JSON.stringify(document)).not.toContain('sk-live');
  expect(document).toMatchObject({
    workspace: { tags: ['ours', expect.stringMatching(PLACEHOLDER)] },
    entitlements: [{ allowed_endpoints: ['answers'], allowed_purposes: [expect.stringMatching(PLACEHOLDER)] }],
    tool_instances: [
      { connection_credentials: { scopes_override: ['read', expect.stringMatching(PLACEHOLDER)] } },
      { ...plain },
    ],
  });
  expect(document.tool_instances[0]!.connection_credentials).not.toHaveProperty('callback_url');
  expect(warnings).toContain("The callback address of the tool instance 'Ours' may contain a secret. It was left out.");
  const { status, body } = await imported(ann, await newWorkspace(ann), { document });
  expect([status, JSON.stringify(body)]).toEqual([200, expect.any(String)]);
});

test('a tool leaves without the secrets that somebody wrote into it, and is imported by others', async () => {
  const [ann, ben] = [await register(app, { name: 'ann' }), await register(app, { name: 'ben' })];
  const withKey = `https://api.test/items?api_key=${SECRET}`;
  const tool = await newTool(ann, 'own', {
    description: `The key is ${SECRET}.`,
    icon_url: `https://ann:${SECRET}@h.test/icon.png`,
    documentation_url: withKey,
    action_schemas: [
      { name: 'list', method: 'POST', description: 'Lists.', url_template: withKey, headers: { 'x-api-key': SECRET } },
    ],
  });
  await newInstance(ann, ann.home, tool);
  const { document, warnings } = (await exported(ann)).body;
  expect(JSON.stringify(document)).not.toContain('sk-live');
  const cleanUrl = 'https://api.test/items?api_key=SECRET_REMOVED';
  expect(document.tools).toMatchObject([
    {
      description: 'The key is SECRET_REMOVED.',
      documentation_url: cleanUrl,
      action_schemas: [{ url_template: cleanUrl, headers: { 'x-api-key': 'SECRET_REMOVED' } }],
    },
  ]);
  expect(URL.canParse(document.tools[0]!.icon_url!)).toBe(true);
  expect(warnings).toContain("The 'url_template' of the tool 'own' may contain a secret: SECRET_REMOVED replaces it.");
  const { status, body } = await imported(ben, await newWorkspace(ben), { document });
  expect([status, body.made.map(({ resource_type }) => resource_type)]).toEqual([200, ['tool', 'tool_instance']]);
});
