import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, type Person, register } from '../../support/person.ts';
import { deploy, type Environment, type History, newApp, newEnvironment, pathsOf } from './stage.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** The calls of a token that the owner makes. */
async function tokenOf(owner: Person, url: string, restrictions: object): Promise<Person> {
  const { status, body } = await owner.call<{ plaintext_token: string }>('POST', `/v1/orgs/${owner.orgId}/${url}`, {
    name: 'Robot',
    ...restrictions,
  });
  if (status !== 201) throw new Error(`making a token answered ${status}: ${JSON.stringify(body)}`);
  return caller(app, { ...owner, accessToken: body.plaintext_token });
}

const HISTORIES = `query ($o: ID!, $w: ID!, $app: ID!) {
  app(orgId: $o, workspaceId: $w, id: $app) {
    deployments(first: 9) { totalCount nodes { environmentId } }
    deployed(first: 9) { totalCount nodes { environmentId } }
  }
  workspace(orgId: $o, id: $w) { environments(first: 9) { totalCount nodes { id } } }
}`;

test('a token of one environment sees and changes only what is deployed there', async () => {
  const ann = await register(app, { name: 'ann' });
  const [own, other] = [await newEnvironment(ann), await newEnvironment(ann)];
  const { appId, releases } = await newApp(ann, 2);
  const elsewhere = await deploy(ann, other, appId, releases[0]!);
  const robot = await tokenOf(ann, 'api-tokens', { environment_ids: [own.environment_id] });
  const refused = (required_permission: string) => ({ status: 403, body: { details: { required_permission } } });

  const payload = { app_id: appId, release_id: releases[1] };
  expect((await robot.call('POST', pathsOf(ann, own).deploy, payload)).status).toBe(200);
  expect(await robot.call('POST', pathsOf(ann, other).deploy, payload)).toMatchObject(refused('deployment:create'));
  expect(
    await robot.call('POST', pathsOf(ann, own).promote, { app_id: appId, from_environment_id: other.environment_id }),
  ).toMatchObject(refused('environment:read'));
  expect(await robot.call('DELETE', `${pathsOf(ann, other).deploy}/${appId}`)).toMatchObject(
    refused('deployment:delete'),
  );
  expect(await robot.call('GET', pathsOf(ann, other).self)).toMatchObject(refused('environment:read'));
  expect(await robot.call('GET', pathsOf(ann, other).deployments)).toMatchObject(refused('environment:read'));

  const list = (await robot.call<{ total: number; environments: Environment[] }>('GET', `${ann.home}/environments`))
    .body;
  expect([list.total, list.environments.map((item) => item.environment_id)]).toEqual([1, [own.environment_id]]);
  const place = { o: ann.orgId, w: ann.workspaceId };
  const only = { totalCount: 1, nodes: [{ environmentId: own.environment_id }] };
  expect((await robot.ask(HISTORIES, { ...place, app: appId })).data).toEqual({
    app: { deployments: only, deployed: only },
    workspace: { environments: { totalCount: 1, nodes: [{ id: own.environment_id }] } },
  });
  const record = 'query ($o: ID!, $w: ID!, $id: ID!) { deployment(orgId: $o, workspaceId: $w, id: $id) { id } }';
  const asked = await robot.ask(record, { ...place, id: elsewhere.deployment_id });
  expect(asked.errors?.map(({ extensions }) => extensions.code)).toEqual(['FORBIDDEN']);
  const node = await robot.ask('query ($id: ID!) { node(id: $id) { id } }', { id: elsewhere.deployment_id });
  expect(node.data).toEqual({ node: null });
});

test('a token that may deploy but not update environments stops at a lock, as its owner would not', async () => {
  const ann = await register(app, { name: 'ann' });
  const environment = await newEnvironment(ann);
  const { appId, releases } = await newApp(ann);
  await ann.call('PUT', pathsOf(ann, environment).self, { status: 'locked' });
  const payload = { app_id: appId, release_id: releases[0] };
  const deployer = await tokenOf(ann, 'api-tokens', { permissions: ['deployment:create', 'environment:read'] });
  expect(await deployer.call('POST', pathsOf(ann, environment).deploy, payload)).toMatchObject({
    status: 409,
    body: { details: { reason: 'environment_locked' } },
  });
  const restricted = await tokenOf(ann, 'api-tokens', { environment_ids: [environment.environment_id] });
  expect((await restricted.call('POST', pathsOf(ann, environment).deploy, payload)).status).toBe(200);
});

test("an app's token deploys that app alone, and sees nothing of others", async () => {
  const ann = await register(app, { name: 'ann' });
  const environment = await newEnvironment(ann);
  const [own, other] = [await newApp(ann), await newApp(ann)];
  await deploy(ann, environment, other.appId, other.releases[0]!);
  const robot = await tokenOf(ann, `apps/${own.appId}/tokens`, {});
  const { deploy: at, deployments, self } = pathsOf(ann, environment);
  const put = (of: typeof own) => robot.call('POST', at, { app_id: of.appId, release_id: of.releases[0] });
  expect((await put(own)).status).toBe(200);
  const refused = { status: 403, body: { details: { required_permission: 'deployment:create' } } };
  expect(await put(other)).toMatchObject(refused);
  expect((await robot.call('DELETE', `${at}/${other.appId}`)).status).toBe(403);
  expect((await robot.call<Environment>('GET', self)).body.active_deployments).toEqual({
    [own.appId]: own.releases[0],
  });
  const { total, deployments: records } = (await robot.call<History>('GET', deployments)).body;
  expect([total, records.map(({ app_id }) => app_id)]).toEqual([1, [own.appId]]);
});
