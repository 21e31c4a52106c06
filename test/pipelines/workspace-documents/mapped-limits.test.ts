import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { exported, imported, newSecret, newTool } from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const LONG = 'n'.repeat(250);
const instance = (key: string, more: object) => ({ key, tool: 'own', name: 'Ours', ...more });
const shop = (name: string) => ({ app: { name }, augmentations: [], stages: [], steps: [] });

test('what grows beyond its limit by the names that a mapping puts into it is refused', async () => {
  const ann = await register(app, { name: 'ann' });
  await newTool(ann, 'own');
  await newSecret(ann, LONG);
  const before = (await exported(ann)).body;
  const wide = { configuration: { host: '{{secret.a}}'.repeat(21_000) } };
  const refusals = async (parts: object) => {
    const document = { format: 'workspace', version: 1, workspace: { name: 'Any' }, ...parts };
    const { status, body } = await imported(ann, ann.home, { document, secrets: { a: LONG } });
    expect(status).toBe(422);
    return (body as unknown as { detail: { loc: unknown[]; msg: string }[] }).detail.map(({ loc, msg }) => [
      loc.slice(2).join('.'),
      msg,
    ]);
  };
  const instances = ['one', 'two', 'three'].map((key) => instance(key, wide));
  expect(await refusals({ tool_instances: instances })).toEqual(
    [0, 1, 2].map((at) => [
      `tool_instances.${at}.configuration`,
      expect.stringContaining('it has at most 262144 bytes, not 5481011'),
    ]),
  );
  const long = 'String should have at most 255 characters';
  const named = instance('one', { name: '{{secret.a}} and {{secret.a}}' });
  expect(await refusals({ tool_instances: [named] })).toEqual([['tool_instances.0.name', long]]);
  const apps = [{ key: 'shop', definition: shop('{{secret.a}}'.repeat(21)) }];
  expect(await refusals({ apps })).toEqual([['apps.0.definition.app.name', long]]);
  expect((await exported(ann)).body).toEqual(before);
});
