import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { newSecret, type Secret, type SecretList, secretBody, secretsOf, VALUE, type Versions } from './new-secret.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('a secret is stored, shown without its value, revealed on request', async () => {
  const ann = await register(app, { name: 'ann' });
  const expires = '2099-01-02T03:04:05.678Z';
  const { status, body } = await ann.call<Secret>('POST', secretsOf(ann), {
    name: 'OpenAI key',
    secret_type: 'api_key',
    value: VALUE,
    description: 'For the bot',
    expires_at: expires,
    rotation_reminder_days: 30,
  });
  expect(status).toBe(201);
  const expected = {
    secret_id: expect.stringMatching(/^sec_/),
    scope: 'organization',
    workspace_id: null,
    organization_id: ann.orgId,
    namespace_id: null,
    environment_id: null,
    name: 'OpenAI key',
    secret_type: 'api_key',
    status: 'active',
    description: 'For the bot',
    vault_version: 1,
    expires_at: expires,
    is_expired: false,
    rotation_reminder_days: 30,
    needs_rotation: false,
    last_rotated_at: null,
    last_accessed_at: null,
    access_count: 0,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  };
  expect(body).toEqual(expected);
  const url = `${secretsOf(ann)}/${body.secret_id}`;
  expect((await ann.call('GET', url)).body).toEqual(body);
  expect((await ann.call('GET', `${secretsOf(ann)}/by-name/OpenAI%20key`)).body).toEqual(body);
  const revealed = await ann.call<Secret>('GET', `${url}?include_value=true`);
  expect(revealed.body).toEqual({
    ...body,
    access_count: 1,
    last_accessed_at: expect.any(String),
    value: VALUE,
  });
  const named = await ann.call<Secret>('GET', `${secretsOf(ann)}/by-name/OpenAI%20key?include_value=1`);
  expect(named.body).toMatchObject({ access_count: 2, value: VALUE, updated_at: body.updated_at });
  expect((await ann.call<SecretList>('GET', secretsOf(ann))).body).toEqual({
    total: 1,
    has_more: false,
    next_cursor: null,
    secrets: [{ ...named.body, value: undefined }],
  });
  expect(await eventsOf(app, body.secret_id)).toEqual(['secret.created']);
  expect(await changesOf(app, body.secret_id)).toMatchObject([
    { action: 'create', resourceType: 'secret', metadata: { scope: 'organization', secret_type: 'api_key' } },
    { action: 'reveal', resourceType: 'secret', metadata: { version: 1 } },
    { action: 'reveal', resourceType: 'secret', metadata: { version: 1 } },
  ]);
});

/** Joins the owner's organization only, with this role. */
async function outsider(owner: Person, role: string): Promise<Person> {
  const somebody = await register(app, { name: `outside-${role}` });
  await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: somebody.userId, role });
  return { ...somebody, orgId: owner.orgId };
}

async function newPlace(owner: Person, kind: 'namespace' | 'environment', home = owner.home): Promise<string> {
  const name = `p-${Math.random().toString(36).slice(2)}`;
  const { body } = await owner.call<Record<string, unknown>>('POST', `${home}/${kind}s`, { name, slug: name });
  return ((body.environment ?? body) as Record<string, string>)[`${kind}_id`]!;
}

async function newWorkspace(owner: Person): Promise<string> {
  const payload = { organization_id: owner.orgId, name: 'Other' };
  const { body } = await owner.call<{ workspace_id: string }>('POST', `/v1/orgs/${owner.orgId}/workspaces`, payload);
  return body.workspace_id;
}

test('lists what filters ask for, newest first, page by page', async () => {
  const ann = await register(app, { name: 'ann' });
  const old = '2020-01-01T00:00:00Z';
  const a = await newSecret(ann, { secret_type: 'token' });
  const b = await newSecret(ann, { secret_type: 'api_key', expires_at: old });
  const c = await newSecret(ann, { secret_type: 'token', workspace_id: ann.workspaceId });
  const d = await newSecret(ann, { secret_type: 'token' });
  const gone = await newSecret(ann);
  await ann.call('PATCH', d.url, { status: 'disabled' });
  await ann.call('DELETE', gone.url);
  const ids = async (query: string) => {
    const { body } = await ann.call<SecretList>('GET', `${secretsOf(ann)}?${query}`);
    expect(body.total).toBe(body.secrets.length);
    return body.secrets.map(({ secret_id }) => secret_id);
  };
  const all = [d, c, b, a].map(({ secret_id }) => secret_id);
  expect(await ids('')).toEqual(all);
  expect(await ids('include_expired=false')).toEqual([d, c, a].map(({ secret_id }) => secret_id));
  expect(await ids('secret_type=api_key')).toEqual([b.secret_id]);
  expect(await ids('status=disabled')).toEqual([d.secret_id]);
  expect(await ids('status=deleted')).toEqual([gone.secret_id]);
  expect(await ids('status=active&secret_type=token')).toEqual([c, a].map(({ secret_id }) => secret_id));
  expect(await ids(`workspace_id=${ann.workspaceId}`)).toEqual([c.secret_id]);

  const seen: string[] = [];
  let cursor = '';
  do {
    const { body } = await ann.call<SecretList>(
      'GET',
      `${secretsOf(ann)}?include_expired=false&limit=2${cursor && `&cursor=${cursor}`}`,
    );
    expect(body.total).toBe(3);
    seen.push(...body.secrets.map(({ secret_id }) => secret_id));
    cursor = body.next_cursor ?? '';
  } while (cursor);
  expect(seen).toEqual([d, c, a].map(({ secret_id }) => secret_id));
  const list = (await ann.call<SecretList>('GET', `${secretsOf(ann)}?limit=1`)).body;
  expect((await ann.call('GET', `${secretsOf(ann)}?limit=1&status=active&cursor=${list.next_cursor}`)).status).toBe(
    422,
  );
  expect(await ids('status=broken')).toEqual([]);
  expect((await ann.call('GET', `${secretsOf(ann)}?status=Not%20a%20word`)).status).toBe(422);
  expect(list.secrets[0]).not.toHaveProperty('value');
  const expired = (await ann.call<Secret>('GET', b.url)).body;
  expect(expired).toMatchObject({ is_expired: true, status: 'active' });
  expect((await ann.call<Secret>('GET', `${b.url}?include_value=true`)).body.value).toEqual(VALUE);
});

test('a given field changes, an omitted one stays, null clears; a value in the body is ignored', async () => {
  const ann = await register(app, { name: 'ann' });
  const made = await newSecret(ann, {
    description: 'one',
    rotation_reminder_days: 3,
    expires_at: '2099-01-01T00:00:00Z',
  });
  const { url, ...before } = made;
  const empty = (await ann.call<Secret>('PATCH', url, {})).body;
  expect(empty).toEqual({ ...before, updated_at: expect.any(String) });
  const changed = await ann.call<Secret>('PATCH', url, {
    name: 'another name',
    description: null,
    expires_at: null,
    rotation_reminder_days: 7,
    status: 'disabled',
    value: { user: 'eve' },
    secret_type: 'password',
  });
  expect(changed).toEqual({
    status: 200,
    body: {
      ...before,
      name: 'another name',
      description: null,
      expires_at: null,
      rotation_reminder_days: 7,
      status: 'disabled',
      updated_at: expect.any(String),
    },
  });
  const read = await ann.call<Secret>('GET', `${url}?include_value=true`);
  expect(read.body).toMatchObject({ status: 'disabled', vault_version: 1, value: VALUE });
  expect((await ann.call<Secret>('PATCH', url, { status: 'active' })).body).toMatchObject({ status: 'active' });
  for (const body of [
    { name: null },
    { status: null },
    { status: 'deleted' },
    { name: 'a/b' },
    { rotation_reminder_days: 0 },
  ])
    expect((await ann.call('PATCH', url, body)).status, JSON.stringify(body)).toBe(422);
  expect(await eventsOf(app, made.secret_id)).toEqual(['secret.created', ...Array(3).fill('secret.updated')]);
  const changes = (await changesOf(app, made.secret_id)).filter(({ statusCode }) => statusCode === 200);
  expect(changes.at(-1)).toMatchObject({
    action: 'update',
    metadata: { fields: ['status'] },
  });
});

test.each([
  ['no key', {}],
  ['an array', []],
  ['a text', 'hunter2'],
  ['null', null],
  ['a list under a key', { hunter2: ['hunter2'] }],
  ['an empty key', { '': 'hunter2' }],
  ['a key of 256 characters', { ['k'.repeat(256)]: 'hunter2' }],
  ['a NUL character', { k: 'hunter2\0' }],
  ['more than 64 KiB', { k: 'hunter2'.repeat(10_000) }],
])('a value with %s is refused, and not repeated', async (_title, value) => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann);
  for (const [method, path, body] of [
    ['POST', secretsOf(ann), secretBody({ value })],
    ['POST', `${url}/rotate`, { value }],
  ] as const) {
    const answer = await ann.call<{ detail: { loc: string[]; input: unknown }[] }>(method, path, body);
    expect(answer.status).toBe(422);
    expect(answer.body.detail.map(({ loc }) => loc.slice(0, 2))).toEqual([['body', 'value']]);
    expect(JSON.stringify(answer.body.detail.map(({ input }) => input))).not.toContain('hunter2');
  }
  expect((await ann.call<Secret>('GET', url)).body.vault_version).toBe(1);
});

test.each([
  ['a number beyond all bounds', '{"k":1e400}', ['k']],
  ['an integer that JSON rounds', '{"ok":9007199254740991,"k":12345678901234567890}', ['k']],
  ['one of them deep inside', '{"o":{"list":[1,{"n":-9007199254740993}]}}', ['o', 'list', 1, 'n']],
])('%s is refused where it is: it would not come back as it was sent', async (_title, value, place) => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann);
  const text = JSON.stringify(secretBody({ value: 0 })).replace('"value":0', `"value":${value}`);
  for (const [path, payload] of [
    [secretsOf(ann), text],
    [`${url}/rotate`, `{"value":${value}}`],
  ] as const) {
    const headers = { authorization: `Bearer ${ann.accessToken}`, 'content-type': 'application/json' };
    const answer = await app.server.inject({ method: 'POST', url: path, headers, payload });
    expect(answer.statusCode).toBe(422);
    expect(answer.json().detail).toMatchObject([{ loc: ['body', 'value', ...place], input: '[redacted]' }]);
  }
  const literal = value.replaceAll(/"(\w+)":/g, '$1:');
  const mutation = `mutation {
    rotateSecret(orgId: "${ann.orgId}", id: "${secret_id}", input: { value: ${literal} }) { id } }`;
  expect((await ann.ask(mutation)).errors).toMatchObject([{ extensions: { code: 'VALIDATION_ERROR' } }]);
  expect((await ann.call<Secret>('GET', url)).body.vault_version).toBe(1);
});

test('a value takes scalars and objects, up to 64 KiB, and gives them back as they were', async () => {
  const ann = await register(app, { name: 'ann' });
  const value = { s: 'ü\u2028"', n: -1.5e-7, t: true, z: null, o: { deep: [{ a: [1] }] }, constructor: 'x', ' ': '' };
  const { url } = await newSecret(ann, { value });
  expect((await ann.call<Secret>('GET', `${url}?include_value=true`)).body.value).toEqual(value);
  const big = { k: 'x'.repeat(64 * 1024 - 8) };
  expect(Buffer.byteLength(JSON.stringify(big))).toBe(64 * 1024);
  expect((await ann.call('POST', `${url}/rotate`, { value: big })).status).toBe(200);
  expect((await ann.call<Secret>('GET', `${url}?include_value=true`)).body.value).toEqual(big);
});

test.each(['a', 'OpenAI key (prod)', 'ключ', '鍵-1', 'a.b', '...', 'x'.repeat(255), "it's", '{{x}}', 'a:b@c', '🔑'])(
  'the name %j can be used in a path',
  async (name) => {
    const ann = await register(app, { name: 'ann' });
    const made = await newSecret(ann, { name });
    const found = await ann.call<Secret>('GET', `${secretsOf(ann)}/by-name/${encodeURIComponent(name)}`);
    expect(found.body).toMatchObject({ secret_id: made.secret_id, name });
  },
);

test.each(['', '.', '..', 'a/b', 'a\\b', 'a?b', 'a#b', 'a%2Fb', ' a', 'a ', 'a\nb', 'a\u200bb', 'x'.repeat(256)])(
  'the name %j is refused',
  async (name) => {
    const ann = await register(app, { name: 'ann' });
    const { status, body } = await ann.call<{ detail: { loc: string[] }[] }>(
      'POST',
      secretsOf(ann),
      secretBody({ name }),
    );
    expect([status, body.detail?.[0]?.loc]).toEqual([422, ['body', 'name']]);
  },
);

test('rotating stores a version, keeps the twenty newest values and the rows of the others', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann, { value: { n: 1 } });
  for (let n = 2; n <= 22; n++) {
    const { status, body } = await ann.call<Secret>('POST', `${url}/rotate`, { value: { n } });
    expect([status, body.vault_version]).toEqual([200, n]);
    expect(body).not.toHaveProperty('value');
  }
  const { body } = await ann.call<Versions>('GET', `${url}/versions`);
  expect(body).toEqual({
    secret_id,
    current_version: 22,
    versions: Array.from({ length: 22 }, (_, index) => ({
      version: 22 - index,
      created_at: expect.any(String),
      value: index < 20 ? { n: 22 - index } : null,
    })),
  });
  const { rows } = await app.database.pool.query<{ kept: string[] }>(
    `select array_agg(version order by version) as kept from secret_versions
     where secret_id = $1 and ciphertext is not null`,
    [secret_id],
  );
  expect(rows[0]!.kept).toEqual(Array.from({ length: 20 }, (_, index) => index + 3));
  const secret = (await ann.call<Secret>('GET', `${url}?include_value=true`)).body;
  expect(secret).toMatchObject({ value: { n: 22 }, last_rotated_at: expect.any(String), access_count: 2 });
});

test('twenty concurrent rotations give the versions 2 to 21 without gaps, each with its own value', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann, { value: { n: 'first' } });
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => ann.call<Secret>('POST', `${url}/rotate`, { value: { n } })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(answers.map(({ body }) => body.vault_version).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 2),
  );
  const { versions } = (await ann.call<Versions>('GET', `${url}/versions`)).body;
  const sent = new Map(answers.map(({ body }, n) => [body.vault_version, { n }]));
  expect(versions.slice(0, 20).map(({ version, value }) => [version, value])).toEqual(
    [...sent].sort(([a], [b]) => b - a),
  );
});

test('a rotation from an expected version is done once, however many ask', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann);
  const rotate = (n: number, expected_version: number) =>
    ann.call<Secret & { error: string; details: object }>('POST', `${url}/rotate`, { value: { n }, expected_version });
  const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => rotate(n, 1)));
  expect(answers.filter(({ status }) => status === 412)).toHaveLength(4);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(answers.find(({ status }) => status === 412)!.body).toMatchObject({
    error: 'PRECONDITION_FAILED',
    details: { current_version: 2 },
  });
  expect((await rotate(6, 2)).body.vault_version).toBe(3);
  expect((await rotate(7, 0)).status).toBe(422);
  const until = '2099-05-05T00:00:00.000Z';
  const moved = await ann.call<Secret>('POST', `${url}/rotate`, { value: { n: 8 }, expires_at: until });
  expect(moved.body).toMatchObject({ vault_version: 4, expires_at: until });
});

test('a soft deletion hides, frees the name at once, and can be taken back while the name is free', async () => {
  const ann = await register(app, { name: 'ann' });
  const first = await newSecret(ann, { name: 'shared' });
  const twice = await ann.call('POST', secretsOf(ann), secretBody({ name: 'shared' }));
  expect(twice).toMatchObject({
    status: 409,
    body: {
      error: 'RESOURCE_ALREADY_EXISTS',
      details: { resource_type: 'secret', field: 'name', value: 'shared', resource_id: first.secret_id },
    },
  });
  expect(await ann.call('DELETE', first.url)).toEqual({ status: 204, body: null });
  const missing = { status: 404, body: { details: { resource_type: 'secret', resource_id: first.secret_id } } };
  for (const path of ['', '?include_value=true', '/versions'])
    expect(await ann.call('GET', first.url + path)).toMatchObject(missing);
  expect(await ann.call('PATCH', first.url, {})).toMatchObject(missing);
  expect(await ann.call('DELETE', first.url)).toMatchObject(missing);
  expect((await ann.call('GET', `${secretsOf(ann)}/by-name/shared`)).status).toBe(404);
  expect(await ann.call('POST', `${first.url}/rotate`, { value: VALUE })).toMatchObject({
    status: 409,
    body: { error: 'RESOURCE_CONFLICT', details: { reason: 'secret_deleted', resource_id: first.secret_id } },
  });
  const second = await newSecret(ann, { name: 'shared' });
  expect(await ann.call('POST', `${first.url}/restore`)).toMatchObject({
    status: 409,
    body: { error: 'RESOURCE_ALREADY_EXISTS', details: { field: 'name', resource_id: second.secret_id } },
  });
  await ann.call('PATCH', second.url, { name: 'moved away' });
  const restored = await ann.call<Secret>('POST', `${first.url}/restore`);
  expect(restored).toMatchObject({ status: 200, body: { status: 'active', name: 'shared' } });
  expect((await ann.call<Secret>('GET', `${first.url}?include_value=true`)).body.value).toEqual(VALUE);
  const again = await ann.call<Secret>('POST', `${first.url}/restore`);
  expect(again).toMatchObject({ status: 200, body: { status: 'active', access_count: 1 } });
  expect(await ann.call('PATCH', second.url, { name: 'shared' })).toMatchObject({
    status: 409,
    body: { details: { resource_id: first.secret_id } },
  });
  expect(await eventsOf(app, first.secret_id)).toEqual(['secret.created', 'secret.deleted', 'secret.restored']);
});

test('a permanent deletion takes the data key and every value along', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann);
  await ann.call('POST', `${url}/rotate`, { value: VALUE });
  expect((await ann.call('DELETE', `${url}?permanent=true`)).status).toBe(204);
  const { rows } = await app.database.pool.query(
    `select 1 from secrets where id = $1 union all select 1 from secret_versions where secret_id = $1`,
    [secret_id],
  );
  expect(rows).toEqual([]);
  expect((await ann.call('DELETE', `${url}?permanent=true`)).status).toBe(404);
  const soft = await newSecret(ann);
  await ann.call('DELETE', soft.url);
  expect((await ann.call('DELETE', `${soft.url}?permanent=true`)).status).toBe(204);
  expect((await ann.call('POST', `${soft.url}/restore`)).status).toBe(404);
  expect(await eventsOf(app, secret_id)).toEqual(['secret.created', 'secret.rotated', 'secret.destroyed']);
});

test('the most specific place that is given is the scope; places that do not fit each other are missing', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const other = await newWorkspace(ann);
  const [namespace, environment, theirs] = [
    await newPlace(ann, 'namespace'),
    await newPlace(ann, 'environment'),
    await newPlace(eve, 'namespace'),
  ];
  const { workspaceId } = ann;
  const scopeOf = async (body: object) => {
    const { scope, workspace_id, namespace_id, environment_id } = await newSecret(ann, { name: 'same name', ...body });
    return [scope, workspace_id, namespace_id, environment_id];
  };
  expect(await scopeOf({})).toEqual(['organization', null, null, null]);
  expect(await scopeOf({ workspace_id: workspaceId })).toEqual(['workspace', workspaceId, null, null]);
  expect(await scopeOf({ namespace_id: namespace })).toEqual(['namespace', workspaceId, namespace, null]);
  const home = await scopeOf({ workspace_id: workspaceId, namespace_id: 'default' });
  expect(home).toEqual(['namespace', workspaceId, expect.stringMatching(/^ns_/), null]);
  expect(await scopeOf({ environment_id: environment })).toEqual(['environment', workspaceId, null, environment]);
  const refused = async (body: object) => {
    const answer = await ann.call<{ details: { resource_type: string } }>('POST', secretsOf(ann), secretBody(body));
    return [answer.status, answer.body.details?.resource_type];
  };
  expect(await refused({ workspace_id: other, namespace_id: namespace })).toEqual([404, 'namespace']);
  expect(await refused({ workspace_id: other, environment_id: environment })).toEqual([404, 'environment']);
  expect(await refused({ namespace_id: theirs })).toEqual([404, 'namespace']);
  expect(await refused({ workspace_id: eve.workspaceId })).toEqual([404, 'workspace']);
  expect(await refused({ workspace_id: 'ws_unknown' })).toEqual([404, 'workspace']);
  expect((await refused({ namespace_id: 'default' }))[0]).toBe(422);
  const both = { environment_id: environment, namespace_id: namespace };
  expect(await scopeOf({ ...both, name: 'both' })).toEqual(['environment', workspaceId, namespace, environment]);
  const elsewhere = await newPlace(ann, 'namespace', `/v1/orgs/${ann.orgId}/workspaces/${other}`);
  expect(await refused({ environment_id: environment, namespace_id: elsewhere })).toEqual([404, 'namespace']);
  expect(await refused({ workspace_id: other, ...both })).toEqual([404, 'environment']);
  expect(await refused({ environment_id: environment, namespace_id: theirs })).toEqual([404, 'namespace']);
});

test('a secret of an environment and a namespace lives in both: a restricted token needs both', async () => {
  const ann = await register(app, { name: 'ann' });
  const [inside, outside, environment, elsewhere] = [
    await newPlace(ann, 'namespace'),
    await newPlace(ann, 'namespace'),
    await newPlace(ann, 'environment'),
    await newPlace(ann, 'environment'),
  ];
  const both = { namespace_id: inside, environment_id: environment };
  const secret = await newSecret(ann, { name: 'both', ...both });
  // one name in an environment, whatever the namespace
  for (const place of [both, { environment_id: environment }, { ...both, namespace_id: outside }])
    expect(await ann.call('POST', secretsOf(ann), secretBody({ name: 'both', ...place }))).toMatchObject({
      status: 409,
      body: { details: { field: 'name', resource_id: secret.secret_id } },
    });
  await newSecret(ann, { name: 'both', namespace_id: inside });
  const byName = `${secretsOf(ann)}/by-name/both`;
  for (const query of [`environment_id=${environment}`, `namespace_id=${inside}&environment_id=${environment}`])
    expect((await ann.call('GET', `${byName}?${query}`)).body).toMatchObject({ secret_id: secret.secret_id });

  const allowed: [restriction: Record<string, string[]>, isLetIn: boolean][] = [
    [{ namespace_ids: [inside] }, true],
    [{ environment_ids: [environment] }, true],
    [{ namespace_ids: [inside], environment_ids: [environment] }, true],
    [{ namespace_ids: [outside] }, false],
    [{ environment_ids: [elsewhere] }, false],
    [{ namespace_ids: [outside], environment_ids: [environment] }, false],
    [{ namespace_ids: [inside], environment_ids: [elsewhere] }, false],
  ];
  for (const [restriction, isLetIn] of allowed) {
    const { plaintext_token: token } = await issueToken(app, ann, restriction);
    const program = caller(app, { ...ann, accessToken: token });
    const list = (await program.call<SecretList>('GET', secretsOf(ann))).body.secrets;
    expect([restriction, list.some(({ secret_id }) => secret_id === secret.secret_id)]).toEqual([restriction, isLetIn]);
    expect([restriction, (await program.call('GET', secret.url)).status]).toEqual([restriction, isLetIn ? 200 : 404]);
    const made = await program.call('POST', secretsOf(ann), secretBody(both));
    expect([restriction, made.status]).toEqual([restriction, isLetIn ? 201 : 403]);
  }
});

test('a secret that lives in a namespace and an environment goes with either, and its event names both', async () => {
  const ann = await register(app, { name: 'ann' });
  for (const gone of ['namespace', 'environment'] as const) {
    const [namespace, environment] = [await newPlace(ann, 'namespace'), await newPlace(ann, 'environment')];
    const secret = await newSecret(ann, { namespace_id: namespace, environment_id: environment });
    const id = { namespace, environment }[gone];
    await ann.call('DELETE', `${ann.home}/${gone}s/${id}`);
    expect((await ann.call('GET', secret.url)).status).toBe(404);
    expect(await ann.call('POST', `${secret.url}/restore`)).toMatchObject({
      status: 404,
      body: { details: { resource_type: gone, resource_id: id } },
    });
    const event = await app.database.prisma.event.findFirstOrThrow({
      where: { resourceId: secret.secret_id, type: 'secret.deleted' },
    });
    expect(event).toMatchObject({ namespaceId: namespace, environmentId: environment });
  }
});

test('a name is unique in a place, however the place is said', async () => {
  const ann = await register(app, { name: 'ann' });
  for (const kind of ['namespace', 'environment'] as const) {
    const place = { [`${kind}_id`]: await newPlace(ann, kind) };
    const first = await newSecret(ann, { name: 'only', ...place });
    const again = secretBody({ name: 'only', workspace_id: ann.workspaceId, ...place });
    expect(await ann.call('POST', secretsOf(ann), again)).toMatchObject({
      status: 409,
      body: { error: 'RESOURCE_ALREADY_EXISTS', details: { field: 'name', resource_id: first.secret_id } },
    });
    // the place itself decides, whatever the wider identifiers of a row say
    const { pool } = app.database;
    const copy = `insert into secrets (id, org_id, scope, workspace_id, namespace_id, environment_id, name,
        secret_type, root_key_id, wrapped_key)
      select id || 'x', org_id, scope, null, namespace_id, environment_id, name, secret_type,
        root_key_id, wrapped_key from secrets where id = $1`;
    await expect(pool.query(copy, [first.secret_id])).rejects.toThrow('secrets_name');
  }
});

test('by name: exactly the place that is asked for, else the organization; without a place the only one', async () => {
  const ann = await register(app, { name: 'ann' });
  const other = await newWorkspace(ann);
  const [namespace, environment] = [await newPlace(ann, 'namespace'), await newPlace(ann, 'environment')];
  const find = async (name: string, query = '') => {
    const path = `${secretsOf(ann)}/by-name/${name}?${query}`;
    const { status, body } = await ann.call<Secret & { details?: Record<string, string> }>('GET', path);
    const { reason, resource_type } = body.details ?? {};
    return status === 200 ? body.secret_id : [status, reason ?? resource_type];
  };
  const ofEnvironment = await newSecret(ann, { name: 'key', environment_id: environment });
  expect(await find('key')).toBe(ofEnvironment.secret_id);
  expect(await find('key', `environment_id=${environment}`)).toBe(ofEnvironment.secret_id);
  // what lives in an environment does not live in its workspace
  expect(await find('key', `workspace_id=${ann.workspaceId}`)).toEqual([404, 'secret']);
  const one = await newSecret(ann, { name: 'key', workspace_id: ann.workspaceId });
  expect(await find('key')).toEqual([409, 'ambiguous_name']);
  expect(await find('key', `workspace_id=${other}`)).toEqual([404, 'secret']);
  const two = await newSecret(ann, { name: 'key', workspace_id: other });
  const inner = await newSecret(ann, { name: 'key', namespace_id: namespace });
  const top = await newSecret(ann, { name: 'key' });
  expect(await find('key')).toBe(top.secret_id);
  expect(await find('key', `workspace_id=${ann.workspaceId}`)).toBe(one.secret_id);
  expect(await find('key', `workspace_id=${other}`)).toBe(two.secret_id);
  expect(await find('key', `namespace_id=${namespace}`)).toBe(inner.secret_id);
  expect(await find('key', `workspace_id=${ann.workspaceId}&namespace_id=${namespace}`)).toBe(inner.secret_id);
  expect(await find('key', `workspace_id=${ann.workspaceId}&namespace_id=default`)).toBe(top.secret_id);
  expect(await find('key', `workspace_id=${ann.workspaceId}&environment_id=${environment}`)).toBe(
    ofEnvironment.secret_id,
  );
  expect(await find('key', `workspace_id=${other}&namespace_id=${namespace}`)).toEqual([404, 'namespace']);
  expect(await find('key', 'environment_id=env_unknown')).toEqual([404, 'environment']);
  expect(await find('key', 'workspace_id=ws_unknown')).toEqual([404, 'workspace']);
  // the most specific of the two
  expect(await find('key', `namespace_id=${namespace}&environment_id=${environment}`)).toBe(ofEnvironment.secret_id);
  expect(await find('KEY')).toEqual([404, 'secret']);
  expect(await find('KEY', `workspace_id=${other}`)).toEqual([404, 'secret']);
});

test('callers who may read no secret cannot tell which exist; a hidden one answers like a missing one', async () => {
  const owner = await register(app, { name: 'owner' });
  const environment = await newPlace(owner, 'environment');
  const top = await newSecret(owner, { name: 'top' });
  const inside = await newSecret(owner, { name: 'inside', workspace_id: owner.workspaceId });
  for (const place of [{ workspace_id: owner.workspaceId }, { environment_id: environment }])
    await newSecret(owner, { name: 'twice', ...place });
  const base = secretsOf(owner);
  const paths = [top.url, inside.url, `${base}/sec_unknown`, `${inside.url}/versions`];
  const placed = [`inside?workspace_id=${owner.workspaceId}`, 'inside?environment_id=env_unknown'];
  const names = ['top', 'inside', 'twice', 'nobody', ...placed];
  const refusal = (required_permission: string) => ({ status: 403, body: { details: { required_permission } } });
  for (const viewer of [await colleague(app, owner, 'viewer'), await outsider(owner, 'viewer')]) {
    for (const path of [...paths, ...names.map((name) => `${base}/by-name/${name}`)])
      expect(await viewer.call('GET', path), path).toMatchObject(refusal('secret:read'));
    for (const { url } of [top, inside, { url: `${base}/sec_unknown` }]) {
      expect(await viewer.call('POST', `${url}/rotate`, { value: VALUE })).toMatchObject(refusal('secret:rotate'));
      expect(await viewer.call('DELETE', `${url}?permanent=true`)).toMatchObject(refusal('secret:destroy'));
    }
  }
  // a viewer of the organization who works in another workspace may read there, and nothing else is there
  const workspace = await newWorkspace(owner);
  const worker = await outsider(owner, 'viewer');
  const payload = { user_id: worker.userId, role: 'editor' };
  await owner.call('POST', `/v1/orgs/${owner.orgId}/workspaces/${workspace}/members`, payload);
  for (const path of [...paths, `${base}/by-name/top`, `${base}/by-name/twice`, `${base}/by-name/nobody`])
    expect((await worker.call('GET', path)).status, path).toBe(404);
  expect((await worker.call('POST', `${top.url}/rotate`, { value: VALUE })).status).toBe(404);
  const theirs = await newSecret(owner, { name: 'twice', workspace_id: workspace });
  expect((await worker.call<Secret>('GET', `${base}/by-name/twice`)).body.secret_id).toBe(theirs.secret_id);
  expect(await worker.call('DELETE', `${theirs.url}?permanent=true`)).toMatchObject(refusal('secret:destroy'));
});

test('a secret of a workspace is judged there: hidden from those outside, by the role of those inside', async () => {
  const owner = await register(app, { name: 'owner' });
  const inside = await newSecret(owner, { name: 'inside', workspace_id: owner.workspaceId });
  const top = await newSecret(owner, { name: 'top' });
  const answers: Record<string, unknown> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin']) {
    const guest = await outsider(owner, role);
    const list = await guest.call<SecretList>('GET', secretsOf(guest));
    answers[role] = [
      (await guest.call('GET', inside.url)).status,
      (await guest.call('GET', `${secretsOf(owner)}/by-name/inside`)).status,
      (await guest.call('DELETE', `${inside.url}?permanent=true`)).status,
      (await guest.call('GET', top.url)).status,
      list.status === 200 ? list.body.secrets.map(({ name }) => name) : list.status,
    ];
    if (role === 'admin') break;
    const { data } = await guest.ask<{ node: unknown }>(`{ node(id: "${inside.secret_id}") { id } }`);
    expect(data.node).toBeNull();
    const hidden = await guest.call<{ message: string }>('GET', inside.url);
    const unknown = await guest.call<{ message: string }>('GET', `${secretsOf(owner)}/sec_unknown`);
    expect(hidden.body.message.replace(inside.secret_id, 'sec_unknown')).toBe(unknown.body.message);
  }
  expect(answers).toEqual({
    viewer: [403, 403, 403, 403, 403],
    member: [404, 404, 403, 200, ['top']],
    editor: [404, 404, 403, 200, ['top']],
    admin: [200, 200, 204, 200, ['top', 'inside']],
  });
  // a plain member of the organization who administers the workspace reveals what is in it, and nothing else
  const again = await newSecret(owner, { workspace_id: owner.workspaceId });
  const lead = await outsider(owner, 'member');
  await owner.call('POST', `${owner.home}/members`, { user_id: lead.userId, role: 'admin' });
  expect((await lead.call('GET', `${again.url}?include_value=true`)).status).toBe(200);
  expect(await lead.call('GET', `${top.url}?include_value=true`)).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'secret:reveal' } },
  });
  // and a viewer of the organization who works in a workspace sees its secrets
  const worker = await outsider(owner, 'viewer');
  await owner.call('POST', `${owner.home}/members`, { user_id: worker.userId, role: 'member' });
  expect(
    (await worker.call<SecretList>('GET', secretsOf(owner))).body.secrets.map(({ secret_id }) => secret_id),
  ).toEqual([again.secret_id]);
});

test('roles: what each may do with a secret of the organization', async () => {
  const owner = await register(app, { name: 'owner' });
  const outcome: Record<string, (number | string)[]> = {};
  for (const role of ['viewer', 'member', 'editor', 'admin'] as const) {
    const somebody = await colleague(app, owner, role);
    const { url } = await newSecret(owner);
    const other = await newSecret(owner);
    const answers = [
      await somebody.call('GET', url),
      await somebody.call('GET', `${url}?include_value=true`),
      await somebody.call('GET', `${url}/versions`),
      await somebody.call('POST', secretsOf(owner), secretBody()),
      await somebody.call('PATCH', url, {}),
      await somebody.call('POST', `${url}/rotate`, { value: VALUE }),
      await somebody.call('DELETE', url),
      await somebody.call('POST', `${url}/restore`),
      await somebody.call('DELETE', `${other.url}?permanent=true`),
    ];
    outcome[role] = answers.map(({ status }) => status);
  }
  expect(outcome).toEqual({
    viewer: [403, 403, 403, 403, 403, 403, 403, 403, 403],
    member: [200, 403, 200, 403, 403, 403, 403, 403, 403],
    editor: [200, 403, 200, 201, 200, 200, 204, 200, 403],
    admin: [200, 200, 200, 201, 200, 200, 204, 200, 204],
  });
});

test('deleting a namespace or an environment soft-deletes its secrets, which cannot be restored any more', async () => {
  const ann = await register(app, { name: 'ann' });
  for (const kind of ['namespace', 'environment'] as const) {
    if (kind === 'environment') await newPlace(ann, kind); // the first one is the default one
    const place = await newPlace(ann, kind);
    const { url, secret_id } = await newSecret(ann, { [`${kind}_id`]: place });
    const stays = await newSecret(ann, { workspace_id: ann.workspaceId });
    const { status } = await ann.call('DELETE', `${ann.home}/${kind}s/${place}`);
    expect(status).toBeLessThan(300);
    expect((await ann.call('GET', url)).status).toBe(404);
    expect((await ann.call('GET', stays.url)).status).toBe(200);
    expect(await eventsOf(app, secret_id)).toEqual(['secret.created', 'secret.deleted']);
    expect(await ann.call('POST', `${url}/restore`)).toMatchObject({
      status: 404,
      body: { details: { resource_type: kind, resource_id: place } },
    });
    const record = await app.database.prisma.activity.findFirstOrThrow({
      where: { resourceId: place, action: 'delete' },
    });
    expect(record.metadata).toMatchObject({ also: [{ resource_type: 'secret', secret_ids: [secret_id] }] });
  }
});

test('secrets of a deleted workspace are out of reach, and so are those of another organization', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const workspace = await newWorkspace(ann);
  const { url, secret_id } = await newSecret(ann, { workspace_id: workspace, name: 'lost' });
  expect(await eve.call('GET', `${secretsOf(eve)}/${secret_id}`)).toMatchObject({ status: 404 });
  expect(await eve.call('GET', url)).toMatchObject({ status: 403 });
  expect((await ann.call('DELETE', `/v1/orgs/${ann.orgId}/workspaces/${workspace}`)).status).toBe(200);
  for (const path of [url, `${url}?include_value=true`, `${url}/versions`, `${secretsOf(ann)}/by-name/lost`])
    expect((await ann.call('GET', path)).status).toBe(404);
  expect((await ann.call('DELETE', `${url}?permanent=true`)).status).toBe(404);
  expect((await ann.call<SecretList>('GET', secretsOf(ann))).body.total).toBe(0);
});

test('GraphQL: lists find parts of names, page by page, and take no pattern', async () => {
  const ann = await register(app, { name: 'ann' });
  for (const name of ['stripe-a', 'STRIPE_B', 'xstripe', 'other']) await newSecret(ann, { name });
  const found = async (search: string, more = '') => {
    const query = `{ secrets(orgId: "${ann.orgId}", search: ${JSON.stringify(search)}${more}) {
      totalCount nodes { name } pageInfo { endCursor } } }`;
    const { data } = await ann.ask<{
      secrets: { totalCount: number; nodes: { name: string }[]; pageInfo: { endCursor: string } };
    }>(query);
    const { totalCount, nodes, pageInfo } = data!.secrets;
    return { names: nodes.map(({ name }) => name), totalCount, after: pageInfo.endCursor };
  };
  const first = await found('Stripe', ', first: 2');
  expect([first.names, first.totalCount]).toEqual([['xstripe', 'STRIPE_B'], 3]);
  expect((await found('Stripe', `, first: 2, after: "${first.after}"`)).names).toEqual(['stripe-a']);
  expect((await found('e_b')).names).toEqual(['STRIPE_B']);
  for (const pattern of ['%', 'e_a', 'e\\_b']) expect((await found(pattern)).names).toEqual([]);
});

test('GraphQL: nested lists show what the caller may read, and never a value', async () => {
  const ann = await register(app, { name: 'ann' });
  const top = await newSecret(ann);
  const inner = await newSecret(ann, { workspace_id: ann.workspaceId });
  const query = `{ organization(id: "${ann.orgId}") { secrets { totalCount nodes { id value } }
    workspaces { nodes { secrets(status: "active") { nodes { id value needsRotation isExpired } } } } } }`;
  const { data, errors } = await ann.ask(query);
  expect(errors).toBeUndefined();
  expect(data).toEqual({
    organization: {
      secrets: { totalCount: 2, nodes: [inner, top].map(({ secret_id: id }) => ({ id, value: null })) },
      workspaces: {
        nodes: [{ secrets: { nodes: [{ id: inner.secret_id, value: null, needsRotation: false, isExpired: false }] } }],
      },
    },
  });
});

test('soft-deleted secrets are gone after 30 days', async () => {
  const ann = await register(app, { name: 'ann' });
  const [old, recent] = [await newSecret(ann), await newSecret(ann)];
  for (const { url } of [old, recent]) await ann.call('DELETE', url);
  await app.database.pool.query(`update secrets set deleted_at = now() - interval '31 days' where id = $1`, [
    old.secret_id,
  ]);
  await app.retention.run();
  const left = await app.database.prisma.secret.findMany({ where: { orgId: ann.orgId }, select: { id: true } });
  expect(left).toEqual([{ id: recent.secret_id }]);
});
