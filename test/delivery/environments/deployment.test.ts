import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';
import {
  chainOf,
  type Deployed,
  deploy,
  type Environment,
  type History,
  newApp,
  newEnvironment,
  pathsOf,
  pointerOf,
} from './stage.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('a release is deployed and undeployed: contract bodies; a record, an event and an audit record each', async () => {
  const ann = await register(app, { name: 'ann' });
  const [environment, { appId, releases }] = [await newEnvironment(ann), await newApp(ann)];
  const { environment_id } = environment;
  const { self, deploy: at, deployments } = pathsOf(ann, environment);
  const deployed = await ann.call<Deployed>('POST', at, { app_id: appId, release_id: releases[0] });
  expect(deployed).toEqual({
    status: 200,
    body: {
      message: 'App deployed successfully',
      deployment_id: expect.stringMatching(/^dep_[0-9A-Z]{26}$/),
      environment_id,
      app_id: appId,
      release_id: releases[0],
    },
  });
  expect((await ann.call<Environment>('GET', self)).body.active_deployments).toEqual({ [appId]: releases[0] });
  const undeployed = await ann.call<Deployed>('DELETE', `${at}/${appId}`);
  expect(undeployed).toEqual({
    status: 200,
    body: { message: 'App undeployed successfully', deployment_id: expect.stringMatching(/^dep_/) },
  });
  expect((await ann.call<Environment>('GET', self)).body).toEqual(environment);
  const record = {
    environment_id,
    app_id: appId,
    release_id: releases[0],
    deployed_by: ann.userId,
    deployed_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
  };
  const { body } = await ann.call<History>('GET', deployments);
  expect(body).toEqual({
    deployments: [
      {
        ...record,
        deployment_id: undeployed.body.deployment_id,
        previous_release_id: releases[0],
        action: 'undeploy',
      },
      { ...record, deployment_id: deployed.body.deployment_id, previous_release_id: null, action: 'deploy' },
    ],
    total: 2,
  });
  const told = { environment_id, app_id: appId, release_id: releases[0] };
  const event = await app.database.prisma.event.findFirstOrThrow({
    where: { resourceId: deployed.body.deployment_id },
  });
  expect(event).toMatchObject({
    type: 'deployment.created',
    orgId: ann.orgId,
    workspaceId: ann.workspaceId,
    resourceType: 'deployment',
    data: { ...told, previous_release_id: null, action: 'deploy', number: 1 },
  });
  expect(await eventsOf(app, undeployed.body.deployment_id)).toEqual(['deployment.removed']);
  const place = { resourceType: 'deployment', orgId: ann.orgId, workspaceId: ann.workspaceId, userId: ann.userId };
  expect(await changesOf(app, deployed.body.deployment_id)).toMatchObject([
    { ...place, action: 'deploy', statusCode: 200, metadata: { ...told, number: 1 } },
  ]);
  expect(await changesOf(app, undeployed.body.deployment_id)).toMatchObject([
    { ...place, action: 'undeploy', statusCode: 200, metadata: { ...told, number: 2 } },
  ]);
});

/** Steps of a chain: the number of the release to deploy, `-` to undeploy; and the actions that the records tell. */
const chains: [string, (number | '-')[], string[]][] = [
  ['the first release', [1], ['deploy']],
  ['the same again', [1, 1], ['deploy', 'deploy']],
  ['a new one', [1, 2], ['deploy', 'deploy']],
  ['back to the one before', [1, 2, 1], ['deploy', 'deploy', 'rollback']],
  ['back, and the same again', [1, 2, 1, 1], ['deploy', 'deploy', 'rollback', 'deploy']],
  ['back by two', [1, 2, 3, 1], ['deploy', 'deploy', 'deploy', 'rollback']],
  ['back and forth', [1, 2, 1, 2], ['deploy', 'deploy', 'rollback', 'rollback']],
  ['an older one that never was here', [2, 1], ['deploy', 'deploy']],
  ['the same after nothing', [1, '-', 1], ['deploy', 'undeploy', 'deploy']],
  ['an older one after nothing', [1, 2, '-', 1], ['deploy', 'deploy', 'undeploy', 'deploy']],
  ['back, past nothing', [1, '-', 2, 1], ['deploy', 'undeploy', 'deploy', 'rollback']],
];

test.each(chains)('%s: %j is %j', async (_title, steps, actions) => {
  const ann = await register(app, { name: 'ann' });
  const [environment, elsewhere] = [await newEnvironment(ann), await newEnvironment(ann)];
  const { appId, releases } = await newApp(ann, 3);
  // what was active in another environment was not active here
  for (const release of releases) await deploy(ann, elsewhere, appId, release);
  for (const step of steps) {
    if (step === '-') await ann.call('DELETE', `${pathsOf(ann, environment).deploy}/${appId}`);
    else await deploy(ann, environment, appId, releases[step - 1]!);
  }
  const chain = await chainOf(app, environment.environment_id, appId);
  expect(chain.map(({ action }) => action)).toEqual(actions);
  expect(chain.map(({ number }) => number)).toEqual(steps.map((_, index) => index + 1));
  let before: string | null = null;
  for (const { action, releaseId, previousReleaseId } of chain) {
    expect(previousReleaseId).toBe(before);
    before = action === 'undeploy' ? null : releaseId;
  }
  expect(await pointerOf(app, environment.environment_id, appId)).toBe(before);
  const events = await Promise.all(chain.map(({ id }) => eventsOf(app, id)));
  const names = { deploy: 'created', rollback: 'rolled_back', undeploy: 'removed' };
  expect(events.flat()).toEqual(actions.map((action) => `deployment.${names[action as keyof typeof names]}`));
});

test('unknown, foreign and mismatched apps and releases are missing; undeploying what is not there too', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const environment = await newEnvironment(ann);
  const [shop, blog, theirs] = [await newApp(ann), await newApp(ann), await newApp(eve)];
  const { deploy: at } = pathsOf(ann, environment);
  const missing = (resource_type: string, resource_id: string) => ({
    status: 404,
    body: { error: 'RESOURCE_NOT_FOUND', details: { resource_type, resource_id } },
  });
  const table: [string, string, string, string][] = [
    ['app_0', shop.releases[0]!, 'app', 'app_0'],
    [theirs.appId, theirs.releases[0]!, 'app', theirs.appId],
    [shop.appId, 'rls_0', 'release', 'rls_0'],
    [shop.appId, blog.releases[0]!, 'release', blog.releases[0]!],
    [shop.appId, theirs.releases[0]!, 'release', theirs.releases[0]!],
  ];
  for (const [app_id, release_id, type, id] of table)
    expect(await ann.call('POST', at, { app_id, release_id })).toMatchObject(missing(type, id));
  const nowhere = `${ann.home}/environments/env_0/deploy`;
  expect(await ann.call('POST', nowhere, { app_id: shop.appId, release_id: shop.releases[0] })).toMatchObject(
    missing('environment', 'env_0'),
  );
  expect(await ann.call('DELETE', `${at}/${shop.appId}`)).toMatchObject(missing('deployment', shop.appId));
  await deploy(ann, environment, shop.appId, shop.releases[0]!);
  expect((await ann.call('DELETE', `${at}/${shop.appId}`)).status).toBe(200);
  expect(await ann.call('DELETE', `${at}/${shop.appId}`)).toMatchObject(missing('deployment', shop.appId));
  expect(await ann.call('POST', at, {})).toMatchObject({
    status: 422,
    body: {
      detail: [
        { type: 'missing', loc: ['body', 'app_id'] },
        { type: 'missing', loc: ['body', 'release_id'] },
      ],
    },
  });
  expect(await chainOf(app, environment.environment_id, shop.appId)).toHaveLength(2);
});

test('the history is newest first, walked by key, and can be narrowed to an app', async () => {
  const ann = await register(app, { name: 'ann' });
  const environment = await newEnvironment(ann);
  const [shop, blog] = [await newApp(ann, 3), await newApp(ann, 2)];
  const made: string[] = [];
  for (const release of shop.releases) made.push((await deploy(ann, environment, shop.appId, release)).deployment_id);
  for (const release of blog.releases) made.push((await deploy(ann, environment, blog.appId, release)).deployment_id);
  const { deployments: newest, history: url } = pathsOf(ann, environment);
  const idsOf = ({ deployments }: History) => deployments.map(({ deployment_id }) => deployment_id);
  const all = (await ann.call<History>('GET', url)).body;
  expect([all.total, idsOf(all)]).toEqual([5, made.toReversed()]);
  const first = (await ann.call<History>('GET', `${url}?limit=3`)).body;
  const second = (await ann.call<History>('GET', `${url}?limit=3&cursor=${first.next_cursor}`)).body;
  expect([...idsOf(first), ...idsOf(second)]).toEqual(made.toReversed());
  expect([first.has_more, second.has_more, second.next_cursor]).toEqual([true, false, null]);
  const some = (await ann.call<History>('GET', `${url}?app_id=${shop.appId}&limit=2`)).body;
  expect([some.total, idsOf(some), some.has_more]).toEqual([3, [made[2], made[1]], true]);
  expect((await ann.call<History>('GET', `${newest}?app_id=${shop.appId}&limit=2`)).body).toEqual({
    deployments: some.deployments,
    total: 3,
  });
  const unused = await newApp(ann);
  expect((await ann.call<History>('GET', `${newest}?app_id=${unused.appId}`)).body).toEqual({
    deployments: [],
    total: 0,
  });
  expect(await ann.call('GET', `${newest}?app_id=app_0`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'app', resource_id: 'app_0' } },
  });
  await ann.call('DELETE', `${ann.home}/apps/${blog.appId}`);
  expect((await ann.call<History>('GET', `${newest}?app_id=${blog.appId}`)).body.total).toBe(3);
  for (const limit of ['0', '201', 'x']) expect((await ann.call('GET', `${newest}?limit=${limit}`)).status).toBe(422);
});

describe('promotion', () => {
  test('deploys what another environment has', async () => {
    const ann = await register(app, { name: 'ann' });
    const [staging, production] = [await newEnvironment(ann), await newEnvironment(ann)];
    const { appId, releases } = await newApp(ann, 2);
    await deploy(ann, staging, appId, releases[0]!);
    await deploy(ann, production, appId, releases[1]!);
    const answer = await ann.call<Deployed>('POST', pathsOf(ann, production).promote, {
      app_id: appId,
      from_environment_id: staging.environment_id,
    });
    expect(answer).toEqual({
      status: 200,
      body: {
        message: 'App promoted successfully',
        deployment_id: expect.stringMatching(/^dep_/),
        environment_id: production.environment_id,
        app_id: appId,
        release_id: releases[0],
      },
    });
    expect((await chainOf(app, production.environment_id, appId)).at(-1)).toMatchObject({
      number: 2,
      action: 'promote',
      releaseId: releases[0],
      previousReleaseId: releases[1],
    });
    expect(await pointerOf(app, staging.environment_id, appId)).toBe(releases[0]);
    expect(await eventsOf(app, answer.body.deployment_id)).toEqual(['deployment.created']);
    expect(await changesOf(app, answer.body.deployment_id)).toMatchObject([{ action: 'promote' }]);
  });

  test('needs another environment that has something deployed', async () => {
    const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
    const [staging, production, theirs] = [
      await newEnvironment(ann),
      await newEnvironment(ann),
      await newEnvironment(eve),
    ];
    const { appId } = await newApp(ann);
    const promote = (from: Environment, app_id = appId) =>
      ann.call('POST', pathsOf(ann, production).promote, { app_id, from_environment_id: from.environment_id });
    const missing = (resource_type: string) => ({ status: 404, body: { details: { resource_type } } });
    expect(await promote(staging)).toMatchObject(missing('deployment'));
    expect(await promote(staging, 'app_0')).toMatchObject(missing('app'));
    expect(await promote(theirs)).toMatchObject(missing('environment'));
    expect(await promote(production)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'from_environment_id'], type: 'value_error' }] },
    });
  });
});

describe('what is deployed holds its app and release', () => {
  test('a deployed release is not deleted, and the refusal says where it is', async () => {
    const ann = await register(app, { name: 'ann' });
    const [one, two] = [await newEnvironment(ann), await newEnvironment(ann)];
    const { appId, releases } = await newApp(ann, 2);
    for (const environment of [one, two]) await deploy(ann, environment, appId, releases[0]!);
    const url = `${ann.home}/apps/${appId}/releases/${releases[0]}`;
    expect(await ann.call('DELETE', url)).toMatchObject({
      status: 409,
      body: {
        error: 'RESOURCE_CONFLICT',
        details: {
          resource_type: 'release',
          resource_id: releases[0],
          reason: 'in_use',
          references: [one, two].map(({ environment_id }) => ({
            resource_type: 'environment',
            resource_id: environment_id,
          })),
        },
      },
    });
    for (const environment of [one, two]) await deploy(ann, environment, appId, releases[1]!);
    expect((await ann.call('DELETE', url)).status).toBe(204);
    const last = (await chainOf(app, one.environment_id, appId)).at(-1)!;
    const { data } = await ann.ask<{ node: unknown }>(
      'query ($id: ID!) { node(id: $id) { ... on Deployment { release { id } previousRelease { id } } } }',
      { id: last.id },
    );
    expect(data.node).toEqual({ release: { id: releases[1] }, previousRelease: null });
  });

  test('deleting an app undeploys it everywhere: records and events stay', async () => {
    const ann = await register(app, { name: 'ann' });
    const environments = [await newEnvironment(ann), await newEnvironment(ann), await newEnvironment(ann)];
    const [shop, blog] = [await newApp(ann), await newApp(ann)];
    for (const environment of environments) await deploy(ann, environment, shop.appId, shop.releases[0]!);
    await deploy(ann, environments[0]!, blog.appId, blog.releases[0]!);
    await ann.call('DELETE', `${pathsOf(ann, environments[2]!).deploy}/${shop.appId}`);
    expect((await ann.call('DELETE', `${ann.home}/apps/${shop.appId}`)).status).toBe(204);
    for (const { environment_id } of environments) {
      const chain = await chainOf(app, environment_id, shop.appId);
      expect(chain.map(({ action }) => action)).toEqual(['deploy', 'undeploy']);
      expect(await eventsOf(app, chain[1]!.id)).toEqual(['deployment.removed']);
    }
    expect((await ann.call<Environment>('GET', pathsOf(ann, environments[0]!).self)).body.active_deployments).toEqual({
      [blog.appId]: blog.releases[0],
    });
    expect(await changesOf(app, shop.appId)).toMatchObject([
      { action: 'create' },
      { action: 'delete', metadata: { also: [{ action: 'undeploy' }, { action: 'undeploy' }] } },
    ]);
  });

  test('an editor deletes no app that is deployed in a locked environment', async () => {
    const owner = await register(app, { name: 'owner' });
    const editor = await colleague(app, owner, 'editor');
    const [environment, { appId, releases }] = [await newEnvironment(owner), await newApp(owner)];
    const { self, deploy: at } = pathsOf(owner, environment);
    await deploy(owner, environment, appId, releases[0]!);
    await owner.call('PUT', self, { status: 'locked' });
    const url = `${owner.home}/apps/${appId}`;
    expect(await editor.call('DELETE', url)).toMatchObject({
      status: 409,
      body: {
        details: {
          resource_type: 'app',
          resource_id: appId,
          reason: 'environment_locked',
          references: [{ resource_type: 'environment', resource_id: environment.environment_id }],
        },
      },
    });
    expect(await pointerOf(app, environment.environment_id, appId)).toBe(releases[0]);
    await owner.call('DELETE', `${at}/${appId}`);
    expect((await editor.call('DELETE', url)).status).toBe(204);
  });
});

test('a change that fails half-way leaves neither a record nor a pointer', async () => {
  const ann = await register(app, { name: 'ann' });
  const [environment, { appId, releases }] = [await newEnvironment(ann), await newApp(ann, 2)];
  await deploy(ann, environment, appId, releases[0]!);
  const before = await chainOf(app, environment.environment_id, appId);
  const { pool } = app.database;
  for (const table of ['events', 'activity', 'deployments', 'environment_slots']) {
    await pool.query(`alter table ${table} add constraint broken check (false) not valid`);
    try {
      const { deploy: at, self } = pathsOf(ann, environment);
      const answers = [
        await ann.call('POST', at, { app_id: appId, release_id: releases[1] }),
        await ann.call('DELETE', `${at}/${appId}`),
        // deletions of environments and apps do not touch slots by themselves
        ...(table === 'environment_slots'
          ? []
          : [await ann.call('DELETE', self), await ann.call('DELETE', `${ann.home}/apps/${appId}`)]),
      ];
      expect([...new Set(answers.map(({ status }) => status))], table).toEqual([500]);
    } finally {
      await pool.query(`alter table ${table} drop constraint broken`);
    }
    expect(await chainOf(app, environment.environment_id, appId)).toEqual(before);
    expect(await pointerOf(app, environment.environment_id, appId)).toBe(releases[0]);
  }
  await app.services.activity.flush();
  await deploy(ann, environment, appId, releases[1]!);
  expect((await chainOf(app, environment.environment_id, appId)).map(({ number }) => number)).toEqual([1, 2]);
});

test('GraphQL: the same operations, with what leads from one to the other', async () => {
  const ann = await register(app, { name: 'ann' });
  const { appId, releases } = await newApp(ann, 2);
  const place = { o: ann.orgId, w: ann.workspaceId };
  const make = `mutation ($o: ID!, $w: ID!, $input: CreateEnvironmentInput!) {
    createEnvironment(orgId: $o, workspaceId: $w, input: $input) { message environment { id isDefault } } }`;
  type Made = { createEnvironment: { message: string; environment: { id: string; isDefault: boolean } } };
  const [staging, production] = [
    (await ann.ask<Made>(make, { ...place, input: { name: 'Staging', slug: 'staging' } })).data.createEnvironment,
    (await ann.ask<Made>(make, { ...place, input: { name: 'Live', slug: 'live', isDefault: true } })).data
      .createEnvironment,
  ];
  expect([staging.message, production.environment.isDefault]).toEqual(['Environment created successfully', true]);
  const [from, to] = [staging.environment.id, production.environment.id];
  const { data } = await ann.ask(
    `mutation ($o: ID!, $w: ID!, $from: ID!, $to: ID!, $app: ID!, $one: ID!, $two: ID!) {
      a: deployRelease(orgId: $o, workspaceId: $w, environmentId: $from, input: { appId: $app, releaseId: $one })
        { message deployment { number action } }
      b: deployRelease(orgId: $o, workspaceId: $w, environmentId: $from, input: { appId: $app, releaseId: $two })
        { deployment { number previousRelease { number } release { number } } }
      c: promoteRelease(orgId: $o, workspaceId: $w, environmentId: $to,
        input: { appId: $app, fromEnvironmentId: $from }) { message
        deployment { action environment { slug activeDeployments } } }
      d: undeployApp(orgId: $o, workspaceId: $w, environmentId: $from, appId: $app) { message
        deployment { action number releaseId } }
      e: updateEnvironment(orgId: $o, workspaceId: $w, id: $from, input: { status: archived }) { message
        environment { status activeDeployments } }
    }`,
    { ...place, from, to, app: appId, one: releases[0], two: releases[1] },
  );
  expect(data).toEqual({
    a: { message: 'App deployed successfully', deployment: { number: 1, action: 'deploy' } },
    b: { deployment: { number: 2, previousRelease: { number: 1 }, release: { number: 2 } } },
    c: {
      message: 'App promoted successfully',
      deployment: { action: 'promote', environment: { slug: 'live', activeDeployments: { [appId]: releases[1] } } },
    },
    d: {
      message: 'App undeployed successfully',
      deployment: { action: 'undeploy', number: 3, releaseId: releases[1] },
    },
    e: { message: 'Environment updated successfully', environment: { status: 'archived', activeDeployments: {} } },
  });
  const read = await ann.ask(
    `query ($o: ID!, $w: ID!, $from: ID!, $app: ID!) {
      workspace(orgId: $o, id: $w) { environments(first: 10) { totalCount nodes { slug status
        deployed(first: 5) { totalCount nodes { action app { id } release { number } } }
        deployments(first: 5) { totalCount nodes { action number } } } } }
      environments(orgId: $o, workspaceId: $w, status: archived) { nodes { slug } }
      deployments(orgId: $o, workspaceId: $w, environmentId: $from, appId: $app, first: 1) { totalCount
        nodes { action } }
      app(orgId: $o, workspaceId: $w, id: $app) { deployed(first: 5) { nodes { environment { slug } } }
        deployments(first: 9) { totalCount } }
    }`,
    { ...place, from, app: appId },
  );
  expect(read.errors).toBeUndefined();
  expect(read.data).toEqual({
    workspace: {
      environments: {
        totalCount: 2,
        nodes: [
          {
            slug: 'live',
            status: 'active',
            deployed: { totalCount: 1, nodes: [{ action: 'promote', app: { id: appId }, release: { number: 2 } }] },
            deployments: { totalCount: 1, nodes: [{ action: 'promote', number: 1 }] },
          },
          {
            slug: 'staging',
            status: 'archived',
            deployed: { totalCount: 0, nodes: [] },
            deployments: {
              totalCount: 3,
              nodes: [
                { action: 'undeploy', number: 3 },
                { action: 'deploy', number: 2 },
                { action: 'deploy', number: 1 },
              ],
            },
          },
        ],
      },
    },
    environments: { nodes: [{ slug: 'staging' }] },
    deployments: { totalCount: 3, nodes: [{ action: 'undeploy' }] },
    app: { deployed: { nodes: [{ environment: { slug: 'live' } }] }, deployments: { totalCount: 4 } },
  });
});
