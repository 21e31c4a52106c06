import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { chainOf, deploy, type Environment, newApp, newEnvironment, pathsOf } from './stage.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface EnvironmentList {
  environments: Environment[];
  total: number;
  has_more: boolean;
  next_cursor: string | null;
}

const listOf = async (owner: Person, query = '') =>
  (await owner.call<EnvironmentList>('GET', `${owner.home}/environments${query}`)).body;
const defaultsOf = async (owner: Person) =>
  (await listOf(owner)).environments.filter(({ is_default }) => is_default).map(({ environment_id }) => environment_id);
const conflict = (id: string, reason: string) => ({
  status: 409,
  body: { error: 'RESOURCE_CONFLICT', details: { resource_type: 'environment', resource_id: id, reason } },
});

test('an environment is made, read, listed, changed and deleted, with the bodies of the contract', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<{ message: string; environment: Environment }>(
    'POST',
    `${ann.home}/environments`,
    { name: 'Production', slug: 'production', description: 'Live' },
  );
  expect(status).toBe(201);
  const expected = {
    environment_id: expect.stringMatching(/^env_[0-9A-Z]{26}$/),
    workspace_id: ann.workspaceId,
    org_id: ann.orgId,
    name: 'Production',
    slug: 'production',
    description: 'Live',
    is_default: true,
    status: 'active',
    active_deployments: {},
    created_by: ann.userId,
    created_at: expect.stringMatching(/^\d{4}-.*T.*\.\d{3}Z$/),
    updated_at: expect.any(String),
  };
  expect(body).toEqual({ message: 'Environment created successfully', environment: expected });
  const { environment } = body;
  const { self } = pathsOf(ann, environment);
  expect(await ann.call('GET', self)).toEqual({ status: 200, body: environment });
  expect(await ann.call('GET', `${ann.home}/environments`)).toEqual({
    status: 200,
    body: { environments: [environment], total: 1, has_more: false, next_cursor: null },
  });
  const changed = await ann.call<{ environment: Environment }>('PUT', self, { name: 'Prod', description: null });
  expect(changed).toEqual({
    status: 200,
    body: {
      message: 'Environment updated successfully',
      environment: { ...environment, name: 'Prod', description: null, updated_at: expect.any(String) },
    },
  });
  expect((await ann.call('GET', self)).body).toEqual(changed.body.environment);
  expect(await ann.call('DELETE', self)).toEqual({
    status: 200,
    body: { message: 'Environment deleted successfully' },
  });
  expect(await ann.call('GET', self)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'environment', resource_id: environment.environment_id } },
  });
  expect(await eventsOf(app, environment.environment_id)).toEqual([
    'environment.created',
    'environment.updated',
    'environment.deleted',
  ]);
  const place = { resourceType: 'environment', orgId: ann.orgId, workspaceId: ann.workspaceId, userId: ann.userId };
  await app.services.activity.flush();
  expect(await changesOf(app, environment.environment_id)).toMatchObject([
    { ...place, action: 'create', statusCode: 201, metadata: { slug: 'production' } },
    { ...place, action: 'update', statusCode: 200, metadata: { fields: ['name', 'description'] } },
    { ...place, action: 'delete', statusCode: 200, metadata: { slug: 'production' } },
  ]);
});

test('a page shows what is deployed in each environment, and can be narrowed to a status', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two, three] = [await newEnvironment(ann), await newEnvironment(ann), await newEnvironment(ann)];
  const [shop, blog] = [await newApp(ann), await newApp(ann)];
  await deploy(ann, one, shop.appId, shop.releases[0]!);
  await deploy(ann, one, blog.appId, blog.releases[0]!);
  await deploy(ann, two, blog.appId, blog.releases[0]!);
  await ann.call('PUT', pathsOf(ann, three).self, { status: 'archived' });
  const list = await listOf(ann);
  expect(list.environments.map((item) => [item.environment_id, item.active_deployments])).toEqual([
    [three.environment_id, {}],
    [two.environment_id, { [blog.appId]: blog.releases[0] }],
    [one.environment_id, { [shop.appId]: shop.releases[0], [blog.appId]: blog.releases[0] }],
  ]);
  const archived = await listOf(ann, '?status=archived');
  expect([archived.total, archived.environments.map((item) => item.environment_id)]).toEqual([
    1,
    [three.environment_id],
  ]);
  const first = await listOf(ann, '?limit=2&status=active');
  expect([first.total, first.has_more]).toEqual([2, false]);
  const page = await listOf(ann, '?limit=2');
  expect(page).toMatchObject({ total: 3, has_more: true });
  const rest = await listOf(ann, `?limit=2&cursor=${page.next_cursor}`);
  expect(rest.environments.map((item) => item.environment_id)).toEqual([one.environment_id]);
  expect((await ann.call('GET', `${ann.home}/environments?status=active&cursor=${page.next_cursor}`)).status).toBe(422);
});

test('what is said but already so is no change: no event, no new time', async () => {
  const ann = await register(app, { name: 'ann' });
  const made = await newEnvironment(ann);
  const { self } = pathsOf(ann, made);
  for (const same of [{}, { slug: made.slug, status: 'active', is_default: true }]) {
    expect((await ann.call<{ environment: Environment }>('PUT', self, same)).body.environment).toEqual(made);
  }
  expect(await eventsOf(app, made.environment_id)).toEqual(['environment.created']);
});

describe('the slug', () => {
  test('is unique in the workspace: the refusal names who has it', async () => {
    const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
    const [made, other] = [await newEnvironment(ann, { slug: 'staging' }), await newEnvironment(ann)];
    const taken = {
      status: 409,
      body: {
        error: 'RESOURCE_ALREADY_EXISTS',
        details: {
          resource_type: 'environment',
          field: 'slug',
          value: 'staging',
          resource_id: made.environment_id,
        },
      },
    };
    expect(await ann.call('POST', `${ann.home}/environments`, { name: 'S', slug: 'staging' })).toMatchObject(taken);
    expect(await ann.call('PUT', pathsOf(ann, other).self, { slug: 'staging' })).toMatchObject(taken);
    expect((await newEnvironment(eve, { slug: 'staging' })).slug).toBe('staging');
    await ann.call('DELETE', pathsOf(ann, other).self);
    expect((await newEnvironment(ann, { slug: other.slug })).slug).toBe(other.slug);
  });

  test('of twenty who want it at once one gets it', async () => {
    const ann = await register(app, { name: 'ann' });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ann.call('POST', `${ann.home}/environments`, { name: 'S', slug: 'same' })),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, ...Array<number>(19).fill(409)]);
    expect((await listOf(ann)).total).toBe(1);
  });

  test('stays once something was deployed, also after the app is gone', async () => {
    const ann = await register(app, { name: 'ann' });
    const [environment, { appId, releases }] = [await newEnvironment(ann), await newApp(ann)];
    const { self } = pathsOf(ann, environment);
    expect((await ann.call('PUT', self, { slug: 'renamed' })).status).toBe(200);
    await deploy(ann, environment, appId, releases[0]!);
    const refused = conflict(environment.environment_id, 'slug_in_use');
    expect(await ann.call('PUT', self, { slug: 'again', name: 'Again' })).toMatchObject(refused);
    await ann.call('DELETE', `${ann.home}/apps/${appId}`);
    expect(await ann.call('PUT', self, { slug: 'again' })).toMatchObject(refused);
    expect((await ann.call('GET', self)).body).toMatchObject({ slug: 'renamed', name: environment.slug });
    expect((await ann.call('PUT', self, { slug: 'renamed', name: 'Again' })).status).toBe(200);
  });
});

describe('the default', () => {
  test('is the first one, then the one that was made so last; the one before hears of it', async () => {
    const ann = await register(app, { name: 'ann' });
    const first = await newEnvironment(ann, { is_default: false });
    const second = await newEnvironment(ann);
    expect([first.is_default, second.is_default]).toEqual([true, false]);
    const third = await newEnvironment(ann, { is_default: true });
    expect(await defaultsOf(ann)).toEqual([third.environment_id]);
    const { body } = await ann.call<{ environment: Environment }>('PUT', pathsOf(ann, second).self, {
      is_default: true,
    });
    expect(body.environment.is_default).toBe(true);
    expect(await defaultsOf(ann)).toEqual([second.environment_id]);
    expect(await eventsOf(app, third.environment_id)).toEqual(['environment.created', 'environment.updated']);
    expect(await changesOf(app, second.environment_id)).toMatchObject([
      { action: 'create' },
      {
        action: 'update',
        metadata: {
          fields: ['isDefault'],
          also: [{ action: 'update', resource_type: 'environment', resource_id: third.environment_id }],
        },
      },
    ]);
  });

  test('while all are archived, the next one that is made or activated is it', async () => {
    const ann = await register(app, { name: 'ann' });
    const [one, two] = [await newEnvironment(ann), await newEnvironment(ann)];
    const put = (environment: Environment, status: string) =>
      ann.call('PUT', pathsOf(ann, environment).self, { status });
    const defaults = () => defaultsOf(ann);
    for (const environment of [two, one]) expect((await put(environment, 'archived')).status).toBe(200);
    expect(await defaults()).toEqual([one.environment_id]);
    expect(await put(two, 'active')).toMatchObject({ status: 200, body: { environment: { is_default: true } } });
    expect(await defaults()).toEqual([two.environment_id]);
    // where there is one, nothing is taken from it
    expect(await put(one, 'active')).toMatchObject({ body: { environment: { is_default: false } } });
    for (const environment of [one, two]) expect((await put(environment, 'archived')).status).toBe(200);
    const three = await newEnvironment(ann, { is_default: false });
    expect(three.is_default).toBe(true);
    expect(await defaults()).toEqual([three.environment_id]);
    expect(await eventsOf(app, two.environment_id)).toContain('environment.updated');
  });

  test('cannot be given up, deleted or archived while there are others to be it', async () => {
    const ann = await register(app, { name: 'ann' });
    const [first, second] = [await newEnvironment(ann), await newEnvironment(ann)];
    const { self } = pathsOf(ann, first);
    const refused = conflict(first.environment_id, 'default_environment');
    expect(await ann.call('PUT', self, { is_default: false })).toMatchObject(refused);
    expect(await ann.call('PUT', self, { status: 'archived' })).toMatchObject(refused);
    expect(await ann.call('DELETE', self)).toMatchObject(refused);
    expect(await defaultsOf(ann)).toEqual([first.environment_id]);
    expect((await ann.call('DELETE', pathsOf(ann, second).self)).status).toBe(200);
    expect((await ann.call('PUT', self, { status: 'archived' })).status).toBe(200);
    expect((await ann.call('DELETE', self)).status).toBe(200);
    expect((await newEnvironment(ann)).is_default).toBe(true);
  });

  test('after twenty concurrent creates, updates and deletes: exactly one is left, without a fault', async () => {
    const ann = await register(app, { name: 'ann' });
    const made: Environment[] = [];
    for (let i = 0; i < 6; i++) made.push(await newEnvironment(ann));
    const setters = made.flatMap((environment) =>
      [1, 2].map(() => ann.call('PUT', pathsOf(ann, environment).self, { is_default: true })),
    );
    const makers = [1, 2, 3, 4].map((n) =>
      ann.call('POST', `${ann.home}/environments`, { name: 'New', slug: `new-${n}`, is_default: true }),
    );
    const deleters = made.slice(0, 4).map((environment) => ann.call('DELETE', pathsOf(ann, environment).self));
    const statuses = (await Promise.all([...setters, ...makers, ...deleters])).map(({ status }) => status);
    expect(statuses.filter((status) => ![200, 201, 404, 409].includes(status))).toEqual([]);
    expect(statuses.slice(12, 16)).toEqual([201, 201, 201, 201]);
    expect(await defaultsOf(ann)).toHaveLength(1);
  });

  test('of twenty who set it at once all succeed, and exactly one is left', async () => {
    const ann = await register(app, { name: 'ann' });
    const made: Environment[] = [];
    for (let i = 0; i < 20; i++) made.push(await newEnvironment(ann));
    const answers = await Promise.all(
      made.map((environment) => ann.call('PUT', pathsOf(ann, environment).self, { is_default: true })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(await defaultsOf(ann)).toHaveLength(1);
  });
});

describe('the status', () => {
  test('is locked and unlocked; archived only when nothing is deployed, then takes only activation', async () => {
    const ann = await register(app, { name: 'ann' });
    await newEnvironment(ann);
    const [environment, { appId, releases }] = [await newEnvironment(ann), await newApp(ann)];
    const { self, deploy: at } = pathsOf(ann, environment);
    const statusOf = async () => (await ann.call<Environment>('GET', self)).body.status;
    const put = (payload: object) => ann.call('PUT', self, payload);
    await deploy(ann, environment, appId, releases[0]!);
    expect((await put({ status: 'locked' })).status).toBe(200);
    expect(await put({ status: 'archived' })).toMatchObject({
      status: 409,
      body: {
        details: {
          resource_id: environment.environment_id,
          reason: 'has_active_deployments',
          references: [{ resource_type: 'app', resource_id: appId }],
        },
      },
    });
    expect(await statusOf()).toBe('locked');
    expect((await ann.call('DELETE', `${at}/${appId}`)).status).toBe(200);
    expect((await put({ status: 'archived', name: 'Old' })).status).toBe(200);
    const archived = conflict(environment.environment_id, 'environment_archived');
    for (const change of [
      { name: 'Older' },
      { description: 'x' },
      { is_default: true },
      { slug: 'older' },
      { status: 'locked' },
      { status: 'active', name: 'Older' },
    ])
      expect(await put(change), JSON.stringify(change)).toMatchObject(archived);
    expect(await put({ status: 'archived', name: 'Old' })).toMatchObject({ status: 200 });
    expect(await ann.call('POST', at, { app_id: appId, release_id: releases[0] })).toMatchObject(archived);
    expect(await ann.call('DELETE', `${at}/${appId}`)).toMatchObject(archived);
    expect((await put({ status: 'active', name: 'Old' })).status).toBe(200);
    expect(await statusOf()).toBe('active');
    expect((await ann.call('POST', at, { app_id: appId, release_id: releases[0] })).status).toBe(200);
  });

  test('deploying and archiving at once never leaves something deployed in an archived one', async () => {
    const ann = await register(app, { name: 'ann' });
    await newEnvironment(ann);
    const { appId, releases } = await newApp(ann);
    for (let round = 0; round < 8; round++) {
      const environment = await newEnvironment(ann);
      const { self, deploy: at } = pathsOf(ann, environment);
      const [archiving, deploying] = await Promise.all([
        ann.call('PUT', self, { status: 'archived' }),
        ann.call('POST', at, { app_id: appId, release_id: releases[0] }),
      ]);
      expect([
        [200, 409],
        [409, 200],
      ]).toContainEqual([archiving.status, deploying.status]);
      const { status, active_deployments } = (await ann.call<Environment>('GET', self)).body;
      expect([status, active_deployments]).toEqual(
        archiving.status === 200 ? ['archived', {}] : ['active', { [appId]: releases[0] }],
      );
    }
  });
});

test('roles: everybody reads, editors deploy where it is not locked, administrators do the rest', async () => {
  const owner = await register(app, { name: 'owner' });
  await newEnvironment(owner);
  const { appId, releases } = await newApp(owner);
  const outcome: Record<string, unknown[]> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const [open, locked] = [await newEnvironment(owner), await newEnvironment(owner)];
    await owner.call('PUT', pathsOf(owner, locked).self, { status: 'locked' });
    const payload = { app_id: appId, release_id: releases[0] };
    const answers = [
      await somebody.call('GET', `${owner.home}/environments`),
      await somebody.call('GET', pathsOf(owner, open).deployments),
      await somebody.call('POST', `${owner.home}/environments`, { name: role, slug: `by-${role}` }),
      await somebody.call('PUT', pathsOf(owner, open).self, { name: role }),
      await somebody.call('POST', pathsOf(owner, open).deploy, payload),
      await somebody.call('DELETE', `${pathsOf(owner, open).deploy}/${appId}`),
      await somebody.call<Refusal>('POST', pathsOf(owner, locked).deploy, payload),
      await somebody.call<Refusal>('DELETE', `${pathsOf(owner, locked).deploy}/${appId}`),
      await somebody.call('DELETE', pathsOf(owner, open).self),
    ];
    outcome[role] = answers.map(({ status, body }) => {
      const { reason, required_permission } = (body as Refusal).details ?? {};
      return reason ?? required_permission ?? status;
    });
  }
  const refused = ['deployment:create', 'deployment:delete', 'deployment:create', 'deployment:delete'];
  const noAdmin = ['environment:create', 'environment:update'];
  expect(outcome).toEqual({
    viewer: [200, 200, ...noAdmin, ...refused, 'environment:delete'],
    member: [200, 200, ...noAdmin, ...refused, 'environment:delete'],
    editor: [200, 200, ...noAdmin, 200, 200, 'environment_locked', 'environment_locked', 'environment:delete'],
    admin: [200, 200, 201, 200, 200, 200, 200, 200, 200],
  });
});

interface Refusal {
  details?: { reason?: string; required_permission?: string };
}

test('deleting it undeploys everything: records, events and the history stay', async () => {
  const ann = await register(app, { name: 'ann' });
  await newEnvironment(ann);
  const environment = await newEnvironment(ann);
  const [shop, blog, idle] = [await newApp(ann), await newApp(ann), await newApp(ann)];
  for (const { appId, releases } of [shop, blog, idle]) await deploy(ann, environment, appId, releases[0]!);
  const { self, deploy: at } = pathsOf(ann, environment);
  await ann.call('DELETE', `${at}/${idle.appId}`);
  expect((await ann.call('DELETE', self)).status).toBe(200);
  for (const { appId, releases } of [shop, blog]) {
    const chain = await chainOf(app, environment.environment_id, appId);
    expect(chain).toMatchObject([
      { number: 1, action: 'deploy', releaseId: releases[0], previousReleaseId: null },
      { number: 2, action: 'undeploy', releaseId: releases[0], previousReleaseId: releases[0] },
    ]);
    expect(await eventsOf(app, chain[1]!.id)).toEqual(['deployment.removed']);
    const { data } = await ann.ask<{ node: unknown }>(
      'query ($id: ID!) { node(id: $id) { ... on Deployment { action environmentId environment { id } app { id } } } }',
      { id: chain[1]!.id },
    );
    expect(data.node).toEqual({
      action: 'undeploy',
      environmentId: environment.environment_id,
      environment: null,
      app: { id: appId },
    });
  }
  expect(await chainOf(app, environment.environment_id, idle.appId)).toHaveLength(2);
  expect(
    await app.database.prisma.environmentSlot.count({ where: { environmentId: environment.environment_id } }),
  ).toBe(0);
  expect(await changesOf(app, environment.environment_id)).toMatchObject([
    { action: 'create' },
    { action: 'delete', metadata: { also: [{ action: 'undeploy' }, { action: 'undeploy' }] } },
  ]);
});

test('deleting it deletes its secrets, and only those', async () => {
  const ann = await register(app, { name: 'ann' });
  const [keeps, goes] = [await newEnvironment(ann), await newEnvironment(ann)];
  const made: string[] = [];
  for (const { environment_id } of [keeps, goes]) {
    const { status, body } = await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, {
      name: 'KEY',
      secret_type: 'token',
      value: { token: 'x' },
      workspace_id: ann.workspaceId,
      environment_id,
    });
    expect(status, JSON.stringify(body)).toBe(201);
    made.push(body.secret_id);
  }
  expect((await ann.call('DELETE', pathsOf(ann, goes).self)).status).toBe(200);
  const secrets = await app.database.prisma.secret.findMany({ where: { id: { in: made } }, orderBy: { id: 'asc' } });
  expect(secrets.map(({ status }) => status)).toEqual(['active', 'deleted']);
  expect(await eventsOf(app, made[1]!)).toEqual(['secret.created', 'secret.deleted']);
});

test('bad input is refused with its places', async () => {
  const ann = await register(app, { name: 'ann' });
  const environment = await newEnvironment(ann);
  const placesOf = async (method: 'POST' | 'PUT' | 'GET', url: string, payload?: object) => {
    const { status, body } = await ann.call<{ detail: { type: string; loc: unknown[] }[] }>(method, url, payload);
    return [status, ...body.detail.map(({ type, loc }) => `${loc.join('.')} ${type}`)];
  };
  const list = `${ann.home}/environments`;
  const { self } = pathsOf(ann, environment);
  expect(await placesOf('POST', list, {})).toEqual([422, 'body.name missing', 'body.slug missing']);
  expect(await placesOf('POST', list, { name: '', slug: 'Not A Slug', description: 1, is_default: 'perhaps' })).toEqual(
    [
      422,
      'body.name string_too_short',
      'body.slug string_pattern_mismatch',
      'body.description string_type',
      'body.is_default bool_parsing',
    ],
  );
  expect(await placesOf('POST', list, { name: 'x'.repeat(256), slug: 'x'.repeat(65) })).toEqual([
    422,
    'body.name string_too_long',
    'body.slug string_too_long',
  ]);
  expect(await placesOf('PUT', self, { slug: '-', is_default: 2, status: 'gone' })).toEqual([
    422,
    'body.slug string_pattern_mismatch',
    'body.is_default bool_parsing',
    'body.status literal_error',
  ]);
  expect(await placesOf('PUT', self, { name: null, slug: null, is_default: null, status: null })).toEqual([
    422,
    'body.name string_type',
    'body.slug string_type',
    'body.is_default bool_type',
    'body.status string_type',
  ]);
  expect(await placesOf('GET', `${list}?limit=201&status=gone`)).toEqual([
    422,
    'query.status literal_error',
    'query.limit less_than_equal',
  ]);
});

test('an environment of another workspace is missing', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const theirs = await newEnvironment(ann);
  const url = `${eve.home}/environments/${theirs.environment_id}`;
  const missing = {
    status: 404,
    body: { details: { resource_type: 'environment', resource_id: theirs.environment_id } },
  };
  expect(await eve.call('GET', url)).toMatchObject(missing);
  expect(await eve.call('PUT', url, { name: 'Mine' })).toMatchObject(missing);
  expect(await eve.call('DELETE', url)).toMatchObject(missing);
  expect(await eve.call('GET', `${url}/deployments`)).toMatchObject(missing);
  const node = 'query ($id: ID!) { node(id: $id) { id } }';
  expect((await eve.ask(node, { id: theirs.environment_id })).data).toEqual({ node: null });
  expect((await ann.ask(node, { id: theirs.environment_id })).data).toEqual({ node: { id: theirs.environment_id } });
});
