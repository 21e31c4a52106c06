import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ReleaseFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Release = RestBody<ReleaseFragment>;

async function newApp(owner: Person): Promise<string> {
  const { app_id } = (await owner.call<{ app_id: string }>('POST', `${owner.home}/apps`, { name: 'App' })).body;
  return `${owner.home}/apps/${app_id}`;
}

test('numbers the releases of each app from 1; the version is the number unless told', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two] = [await newApp(ann), await newApp(ann)];
  const { status, body } = await ann.call<Release>('POST', `${one}/releases`, {
    notes: 'First',
    metadata: { sha: 'abc' },
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    release_id: expect.stringMatching(/^rls_/),
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    app_id: one.split('/').at(-1),
    number: 1,
    version: '1',
    notes: 'First',
    metadata: { sha: 'abc' },
    created_by: ann.userId,
    created_at: expect.any(String),
  });
  expect((await ann.call('GET', `${one}/releases/${body.release_id}`)).body).toEqual(body);
  expect((await ann.call('POST', `${one}/releases`, { version: '2.4.0' })).body).toMatchObject({
    number: 2,
    version: '2.4.0',
  });
  expect((await ann.call('POST', `${two}/releases`, { version: '2.4.0' })).body).toMatchObject({
    number: 1,
    version: '2.4.0',
  });
  const list = (await ann.call<{ total: number; releases: Release[] }>('GET', `${one}/releases`)).body;
  expect([list.total, list.releases.map(({ number }) => number)]).toEqual([2, [2, 1]]);
  expect(await eventsOf(app, body.release_id)).toEqual(['release.created']);
  expect(await changesOf(app, body.release_id)).toMatchObject([
    { action: 'create', resourceType: 'release', orgId: ann.orgId, metadata: { number: 1, version: '1' } },
  ]);
});

test('20 releases at the same time get the numbers 1 to 20, without gaps', async () => {
  const ann = await register(app, { name: 'ann' });
  const url = `${await newApp(ann)}/releases`;
  const answers = await Promise.all(Array.from({ length: 20 }, () => ann.call<Release>('POST', url, {})));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201));
  expect(answers.map(({ body }) => body.number).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 1),
  );
});

test('a version is unique per app: of two at once one is created, and the refused one takes no number', async () => {
  const ann = await register(app, { name: 'ann' });
  const url = `${await newApp(ann)}/releases`;
  const answers = await Promise.all([1, 2].map(() => ann.call<Release>('POST', url, { version: '1.0.0' })));
  const [made, refused] = answers.sort((a, b) => a.status - b.status) as [(typeof answers)[0], (typeof answers)[0]];
  expect(made).toMatchObject({ status: 201, body: { number: 1 } });
  expect(refused).toMatchObject({
    status: 409,
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'release', field: 'version', value: '1.0.0', resource_id: made.body.release_id },
    },
  });
  expect((await ann.call('POST', url, {})).body).toMatchObject({ number: 2, version: '2' });
});

test('roles: everybody reads, editors release and delete', async () => {
  const owner = await register(app, { name: 'owner' });
  const url = `${await newApp(owner)}/releases`;
  const outcome: Record<string, number[]> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const { release_id } = (await owner.call<Release>('POST', url, {})).body;
    const answers = [
      await somebody.call('GET', url),
      await somebody.call('POST', url, {}),
      await somebody.call('DELETE', `${url}/${release_id}`),
    ];
    outcome[role] = answers.map(({ status }) => status);
  }
  expect(outcome).toEqual({
    viewer: [200, 403, 403],
    member: [200, 403, 403],
    editor: [200, 201, 204],
    admin: [200, 201, 204],
  });
});

test('a release under another app is missing, as is everything under a foreign app', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const [one, two, theirs] = [await newApp(ann), await newApp(ann), await newApp(eve)];
  const { release_id, app_id } = (await ann.call<Release>('POST', `${one}/releases`, {})).body;
  const missing = { status: 404, body: { details: { resource_type: 'release', resource_id: release_id } } };
  const noApp = { status: 404, body: { details: { resource_type: 'app', resource_id: app_id } } };
  for (const method of ['GET', 'DELETE'] as const) {
    expect(await ann.call(method, `${two}/releases/${release_id}`)).toMatchObject(missing);
    expect(await eve.call(method, `${theirs}/releases/${release_id}`)).toMatchObject(missing);
    expect(await eve.call(method, `${eve.home}/apps/${app_id as string}/releases/${release_id}`)).toMatchObject(noApp);
  }
  expect(await eve.call('GET', `${eve.home}/apps/${app_id as string}/releases`)).toMatchObject(noApp);
  expect(await eve.call('POST', `${eve.home}/apps/${app_id as string}/releases`, {})).toMatchObject(noApp);
  expect((await ann.call('GET', `${one}/releases`)).body).toMatchObject({ total: 1 });
});

test('deleting an app deletes its releases', async () => {
  const ann = await register(app, { name: 'ann' });
  const url = await newApp(ann);
  await ann.call('POST', `${url}/releases`, {});
  expect((await ann.call('DELETE', url)).status).toBe(204);
  expect(await app.database.prisma.release.count({ where: { appId: url.split('/').at(-1)! } })).toBe(0);
});

test('a number that was given out is never given out again, also after the newest release was deleted', async () => {
  const ann = await register(app, { name: 'ann' });
  const url = `${await newApp(ann)}/releases`;
  const numbers: number[] = [];
  for (let i = 0; i < 4; i++) {
    const { body } = await ann.call<Release>('POST', url, {});
    numbers.push(body.number);
    expect((await ann.call('DELETE', `${url}/${body.release_id}`)).status).toBe(204);
  }
  expect(numbers).toEqual([1, 2, 3, 4]);
});
