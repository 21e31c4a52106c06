// The examples of README.md in this folder: what the page shows stands here word for word, so it compiles and runs.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from './app.ts';
import { expendable } from './expendable.ts';
import { whileJobsWait } from './held-jobs.ts';
import { addRows, listRoutes } from './lists.ts';
import { operationAt, operations, routeOf } from './operations.ts';
import { colleague, register, registerProven } from './person.ts';
import { injectable, partsOf } from './requests.ts';
import { waitFor } from './wait.ts';
import { createWorld, type World } from './world.ts';
import { askWritten, restBodyOf } from './written.ts';

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());

it('shows a viewer the workspace, and lets them change nothing', async () => {
  const ann = await register(app, { name: 'ann' });
  const viewer = await colleague(app, ann, 'viewer');
  const { status, body } = await viewer.call<{ workspace_id: string }>('GET', ann.home);
  expect([status, body.workspace_id]).toEqual([200, ann.workspaceId]);
  expect((await viewer.call('PUT', ann.home, { name: 'Mine' })).status).toBe(403);
});

it('refuses a thread to a stranger, and shows no byte of the world', async () => {
  const operation = operations.find(({ method, path }) => method === 'GET' && path.endsWith('/threads/{thread_id}'))!;
  const parts = partsOf(operation, world, { token: world.stranger.accessToken });
  const answer = await app.server.inject(injectable(operation, parts));
  expect(answer.statusCode).toBe(403);
  expect(answer.body).not.toContain(world.marker);
});

it('removes a secret, and not the one of the world', async () => {
  const operation = operationAt('DELETE', '/v1/orgs/{org_id}/secrets/{secret_id}');
  const parts = await expendable(app, world, operation, 'owner');
  expect((await app.server.inject(injectable(operation, parts))).statusCode).toBe(operation.status);
  expect(parts.params.secret_id).not.toBe(world.ids.secret_id);
});

it('answers a list in REST as in GraphQL', async () => {
  const list = listRoutes.find(({ operation }) => routeOf(operation) === 'GET /v1/orgs/{org_id}/members')!;
  await addRows(app, world, list, 3);
  const parts = partsOf(list.operation, world, { token: world.accounts.owner.accessToken });
  const answer = await app.server.inject(injectable(list.operation, parts));
  const { data } = await askWritten(app, list.operation, parts);
  expect(answer.json()).toEqual(restBodyOf(list.operation, data!));
});

it('mails an invitation only after its change has committed', async () => {
  const ann = await registerProven(app, { name: 'ann' });
  const mails = () => app.mails.filter(({ to }) => to === 'bob@example.test');
  const url = `/v1/orgs/${ann.orgId}/invitations`;
  await whileJobsWait(app, async () => {
    const { status } = await ann.call('POST', url, { email: 'bob@example.test', role: 'viewer' });
    expect([status, mails()]).toEqual([201, []]);
  });
  await waitFor(() => expect(mails()).toHaveLength(1));
});

it('runs every example of the page', () => {
  const here = readFileSync(path.join(import.meta.dirname, 'example.test.ts'), 'utf8');
  const page = readFileSync(path.join(import.meta.dirname, 'README.md'), 'utf8');
  const examples = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!);
  expect(examples.length).toBeGreaterThan(4);
  expect(examples.filter((code) => !here.includes(code))).toEqual([]);
});
