import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { exported, imported, newInstance, newTool, newWorkspace, orgOf, sent } from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const SECRET = 'sk-live-4eC39HqLyjWDarjtT1zdp7dc';

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
