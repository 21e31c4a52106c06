import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { exported, imported, newWorkspace, sent } from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const shop = (key: string) => ({
  key,
  definition: {
    app: { name: 'Shop' },
    augmentations: [{ key: 'answers', name: 'Answers' }],
    stages: [{ key: 'say', augmentation: 'answers', name: 'Say' }],
    steps: Array.from({ length: 50 }, (_, at) => ({ key: `s-${at}`, stage: 'say', name: 'S', step_type: 'llm' })),
  },
});
const tooLarge = (message: string) => ({
  status: 409,
  body: { message: expect.stringContaining(message), details: { reason: 'too_large' } },
});

test('what is exported can be imported: a workspace with more values than a request may have is not', async () => {
  const ann = await register(app, { name: 'ann' });
  const apps = Array.from({ length: 9 }, (_, at) => shop(`shop-${at}`));
  const document = { format: 'workspace', version: 1, workspace: { name: 'Any' }, apps };
  expect((await imported(ann, ann.home, { document })).status).toBe(200);
  const whole = (await exported(ann)).body.document;
  const copy = await imported(ann, await newWorkspace(ann), { document: whole });
  expect([copy.status, copy.body.made.length]).toEqual([200, 9]);
  for (let times = 0; times < 2; times++) expect((await imported(ann, ann.home, { document })).status).toBe(200);
  expect(await exported(ann)).toMatchObject(tooLarge('at most 19000 values, where each key counts as 2 more'));
});

test('a workspace with data that a document would have too deep is not exported', async () => {
  const ann = await register(app, { name: 'ann' });
  const metadata = JSON.parse(`${'{"a":'.repeat(62)}1${'}'.repeat(62)}`) as object;
  await sent(ann, 'POST', `${ann.home}/apps`, { name: 'Deep', metadata });
  expect(await exported(ann)).toMatchObject(tooLarge('at most 64 levels'));
});
