import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { imported } from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('an instance of a disabled tool is left out and listed, also where the document brings the tool', async () => {
  const ann = await register(app, { name: 'ann' });
  const document = {
    format: 'workspace',
    version: 1,
    workspace: { name: 'Any' },
    tools: [{ slug: 'own', name: 'Own', description: 'Does it.', status: 'disabled' }],
    tool_instances: [{ key: 'ours', tool: 'own', name: 'Ours' }],
  };
  for (const made of [['tool'], []]) {
    const { status, body } = await imported(ann, ann.home, { document });
    expect([status, body.made.map(({ resource_type }) => resource_type)]).toEqual([200, made]);
    expect(body.missing).toMatchObject([{ name: 'own', used_by: ['tool_instance.ours'] }]);
  }
});
