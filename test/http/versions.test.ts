import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newApp, newEnvironment } from '../delivery/environments/stage.ts';
import {
  accountsOf,
  catalogOf,
  entitle,
  entitlementsOf,
  modelUrl,
  newAccount,
  newModel,
} from '../models/models/catalogue.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { colleague, eventsOf, type Person, register } from '../support/person.ts';
import { logQueries } from '../support/query-log.ts';
import { graphqlRequest } from '../support/requests.ts';
import { newSecret } from '../vault/secrets/new-secret.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp({ env: { CORS_ORIGINS: 'https://front.example' } });
  ann = await register(app, { name: 'ann' });
  while ((await app.services.buckets.provisionPending()) > 0);
});
afterAll(() => app.close());

type Method = NonNullable<InjectOptions['method']>;
const send = (
  who: Person,
  method: Method,
  url: string,
  payload?: object,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> =>
  app.server.inject({
    method,
    url,
    headers: { authorization: `Bearer ${who.accessToken}`, ...headers },
    ...(payload ? { payload } : {}),
  });
const etag = async (url: string, who = ann): Promise<string> => String((await send(who, 'GET', url)).headers.etag);
const newThread = async (who = ann) => {
  const made = await send(who, 'POST', `${who.home}/namespaces/default/threads`, { title: 'One' });
  expect(made.headers.etag).toBe('"1"');
  return {
    id: made.json().thread_id as string,
    url: `${who.home}/namespaces/default/threads/${made.json().thread_id}`,
  };
};

it('GraphQL shows the version, and a mutation with the current one does what it should', async () => {
  const { id } = await newThread();
  const place = `orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", namespaceId: "default", id: "${id}"`;
  const change = (title: string, version: number) =>
    ann.ask(
      `mutation { updateThread(${place}, expectedVersion: ${version}, input: { title: "${title}" }) {
        title resourceVersion
      } }`,
    );
  expect((await change('Two', 1)).data).toEqual({ updateThread: { title: 'Two', resourceVersion: 2 } });
  expect(await change('Three', 1)).toMatchObject({
    errors: [{ extensions: { code: 'PRECONDITION_FAILED', details: { current_version: 2 } } }],
  });
  const { data } = await ann.ask(
    `{ node(id: "${id}") { ... on Versioned { resourceVersion } ... on Thread { title } } }`,
  );
  expect(data).toEqual({ node: { resourceVersion: 2, title: 'Two' } });
});

it('of several mutations in one document each has its own expectation, or none', async () => {
  const { id } = await newThread();
  const place = `orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", namespaceId: "default", id: "${id}"`;
  const { data, errors } = await ann.ask<Record<string, unknown>>(`mutation {
    a: updateThread(${place}, expectedVersion: 1, input: { title: "a" }) { resourceVersion }
    b: updateThread(${place}, input: { title: "b" }) { resourceVersion }
    c: updateThread(${place}, expectedVersion: 3, input: { title: "c" }) { resourceVersion }
    d: createThread(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}", namespaceId: "default", input: {}) {
      resourceVersion
    }
  }`);
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    a: { resourceVersion: 2 },
    b: { resourceVersion: 3 },
    c: { resourceVersion: 4 },
    d: { resourceVersion: 1 },
  });
});

it('of many changes with the same version one is done, and the others leave nothing behind', async () => {
  const { id, url } = await newThread();
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => send(ann, 'PUT', url, { title: `by ${n}` }, { 'if-match': '"1"' })),
  );
  expect(answers.map(({ statusCode }) => statusCode).sort((a, b) => a - b)).toEqual([
    200,
    ...Array.from({ length: 7 }, () => 412),
  ]);
  const done = answers.find(({ statusCode }) => statusCode === 200)!;
  expect((await send(ann, 'GET', url)).json()).toEqual(done.json());
  expect(await etag(url)).toBe('"2"');
  expect(await eventsOf(app, id)).toEqual(['thread.created', 'thread.updated']);
});

it('a refusal of access, a missing resource and a conflict are told before a stale version', async () => {
  const stale = { 'if-match': '"99"' };
  const viewer = await colleague(app, ann, 'viewer');
  const { url } = await newThread();
  expect((await send(viewer, 'PUT', url, { title: 'x' }, stale)).statusCode).toBe(403);
  expect((await send(ann, 'PUT', `${url.slice(0, -1)}_`, { title: 'x' }, stale)).statusCode).toBe(404);
  const namespaces = `${ann.home}/namespaces`;
  const [one, two] = await Promise.all(
    ['One', 'Two'].map(async (name) => (await send(ann, 'POST', namespaces, { name })).json()),
  );
  const taken = await send(ann, 'PUT', `${namespaces}/${one.namespace_id}`, { slug: two.slug }, stale);
  expect(taken.json()).toMatchObject({ error: 'RESOURCE_ALREADY_EXISTS', details: { resource_id: two.namespace_id } });
  expect((await send(ann, 'PUT', `${namespaces}/${one.namespace_id}`, { slug: 'free' }, stale)).statusCode).toBe(412);
  const secret = await newSecret(ann, { name: 'taken' });
  const other = await newSecret(ann, { name: 'other' });
  expect((await send(ann, 'PATCH', other.url, { name: 'taken' }, stale)).statusCode).toBe(409);
  await send(ann, 'DELETE', secret.url);
  expect((await send(ann, 'POST', `${secret.url}/rotate`, { value: { a: '1' } }, stale)).json().error).toBe(
    'RESOURCE_CONFLICT',
  );
  expect((await send(ann, 'PUT', url, { metadata: 1 }, stale)).statusCode).toBe(422);
});

it('a change with a version costs one statement more, one without costs none', async () => {
  const { url } = await newThread();
  const log = logQueries(app.database.pool);
  const ofThreads = async (headers: Record<string, string>) => {
    const all = await log.during(() => send(ann, 'PUT', url, { title: 'x' }, headers));
    return all.filter((text) => /\bthreads\b/.test(text));
  };
  const plain = await ofThreads({});
  const guarded = await ofThreads({ 'if-match': '"2"' });
  expect(await etag(url)).toBe('"3"');
  expect(guarded).toHaveLength(plain.length + 1);
  const holds = (texts: string[]) => texts.filter((text) => text.includes('for no key update'));
  expect([holds(plain).length, holds(guarded).length]).toEqual([0, 1]);
});

it('a stored answer is replayed with its ETag, and another If-Match is another request', async () => {
  const { url } = await newSecret(ann);
  const key = { 'idempotency-key': 'rotate-once' };
  const rotate = (ifMatch: string) =>
    send(ann, 'POST', `${url}/rotate`, { value: { a: '1' } }, { ...key, 'if-match': ifMatch });
  const first = await rotate('"1"');
  const replayed = await rotate('"1"');
  expect(first.headers.etag).toBe('"2"');
  expect([replayed.statusCode, replayed.headers.etag, replayed.body]).toEqual([200, '"2"', first.body]);
  expect(replayed.headers['idempotent-replayed']).toBe('true');
  expect((await rotate('"2"')).json()).toMatchObject({ details: { reason: 'different_request' } });
});

it('browsers of allowed origins may send If-Match and read ETag', async () => {
  const { url } = await newThread();
  const origin = 'https://front.example';
  const asked = { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'if-match' };
  const preflight = await app.server.inject({ method: 'OPTIONS', url, headers: asked });
  expect(preflight.headers['access-control-allow-headers']).toBe('if-match');
  const answer = await send(ann, 'GET', url, undefined, { origin });
  expect(String(answer.headers['access-control-expose-headers']).split(', ')).toContain('etag');
  expect((await send(ann, 'HEAD', url)).headers.etag).toBe('"1"');
});

it('If-Match means nothing where nothing is changed', async () => {
  const { url } = await newThread();
  expect((await send(ann, 'GET', url, undefined, { 'if-match': '"99"' })).statusCode).toBe(200);
  const made = await send(ann, 'POST', `${ann.home}/namespaces/default/threads`, {}, { 'if-match': 'what?' });
  expect(made.statusCode).toBe(201);
});

it('lists and sessions have no ETag, and their rows no version', async () => {
  const list = await send(ann, 'GET', `${ann.home}/namespaces`);
  expect(list.headers.etag).toBeUndefined();
  expect(list.body).not.toMatch(/version|_etag/);
  const payload = { username: ann.username, password: ann.password };
  const login = await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload });
  expect(login.statusCode).toBe(200);
  expect(login.headers.etag).toBeUndefined();
  expect(login.body).not.toMatch(/version|_etag/);
});

it('what the service counts and notes by itself leaves the version as it is', async () => {
  const me = await etag('/v1/users/me');
  const payload = { username: ann.username, password: ann.password };
  await app.server.inject({ method: 'POST', url: '/v1/auth/login', payload });
  expect((await send(ann, 'GET', '/v1/users/me')).json().last_login).not.toBeNull();
  expect(await etag('/v1/users/me')).toBe(me);

  const secret = await newSecret(ann);
  await send(ann, 'GET', `${secret.url}?include_value=true`);
  const revealed = await send(ann, 'GET', secret.url);
  expect([revealed.json().access_count, revealed.headers.etag]).toEqual([1, '"1"']);

  const made = await send(ann, 'POST', `/v1/orgs/${ann.orgId}/workspaces`, { organization_id: ann.orgId, name: 'New' });
  while ((await app.services.buckets.provisionPending()) > 0);
  const workspace = await send(ann, 'GET', `/v1/orgs/${ann.orgId}/workspaces/${made.json().workspace_id}`);
  expect([workspace.json().bucket_status, workspace.headers.etag]).toEqual(['ready', '"1"']);

  const { appId } = await newApp(ann, 2);
  expect(await etag(`${ann.home}/apps/${appId}`)).toBe('"1"');
});

it('usage reports keep the versions of model, account and entitlement; an administrator changes them', async () => {
  const account = await newAccount(app, ann, {}, 'pending');
  const accountUrl = `${accountsOf(ann)}/${account}`;
  const model = await newModel(ann, {}, [account]);
  const url = modelUrl(ann, model.logical_model_id);
  await entitle(ann, model.logical_model_id);
  const entitlement = `${entitlementsOf(ann)}/${model.logical_model_id}`;
  const urls = [accountUrl, url, entitlement];
  const before = await Promise.all(urls.map((each) => etag(each)));
  const report = `mutation { reportModelUsage(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}",
    logicalModelId: "${model.logical_model_id}",
    input: { providerAccountId: "${account}", modelName: "target-0", outcome: FAILURE, inputTokens: 5 }) {
      consecutiveFailures
    } }`;
  for (let i = 1; i <= 3; i++)
    expect((await ann.ask(report)).data).toEqual({ reportModelUsage: { consecutiveFailures: i } });
  expect((await send(ann, 'GET', url)).json().status).toBe('unavailable');
  expect(await Promise.all(urls.map((each) => etag(each)))).toEqual(before);

  const [target] = model.targets;
  const changed = await send(ann, 'PATCH', url, { targets: [{ ...target, weight: 7 }] }, { 'if-match': before[1]! });
  expect([changed.statusCode, changed.headers.etag]).toEqual([200, '"2"']);
  const fewer = await send(ann, 'PATCH', url, { targets: [] }, { 'if-match': '"2"' });
  expect([fewer.statusCode, fewer.headers.etag]).toEqual([200, '"3"']);
  expect((await send(ann, 'PATCH', url, { targets: [] }, { 'if-match': '"2"' })).statusCode).toBe(412);
  const many = Array.from({ length: 5 }, (_, n) => ({ provider_account_id: account, model_name: `m${n}` }));
  const created = await send(ann, 'POST', catalogOf(ann), {
    logical_model_id: 'with-many',
    name: 'Many',
    targets: many,
  });
  expect(created.headers.etag).toBe('"1"');
});

it('a membership shows its user: a new name of the user is a new version of it', async () => {
  const bob = await colleague(app, ann, 'editor');
  const members = [`${ann.home}/members/${bob.userId}`, `/v1/orgs/${ann.orgId}/members/${bob.userId}`];
  for (const url of members) expect((await send(ann, 'PATCH', url, { role: 'editor' })).headers.etag).toBe('"2"');
  expect((await send(bob, 'PUT', `/v1/users/${bob.userId}`, { bio: 'Not shown to members' })).statusCode).toBe(200);
  for (const url of members)
    expect((await send(ann, 'PATCH', url, { role: 'member' }, { 'if-match': '"2"' })).headers.etag).toBe('"3"');
  expect((await send(bob, 'PUT', `/v1/users/${bob.userId}`, { full_name: 'Bob the Builder' })).statusCode).toBe(200);
  for (const url of members) {
    const stale = await send(ann, 'PATCH', url, { role: 'viewer' }, { 'if-match': '"3"' });
    expect(stale.json()).toMatchObject({ details: { current_version: 4 } });
  }
});

it('an environment shows what is deployed in it: each deployment is a new version, and none comes twice', async () => {
  const environment = await newEnvironment(ann);
  const url = `${ann.home}/environments/${environment.environment_id}`;
  const { appId, releases } = await newApp(ann, 2);
  const deploy = (ifMatch: string, release = releases[0]!) =>
    send(ann, 'POST', `${url}/deploy`, { app_id: appId, release_id: release }, { 'if-match': ifMatch });
  const seen = [await etag(url)];
  expect((await deploy(seen[0]!)).statusCode).toBe(200);
  expect((await deploy(seen[0]!)).json()).toMatchObject({
    error: 'PRECONDITION_FAILED',
    details: { current_version: 2 },
  });
  seen.push(await etag(url));
  expect((await send(ann, 'PUT', url, { name: 'Renamed' }, { 'if-match': '"1"' })).statusCode).toBe(412);
  const renamed = await send(ann, 'PUT', url, { name: 'Renamed' }, { 'if-match': '"2"' });
  expect(renamed.json().environment.active_deployments).toEqual({ [appId]: releases[0] });
  seen.push(String(renamed.headers.etag));
  expect(await etag(url)).toBe(seen.at(-1));
  await deploy('*', releases[1]);
  seen.push(await etag(url));
  await send(ann, 'DELETE', `${url}/deploy/${appId}`, undefined, { 'if-match': seen.at(-1)! });
  seen.push(await etag(url));
  await send(ann, 'DELETE', `${ann.home}/apps/${appId}`);
  seen.push(await etag(url));
  expect(seen).toEqual(['"1"', '"2"', '"3"', '"4"', '"5"', '"6"']);
});

it('apps that are deployed in the same environments may be deleted at the same time', async () => {
  const environments = await Promise.all([newEnvironment(ann), newEnvironment(ann)]);
  const apps = await Promise.all(Array.from({ length: 4 }, () => newApp(ann)));
  for (const { environment_id } of environments)
    for (const { appId, releases } of apps)
      await send(ann, 'POST', `${ann.home}/environments/${environment_id}/deploy`, {
        app_id: appId,
        release_id: releases[0],
      });
  const deleted = await Promise.all(apps.map(({ appId }) => send(ann, 'DELETE', `${ann.home}/apps/${appId}`)));
  expect(deleted.map(({ statusCode }) => statusCode)).toEqual([204, 204, 204, 204]);
  for (const { environment_id } of environments)
    expect((await send(ann, 'GET', `${ann.home}/environments/${environment_id}`)).json().active_deployments).toEqual(
      {},
    );
});

it('the successor of a token begins with a version of its own', async () => {
  const made = await send(ann, 'POST', `/v1/orgs/${ann.orgId}/api-tokens`, { name: 'ci' });
  expect(made.headers.etag).toBe('"1"');
  await app.database.prisma.apiToken.update({ where: { id: made.json().token.token_id }, data: { name: 'renamed' } });
  const payload = { refresh_token: made.json().refresh_token_plaintext };
  const next = await app.server.inject({ method: 'POST', url: `/v1/orgs/${ann.orgId}/api-tokens/refresh`, payload });
  expect([next.statusCode, next.headers.etag]).toEqual([200, '"1"']);
});

it('takes expectedVersion as a variable; null expects nothing', async () => {
  const { id } = await newThread();
  const query = `mutation ($v: Int) { deleteThread(orgId: "${ann.orgId}", workspaceId: "${ann.workspaceId}",
    namespaceId: "default", id: "${id}", expectedVersion: $v) { id } }`;
  const asked = async (v: number | null) =>
    (await app.server.inject(graphqlRequest(query, { v }, `Bearer ${ann.accessToken}`))).json().data;
  expect(await asked(2)).toBeNull();
  expect(await asked(null)).toEqual({ deleteThread: { id } });
});
