import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { letFactorsAge, withTotp } from '../../support/factors.ts';
import { caller, changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { configSchema, type Instance, instancesOf, type Json, newInstance, newTool, placesOf } from './instances.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const urlOf = (person: Person, { instance_id }: Instance) => `${instancesOf(person)}/${instance_id}`;
const needsReveal = { status: 403, body: { details: { required_permission: 'secret:reveal' } } };
/** What the vault has for an instance. */
const sealedOf = (person: Person, { instance_id }: Instance) =>
  app.services.credentials.open(app.services.sql, person.orgId, { toolInstanceId: instance_id });

test('tool and name are enough; the answer shows what follows from the tool', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann, { config_schema: [configSchema[1], configSchema[7]] });
  const { status, body } = await ann.call<Instance>('POST', instancesOf(ann), { tool_id: toolId, name: 'Tickets' });
  expect(status).toBe(201);
  const descriptor = {
    display_name: null,
    description: null,
    placeholder: null,
    widget: null,
    required: false,
    default: null,
    options: [],
    validation: {},
    widget_options: {},
  };
  const tool = (await ann.call<Json>('GET', `/v1/orgs/${ann.orgId}/tools/${toolId}`)).body;
  const [get, drop] = tool.action_schemas as Json[];
  expect(body).toEqual({
    instance_id: expect.stringMatching(/^ti_/),
    tool_id: toolId,
    workspace_id: ann.workspaceId,
    namespace_id: null,
    name: 'Tickets',
    description: null,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
    last_used_at: null,
    usage_count: 0,
    is_active: true,
    configuration: { region: 'eu' },
    has_credentials: false,
    credential_refs: {},
    credential_fields: [],
    custom_action_parameters: {},
    action_defaults: {},
    auth_config: {},
    custom_actions: [],
    auth_mode: 'vault',
    connection_status: 'not_connected',
    connection_credentials: {
      client_id: null,
      client_secret_vault_id: null,
      callback_url: null,
      scopes_override: [],
    },
    mcp_description_override: null,
    mcp_action_filter: [],
    mcp_action_descriptions: {},
    mcp_max_calls_per_turn: null,
    mcp_requires_confirmation: false,
    mcp_parameter_overrides: {},
    schema_version: 1,
    upgrade_available: false,
    latest_schema_version: 1,
    schema_deprecated: false,
    tool_name: 'Tickets',
    tool_slug: tool.slug,
    tool_category: 'productivity',
    tool_icon_url: 'https://tickets.test/icon.png',
    supported_step_types: ['tool'],
    effective_action_schemas: [get, { ...drop, requires_confirmation: true }],
    tool_config_schema: [
      { ...descriptor, name: 'region', type: 'string', default: 'eu', options: configSchema[1]!.options },
      { ...descriptor, name: 'token', type: 'string', widget: 'password', validation: { min_length: 3 } },
    ],
  });
  expect((await ann.call('GET', urlOf(ann, body))).body).toEqual(body);
  expect((await ann.call('GET', instancesOf(ann))).body).toEqual({
    total: 1,
    has_more: false,
    next_cursor: null,
    instances: [body],
  });
  expect(await eventsOf(app, body.instance_id)).toEqual(['tool_instance.created']);
  expect(await changesOf(app, body.instance_id)).toMatchObject([
    { action: 'create', resourceType: 'tool_instance', workspaceId: ann.workspaceId, metadata: { tool_id: toolId } },
  ]);
});

test('sensitive values go to the vault, and are never shown', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const configuration = { base_url: 'https://tickets.test', token: 'the token', api_key: 'the key' };
  const made = await newInstance(ann, toolId, { configuration });
  const refs = Object.fromEntries(['api_key', 'token'].map((name) => [name, `vault://${made.instance_id}/${name}`]));
  const shown = { configuration: { base_url: 'https://tickets.test', region: 'eu' }, has_credentials: true };
  expect(made).toMatchObject({ ...shown, credential_refs: refs, credential_fields: ['api_key', 'token'] });
  expect(await sealedOf(ann, made)).toEqual({ api_key: 'the key', token: 'the token' });
  const url = urlOf(ann, made);
  const change = async (given: Json) => (await ann.call<Instance>('PUT', url, { configuration: given })).body;

  // what was shown may be sent back: secrets stay
  await change(made.configuration as Json);
  expect(await sealedOf(ann, made)).toEqual({ api_key: 'the key', token: 'the token' });
  // one may be replaced, and another removed
  const next = await change({ base_url: 'https://tickets.test', token: 'another', api_key: null });
  expect(next).toMatchObject({ credential_fields: ['token'], credential_refs: { token: refs.token } });
  expect(await sealedOf(ann, made)).toEqual({ token: 'another' });
  expect(await change({ base_url: 'https://tickets.test', token: null })).toMatchObject({
    has_credentials: false,
    credential_refs: {},
  });
  expect(await sealedOf(ann, made)).toBeNull();

  await change({ base_url: 'https://tickets.test', token: 'once more' });
  expect((await ann.call('DELETE', url)).status).toBe(204);
  expect(await app.database.prisma.credential.count({ where: { toolInstanceId: made.instance_id } })).toBe(0);
  expect((await ann.call('GET', url)).status).toBe(404);
  expect(await eventsOf(app, made.instance_id)).toEqual([
    'tool_instance.created',
    ...Array.from({ length: 4 }, () => 'tool_instance.updated'),
    'tool_instance.deleted',
  ]);
});

describe('the configuration is checked with the fields of the tool', () => {
  let ann: Person;
  let toolId: string;
  beforeAll(async () => {
    ann = await register(app, { name: 'ann' });
    toolId = await newTool(ann);
  });
  const base = { base_url: 'https://tickets.test' };

  test.each<[string, Json, [string, string][]]>([
    ['nothing of it', {}, [['base_url', 'missing']]],
    ['null for what must be there', { base_url: null }, [['base_url', 'missing']]],
    ['another pattern', { base_url: 'ftp://tickets.test' }, [['base_url', 'string_pattern_mismatch']]],
    ['another type', { base_url: 5 }, [['base_url', 'string_type']]],
    ['no option', { ...base, region: 'asia' }, [['region', 'literal_error']]],
    ['a fraction', { ...base, retries: 1.5 }, [['retries', 'int_type']]],
    ['too little', { ...base, retries: -1 }, [['retries', 'greater_than_equal']]],
    ['too much', { ...base, retries: 6 }, [['retries', 'less_than_equal']]],
    ['none of the enumeration', { ...base, ratio: 0.7 }, [['ratio', 'literal_error']]],
    ['a text for a number', { ...base, ratio: '1' }, [['ratio', 'float_type']]],
    ['a text for a boolean', { ...base, verbose: 'true' }, [['verbose', 'bool_type']]],
    ['no list', { ...base, labels: 'a' }, [['labels', 'list_type']]],
    ['too many elements', { ...base, labels: ['a', 'b', 'c'] }, [['labels', 'too_long']]],
    ['an unknown element', { ...base, labels: ['a', 'x'] }, [['labels.1', 'literal_error']]],
    ['a list for an object', { ...base, headers: [] }, [['headers', 'dict_type']]],
    ['a short secret', { ...base, token: 'ab' }, [['token', 'string_too_short']]],
    ['an object for a secret', { ...base, api_key: { a: 1 } }, [['api_key', 'string_type']]],
    ['a key that is no field', { ...base, baseurl: 'x' }, [['baseurl', 'extra_forbidden']]],
    ['a key of every object', { ...base, constructor: 'x' }, [['constructor', 'extra_forbidden']]],
    [
      'several at once',
      { retries: 'x', nothing: 1 },
      [
        ['retries', 'int_type'],
        ['nothing', 'extra_forbidden'],
        ['base_url', 'missing'],
      ],
    ],
  ])('%s', async (_title, configuration, issues) => {
    const wanted = issues.map(([name, type]) => [`configuration.${name}`, type]);
    const created = await ann.call('POST', instancesOf(ann), { tool_id: toolId, name: 'x', configuration });
    expect(created.status).toBe(422);
    expect(placesOf(created.body)).toEqual(wanted);
    expect(JSON.stringify(created.body)).not.toContain('"input":"x"');
    const made = await newInstance(ann, toolId);
    const changed = await ann.call('PUT', urlOf(ann, made), { configuration });
    expect(placesOf(changed.body)).toEqual(wanted);
    expect((await ann.call('GET', urlOf(ann, made))).body).toEqual(made);
  });

  test('what is fine is kept as it was given', async () => {
    const configuration = {
      ...base,
      region: 'us',
      retries: 0,
      ratio: 1,
      verbose: false,
      labels: ['a'],
      headers: { A: 1 },
    };
    expect(await newInstance(ann, toolId, { configuration })).toMatchObject({ configuration });
  });

  test('a pattern that makes other engines backtrack for ever, and one that takes long in any', async () => {
    const slow = await newTool(ann, {
      config_schema: [
        { name: 'word', validation: { pattern: '^(a+)+$' } },
        { name: 'long', validation: { pattern: '(a?){1000}$' } },
      ],
    });
    const configuration = { word: `${'a'.repeat(5_000)}!`, long: 'a'.repeat(5_000) };
    const { body } = await ann.call('POST', instancesOf(ann), { tool_id: slow, name: 'x', configuration });
    expect(placesOf(body)).toEqual([
      ['configuration.word', 'string_pattern_mismatch'],
      ['configuration.long', 'value_error'],
    ]);
    expect(await newInstance(ann, slow, { configuration: { word: 'aaa' } })).toMatchObject({
      configuration: { word: 'aaa' },
    });
  });

  test('a tool that describes no configuration takes any', async () => {
    const free = await newTool(ann, { config_schema: [] });
    const configuration = { anything: { at: ['all'] } };
    const made = await newInstance(ann, free, { configuration: { ...configuration, api_key: 'k' } });
    expect(made).toMatchObject({ configuration, credential_fields: ['api_key'] });
  });
});

test('an unknown tool is missing, as is that of another tenant; a disabled one has no new instances', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  const others = await newTool(bob);
  for (const tool_id of ['tool_unknown', others])
    expect(await ann.call('POST', instancesOf(ann), { tool_id, name: 'x' })).toMatchObject({
      status: 404,
      body: { details: { resource_type: 'tool', resource_id: tool_id } },
    });
  const own = await newTool(ann, { config_schema: [] });
  const made = await newInstance(ann, own, { configuration: {} });
  for (const status of ['deprecated', 'disabled'])
    expect((await ann.call('PUT', `/v1/orgs/${ann.orgId}/tools/${own}`, { status })).status).toBe(200);
  expect(await ann.call('POST', instancesOf(ann), { tool_id: own, name: 'x' })).toMatchObject({
    status: 409,
    body: { error: 'RESOURCE_CONFLICT', details: { resource_type: 'tool', resource_id: own, reason: 'tool_disabled' } },
  });
  expect((await ann.call('PUT', urlOf(ann, made), { name: 'still there' })).status).toBe(200);
});

test('a change leaves alone what it does not name; null clears, and objects are replaced whole', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const given = {
    description: 'x',
    auth_mode: 'api_key',
    auth_config: { a: 1 },
    connection_credentials: { client_id: 'id', client_secret_vault_id: 'external:x', scopes_override: ['read'] },
    action_defaults: { get: { lang: 'de' } },
    mcp_action_descriptions: { get: 'Reads a ticket.' },
    mcp_action_filter: ['get'],
    mcp_description_override: 'Tickets',
    mcp_max_calls_per_turn: 7,
    mcp_requires_confirmation: true,
    mcp_parameter_overrides: { get: { id: { description: 'The number.' } } },
    custom_action_parameters: { get: [{ name: 'more' }] },
  };
  const made = await newInstance(ann, toolId, given);
  expect(made).toMatchObject({
    ...given,
    connection_credentials: { ...given.connection_credentials, callback_url: null },
  });
  const url = urlOf(ann, made);
  const change = async (fields: Json) => (await ann.call<Instance>('PUT', url, fields)).body;
  expect(await change({})).toEqual({ ...made, updated_at: expect.any(String) });
  expect(await change({ name: 'b' })).toEqual({ ...made, name: 'b', updated_at: expect.any(String) });
  expect(await change({ description: null, mcp_max_calls_per_turn: null, connection_credentials: null })).toMatchObject(
    {
      description: null,
      mcp_max_calls_per_turn: null,
      connection_credentials: {
        client_id: null,
        client_secret_vault_id: null,
        callback_url: null,
        scopes_override: [],
      },
      auth_config: { a: 1 },
    },
  );
  expect(await change({ auth_config: { b: 2 }, action_defaults: {} })).toMatchObject({
    auth_config: { b: 2 },
    action_defaults: {},
  });
  const refused = await ann.call('PUT', url, { name: null, configuration: null, is_active: null });
  expect(placesOf(refused.body).map(([place]) => place)).toEqual(['name', 'configuration', 'is_active']);
});

test('the effective actions are those of the tool, with what the instance changes about them', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const own = { name: 'ping', url_template: 'https://tickets.test/ping' };
  const shadow = { name: 'drop', url_template: 'https://tickets.test/none' };
  const made = await newInstance(ann, toolId, {
    custom_actions: [own, shadow],
    custom_action_parameters: {
      get: [
        { name: 'lang', type: 'string' },
        { name: 'depth', type: 'integer' },
      ],
    },
    action_defaults: { get: { id: '7', unknown: 1 } },
    mcp_action_descriptions: { get: 'Reads a ticket.' },
    mcp_parameter_overrides: { get: { lang: { description: 'A language.', name: 'renamed' } } },
  });
  const actions = made.effective_action_schemas as Json[];
  expect(actions.map(({ name }) => name)).toEqual(['get', 'ping', 'drop']);
  expect(actions[0]).toEqual({
    name: 'get',
    description: 'Reads a ticket.',
    parameters: [
      { name: 'id', required: false, default: '7' },
      { name: 'lang', type: 'string', description: 'A language.' },
      { name: 'depth', type: 'integer' },
    ],
  });
  expect(made.custom_actions).toEqual(actions.slice(1));
  expect(actions[1]).toMatchObject({ ...own, method: 'GET', timeout_seconds: 1 });

  const url = urlOf(ann, made);
  const change = async (fields: Json) =>
    (await ann.call<Instance>('PUT', url, fields)).body.effective_action_schemas as Json[];
  expect((await change({ mcp_action_filter: ['ping', 'unknown'] })).map(({ name }) => name)).toEqual(['ping']);
  const asked = await change({ mcp_action_filter: [], mcp_requires_confirmation: true });
  expect(asked.map(({ requires_confirmation }) => requires_confirmation)).toEqual([true, true, true]);

  // a change of the tool is seen at once
  const changed = await ann.call('PUT', `/v1/orgs/${ann.orgId}/tools/${toolId}`, {
    name: 'Issues',
    action_schemas: [{ name: 'list' }],
  });
  expect(changed.status).toBe(200);
  expect((await ann.call('GET', url)).body).toMatchObject({
    tool_name: 'Issues',
    upgrade_available: true,
    latest_schema_version: 2,
    effective_action_schemas: [{ name: 'list' }, { name: 'ping' }, { name: 'drop' }],
  });
});

test('custom actions are checked by the schemas that forms are made from', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const refused = async (fields: Json, of = toolId) => {
    const payload = { tool_id: of, name: 'x', configuration: { base_url: 'https://a.test' }, ...fields };
    const { status, body } = await ann.call('POST', instancesOf(ann), payload);
    expect(status, JSON.stringify(body)).toBe(422);
    return placesOf(body);
  };
  const good = { name: 'ping', url_template: 'https://tickets.test/ping' };
  expect(await refused({ custom_actions: [good, { name: 'x', method: 'FETCH' }] })).toEqual([
    ['custom_actions.1.url_template', 'missing'],
    ['custom_actions.1.method', 'literal_error'],
  ]);
  expect(await refused({ custom_actions: [good, good] })).toEqual([['custom_actions.1.name', 'value_error']]);
  expect(await refused({ custom_actions: [good] }, await newTool(ann, { custom_action_type: 'none' }))).toEqual([
    ['custom_actions', 'value_error'],
  ]);
  expect(await refused({ custom_action_parameters: { get: [{ type: 'nothing' }] } })).toEqual([
    ['custom_action_parameters.get.0.name', 'missing'],
    ['custom_action_parameters.get.0.type', 'literal_error'],
  ]);
  expect(await refused({ action_defaults: { get: 5 }, mcp_parameter_overrides: { get: { id: 5 } } })).toEqual([
    ['action_defaults.get', 'dict_type'],
    ['mcp_parameter_overrides.get.id', 'dict_type'],
  ]);
});

test('a client secret in the place of a reference to it is refused, and is not repeated', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const configuration = { base_url: 'https://tickets.test', token: 'abc' };
  const connection_credentials = { client_id: 'id', client_secret_vault_id: 'opensesame' };
  const body = { tool_id: toolId, name: 'x', configuration, connection_credentials };
  const { instance_id: id } = await newInstance(ann, toolId, { configuration });
  for (const refused of [
    await ann.call('POST', instancesOf(ann), body),
    await ann.call('PUT', `${instancesOf(ann)}/${id}`, { connection_credentials }),
  ]) {
    expect([refused.status, placesOf(refused.body)]).toEqual([
      422,
      [['connection_credentials.client_secret_vault_id', 'value_error']],
    ]);
    expect(JSON.stringify(refused.body)).not.toContain('opensesame');
  }
});

test('a secret that an instance refers to cannot be destroyed until it does no more', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const secrets = `/v1/orgs/${ann.orgId}/secrets`;
  const payload = { name: 'client', secret_type: 'oauth2', value: { client_secret: 's' } };
  const { body: secret } = await ann.call<{ secret_id: string }>('POST', secrets, payload);
  const unknown = { connection_credentials: { client_secret_vault_id: 'secret://nothing' } };
  const refused = await ann.call('POST', instancesOf(ann), {
    tool_id: toolId,
    name: 'x',
    configuration: { base_url: 'https://tickets.test', token: 'abc' },
    ...unknown,
  });
  expect(placesOf(refused.body)).toEqual([['connection_credentials.client_secret_vault_id', 'value_error']]);
  const made = await newInstance(ann, toolId, {
    configuration: { base_url: 'https://tickets.test', token: 'abc' },
    connection_credentials: { client_secret_vault_id: 'secret://client' },
  });
  const destroy = () => ann.call('DELETE', `${secrets}/${secret.secret_id}?permanent=true`);
  expect(await destroy()).toMatchObject({
    status: 409,
    body: {
      details: { reason: 'in_use', references: [{ resource_type: 'tool_instance', resource_id: made.instance_id }] },
    },
  });
  const url = urlOf(ann, made);
  const both = {
    configuration: { base_url: 'https://tickets.test', token: 'def' },
    connection_credentials: { client_secret_vault_id: secret.secret_id },
  };
  expect((await ann.call('PUT', url, both)).status).toBe(200);
  expect((await destroy()).status).toBe(409);
  expect((await ann.call('DELETE', url)).status).toBe(204);
  expect((await destroy()).status).toBe(204);
});

test('members change what they made, editors all; viewers read', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const join = async (role: 'editor' | 'member' | 'viewer') => {
    const { orgId, workspaceId } = ann;
    return caller(app, { ...(await colleague(app, ann, role)), orgId, workspaceId });
  };
  const [editor, member, viewer] = [await join('editor'), await join('member'), await join('viewer')];
  const [hers, own] = [await newInstance(ann, toolId), await newInstance(member, toolId)];
  const tries = (of: Instance) =>
    [
      ['PUT', urlOf(ann, of), {}],
      ['POST', `${urlOf(ann, of)}/toggle?is_active=true`, undefined],
      ['POST', `${urlOf(ann, of)}/upgrade`, {}],
      ['DELETE', urlOf(ann, of), undefined],
    ] as const;
  const statuses = async (person: Person, of: Instance) => {
    const found: number[] = [];
    for (const [method, url, payload] of tries(of)) found.push((await person.call(method, url, payload)).status);
    return found;
  };
  expect((await viewer.call('GET', instancesOf(ann))).body).toMatchObject({ total: 2 });
  expect((await viewer.call('POST', instancesOf(ann), { tool_id: toolId, name: 'x' })).status).toBe(403);
  expect(await statuses(viewer, hers)).toEqual([403, 403, 403, 403]);
  expect(await statuses(member, hers)).toEqual([403, 403, 403, 403]);
  expect(await statuses(member, own)).toEqual([200, 200, 200, 204]);
  expect(await statuses(editor, hers)).toEqual([200, 200, 200, 204]);
});

test('nobody sends credentials of others to a place of their own choice', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const { orgId, workspaceId } = ann;
  const join = async (role: 'admin' | 'editor' | 'member') =>
    caller(app, { ...(await colleague(app, ann, role)), orgId, workspaceId });
  const [admin, editor, member] = [await join('admin'), await join('editor'), await join('member')];
  const elsewhere = { base_url: 'https://elsewhere.test' };
  const made = await newInstance(member, toolId, {
    configuration: { base_url: 'https://tickets.test', token: 'the token' },
  });
  const put = (person: Person, payload: Json) => person.call<Instance>('PUT', urlOf(ann, made), payload);
  for (const payload of [{ configuration: elsewhere }, { auth_config: { prefix: 'x' } }, { custom_actions: [] }])
    expect(await put(editor, payload)).toMatchObject(needsReveal);
  expect((await ann.call<Instance>('GET', urlOf(ann, made))).body).toEqual(made);
  expect(await put(editor, { name: 'renamed', configuration: made.configuration })).toMatchObject({ status: 200 });
  expect(await put(admin, { configuration: elsewhere })).toMatchObject({ status: 200 });
  const own = { ...elsewhere, base_url: 'https://own.test', token: 'of the editor', api_key: null };
  expect(await put(editor, { configuration: own })).toMatchObject({ status: 200 });
  expect(await sealedOf(ann, made)).toEqual({ token: 'of the editor' });
  // it is the editor's now, whoever made the instance
  expect(await put(member, { configuration: { base_url: 'https://tickets.test' } })).toMatchObject(needsReveal);
  expect(await put(editor, { configuration: { base_url: 'https://tickets.test' } })).toMatchObject({ status: 200 });
});

describe('whose a credential is', () => {
  const elsewhere = { configuration: { base_url: 'https://elsewhere.test' } };
  const [at, moved] = [{ base_url: 'https://tickets.test' }, { base_url: 'https://moved.test' }];
  /** A member with an instance of their own, and an administrator. */
  async function lab(tool: Json = {}, configuration: Json = {}) {
    const ann = await register(app, { name: 'ann' });
    const { orgId, workspaceId } = ann;
    const join = async (role: 'admin' | 'member') =>
      caller(app, { ...(await colleague(app, ann, role)), orgId, workspaceId });
    const [admin, member] = [await join('admin'), await join('member')];
    const toolId = await newTool(ann, tool);
    const made = await newInstance(member, toolId, { configuration: { ...at, ...configuration } });
    const put = async (person: Person, given: Json) => person.call<Instance>('PUT', urlOf(ann, made), given);
    return { ann, admin, member, made, put };
  }

  test('is who filled it in last, not who made the instance', async () => {
    const { ann, admin, member, made, put } = await lab();
    expect((await put(member, { configuration: moved })).status).toBe(200);
    expect((await put(admin, { configuration: { ...at, token: 'of the admin' } })).status).toBe(200);
    for (const change of [elsewhere, { auth_config: { prefix: 'x' } }, { custom_actions: [] }])
      expect(await put(member, change)).toMatchObject(needsReveal);
    // a secret beside it does not make it theirs
    expect((await put(member, { configuration: { ...at, api_key: 'of the member' } })).status).toBe(200);
    expect(await put(member, elsewhere)).toMatchObject(needsReveal);
    expect(await sealedOf(ann, made)).toEqual({ token: 'of the admin', api_key: 'of the member' });
    const all = { token: 'of the member', api_key: 'of the member' };
    expect((await put(member, { configuration: { ...moved, ...all } })).status).toBe(200);
    expect((await put(member, elsewhere)).status).toBe(200);
  });

  test('stays as it is when somebody else takes a secret away', async () => {
    const { admin, member, put } = await lab({}, { token: 'of the member', api_key: 'of the member' });
    expect((await put(admin, { configuration: { ...at, api_key: null } })).status).toBe(200);
    expect((await put(member, elsewhere)).status).toBe(200);
  });

  test('is who connected last, not who made the connection', async () => {
    const { ann, admin, member, made, put } = await lab({ supports_connection: true });
    const connectBy = async (person: Person, api_key: string) => {
      const given = { tool_instance_id: made.instance_id, api_key };
      const { status, body } = await person.call<Json>('POST', `${ann.home}/connections/api-key`, given);
      expect(status, JSON.stringify(body)).toBe(201);
      return body.connection_id;
    };
    const first = await connectBy(member, 'junk');
    expect((await put(member, { configuration: moved })).status).toBe(200);
    expect(await connectBy(admin, 'the real key')).toBe(first);
    expect(await put(member, elsewhere)).toMatchObject(needsReveal);
    await connectBy(member, 'junk again');
    expect((await put(member, elsewhere)).status).toBe(200);
  });

  test('was nobody’s before that was known, unless it was there from the beginning', async () => {
    const { ann, admin, member, made, put } = await lab({ supports_connection: true }, { token: 'of the member' });
    const replaced = await newInstance(member, made.tool_id as string, { configuration: { ...at, token: 'old' } });
    const late = await newInstance(member, made.tool_id as string, { configuration: at });
    for (const one of [replaced, late])
      await admin.call('PUT', urlOf(ann, one), { configuration: { ...at, token: 'of the admin' } });
    const key = { tool_instance_id: made.instance_id, api_key: 'of the member' };
    const { body } = await member.call<Json>('POST', `${ann.home}/connections/api-key`, key);
    const { pool } = app.database;
    await pool.query('update credentials set set_by = null where org_id = $1', [ann.orgId]);
    const statements = readFileSync('prisma/migrations/20261126205000_who_set_credentials/migration.sql', 'utf8')
      .split(/;\s*(?:\n|$)/)
      .map((text) => text.replaceAll(/^--.*\n/gm, '').trim())
      .filter((text) => text.startsWith('UPDATE'));
    expect(statements).toHaveLength(2);
    for (const text of statements) await pool.query(text);
    const { rows } = await pool.query<{ owner: string; by: string | null }>(
      'select coalesce(tool_instance_id, connection_id) as owner, set_by as by from credentials where org_id = $1',
      [ann.orgId],
    );
    expect(Object.fromEntries(rows.map(({ owner, by }) => [owner, by]))).toEqual({
      [made.instance_id]: member.userId,
      [body.connection_id as string]: member.userId,
      [replaced.instance_id]: null,
      [late.instance_id]: null,
    });
    expect((await put(member, elsewhere)).status).toBe(200);
    expect(await member.call('PUT', urlOf(ann, late), elsewhere)).toMatchObject(needsReveal);
  });
});

test('an instance names only secrets that its maker may see', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const workspaces = `/v1/orgs/${ann.orgId}/workspaces`;
  const { body: other } = await ann.call<{ workspace_id: string }>('POST', workspaces, {
    organization_id: ann.orgId,
    name: 'other',
  });
  const { body: secret } = await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, {
    name: 'hidden',
    secret_type: 'oauth2',
    value: { client_secret: 's' },
    workspace_id: other.workspace_id,
  });
  const { orgId, workspaceId } = ann;
  const member = caller(app, { ...(await colleague(app, ann, 'member')), orgId, workspaceId });
  const connection_credentials = { client_secret_vault_id: secret.secret_id };
  const make = (person: Person) =>
    person.call('POST', instancesOf(ann), {
      tool_id: toolId,
      name: 'x',
      configuration: { base_url: 'https://tickets.test', token: 'abc' },
      connection_credentials,
    });
  const refused = await make(member);
  expect(refused).toMatchObject({ status: 404, body: { details: { resource_id: secret.secret_id } } });
  const own = await newInstance(member, toolId);
  expect((await member.call('PUT', urlOf(ann, own), { connection_credentials })).status).toBe(refused.status);
  expect((await make(ann)).status).toBe(201);
});

test('a token of one namespace reads the instances of that, and those of none; it changes none', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const { body: other } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, {
    name: 'Other',
    slug: 'other',
  });
  const [inDefault, inOther, free] = [
    await newInstance(ann, toolId, { namespace_id: 'default' }),
    await newInstance(ann, toolId, { namespace_id: other.namespace_id }),
    await newInstance(ann, toolId),
  ];
  expect(inDefault.namespace_id).toMatch(/^ns_/);
  const { headers } = await issueToken(app, ann, { scopes: ['write'], namespace_ids: [other.namespace_id] });
  const call = async (method: 'GET' | 'PUT' | 'POST' | 'DELETE', url: string, payload?: object) =>
    (await app.server.inject({ method, url, headers, ...(payload ? { payload } : {}) })).statusCode;
  const listed = await app.server.inject({ url: instancesOf(ann), headers });
  expect(listed.json<{ instances: Instance[] }>().instances.map(({ instance_id }) => instance_id)).toEqual([
    free.instance_id,
    inOther.instance_id,
  ]);
  expect(await call('GET', urlOf(ann, inDefault))).toBe(403);
  expect(await call('GET', urlOf(ann, inOther))).toBe(200);
  expect(await call('PUT', urlOf(ann, inOther), { name: 'x' })).toBe(403);
  expect(await call('POST', `${urlOf(ann, inDefault)}/toggle?is_active=false`)).toBe(403);
  const payload = { tool_id: toolId, name: 'x', namespace_id: 'ns_x' };
  expect(await call('POST', instancesOf(ann), payload)).toBe(403);
  expect((await ann.call('POST', instancesOf(ann), payload)).body).toMatchObject({
    details: { resource_type: 'namespace', resource_id: 'ns_x' },
  });
});

test('the list is filtered by tool and by whether instances are active', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two] = [await newTool(ann), await newTool(ann)];
  const first = await newInstance(ann, one);
  const second = await newInstance(ann, one, { is_active: false });
  const third = await newInstance(ann, two);
  const listed = async (query: string) =>
    (await ann.call<{ instances: Instance[] }>('GET', `${instancesOf(ann)}?${query}`)).body.instances.map(
      ({ instance_id }) => instance_id,
    );
  const [a, b, c] = [first.instance_id, second.instance_id, third.instance_id];
  expect(await listed('')).toEqual([c, b, a]);
  expect(await listed(`tool_id=${one}`)).toEqual([b, a]);
  expect(await listed(`tool_id=${one}&active_only=true`)).toEqual([a]);
  expect(await ann.call('GET', `${instancesOf(ann)}?tool_id=tool_unknown`)).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'tool', resource_id: 'tool_unknown' } },
  });
});

test('toggling sets the given value, and the same again is fine', async () => {
  const ann = await register(app, { name: 'ann' });
  const made = await newInstance(ann, await newTool(ann));
  const toggle = (query: string) => ann.call('POST', `${urlOf(ann, made)}/toggle${query}`);
  for (const isActive of [false, false, true])
    expect(await toggle(`?is_active=${isActive}`)).toMatchObject({ status: 200, body: { is_active: isActive } });
  expect(placesOf((await toggle('')).body)).toEqual([['is_active', 'missing']]);
  expect(await eventsOf(app, made.instance_id)).toEqual([
    'tool_instance.created',
    ...Array.from({ length: 3 }, () => 'tool_instance.toggled'),
  ]);
  expect((await changesOf(app, made.instance_id)).slice(1)).toMatchObject(
    [false, false, true].map((is_active) => ({ action: 'toggle', metadata: { is_active } })),
  );
});

test('GraphQL walks from workspaces and tools to instances and back, and shows only what one may see', async () => {
  const ann = await register(app, { name: 'ann' });
  const toolId = await newTool(ann);
  const { body: elsewhere } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
    organization_id: ann.orgId,
    name: 'Elsewhere',
  });
  const made = await newInstance(ann, toolId, { namespace_id: 'default' });
  const other = await ann.call<Instance>(
    'POST',
    `/v1/orgs/${ann.orgId}/workspaces/${elsewhere.workspace_id}/tool-instances`,
    {
      tool_id: toolId,
      name: 'x',
      configuration: { base_url: 'https://tickets.test' },
    },
  );
  const query = `query ($orgId: ID!, $workspaceId: ID!, $id: ID!, $toolId: ID!) {
    toolInstance(orgId: $orgId, workspaceId: $workspaceId, id: $id) {
      id tool { id instances { totalCount nodes { id } } } workspace { id toolInstances { nodes { id } } }
      namespace { slug } createdByUser { id } effectiveActionSchemas toolConfigSchema { name widgetOptions } metadata
    }
    tool(orgId: $orgId, id: $toolId) { instances(activeOnly: true) { nodes { id tool { id } } } }
    node(id: $id) { __typename id }
  }`;
  const variables = { orgId: ann.orgId, workspaceId: ann.workspaceId, id: made.instance_id, toolId };
  const hers = [{ id: other.body.instance_id }, { id: made.instance_id }];
  expect(await ann.ask(query, variables)).toMatchObject({
    data: {
      toolInstance: {
        id: made.instance_id,
        tool: { id: toolId, instances: { totalCount: 2, nodes: hers } },
        workspace: { id: ann.workspaceId, toolInstances: { nodes: [{ id: made.instance_id }] } },
        namespace: { slug: 'default' },
        createdByUser: { id: ann.userId },
        metadata: {},
      },
      tool: { instances: { nodes: hers.map(({ id }) => ({ id, tool: { id: toolId } })) } },
      node: { __typename: 'ToolInstance', id: made.instance_id },
    },
  });
  const viewer = await colleague(app, ann, 'viewer');
  const { data } = await viewer.ask<{ tool: unknown }>(query, variables);
  expect(data.tool).toEqual({ instances: { nodes: [{ id: made.instance_id, tool: { id: toolId } }] } });
});

describe('a client secret goes to the addresses of a tool', () => {
  const oauth = {
    name: 'oauth',
    type: 'oauth2',
    authorization_url: 'https://tickets.test/authorize',
    token_url: 'https://tickets.test/token',
  };
  const newSecret = async (owner: Person, name: string) => {
    const payload = { name, secret_type: 'oauth2', value: { client_secret: 's' } };
    const made = await owner.call<{ secret_id: string }>('POST', `/v1/orgs/${owner.orgId}/secrets`, payload);
    return made.body.secret_id;
  };
  const needsReveal = { status: 403, body: { details: { required_permission: 'secret:reveal' } } };
  const clientOf = (client_secret_vault_id: string, more: Json = {}) => ({
    connection_credentials: { client_id: 'c', client_secret_vault_id, ...more },
  });

  test('of the organization: only who may see its value names it', async () => {
    const ann = await register(app, { name: 'ann' });
    const { orgId, workspaceId } = ann;
    const toolId = await newTool(ann, { config_schema: [], credential_schema: [oauth] });
    const [first, second] = [await newSecret(ann, 'first'), await newSecret(ann, 'second')];
    const editor = caller(app, { ...(await colleague(app, ann, 'editor')), orgId, workspaceId });
    const { plaintext_token } = await issueToken(app, ann, {
      permissions: ['secret:read', 'tool:read', 'tool_instance:create', 'tool_instance:update'],
    });
    const token = caller(app, { ...ann, accessToken: plaintext_token });
    const body = { tool_id: toolId, name: 'x', auth_mode: 'oauth2', configuration: {} };
    const free = await newInstance(ann, toolId, { configuration: {} });
    for (const person of [editor, token])
      for (const reference of [first, 'secret://first']) {
        expect(await person.call('POST', instancesOf(ann), { ...body, ...clientOf(reference) })).toMatchObject(
          needsReveal,
        );
        expect(await person.call('PUT', urlOf(ann, free), clientOf(reference))).toMatchObject(needsReveal);
      }
    const made = await newInstance(ann, toolId, { configuration: {}, ...clientOf(first) });
    const put = (reference: string, more?: Json) => editor.call('PUT', urlOf(ann, made), clientOf(reference, more));
    expect(await put(second)).toMatchObject(needsReveal);
    // what stays goes nowhere else
    expect(await put(first, { scopes_override: ['read'] })).toMatchObject({ status: 200 });
    expect((await editor.call<Instance>('GET', urlOf(ann, made))).body).toMatchObject({
      connection_credentials: { client_id: 'c', client_secret_vault_id: first, scopes_override: ['read'] },
    });
  });

  test('of a built-in tool: whoever may read the secret names it', async () => {
    const ann = await register(app, { name: 'ann' });
    const { orgId, workspaceId } = ann;
    const secret = await newSecret(ann, 'github');
    const { body } = await ann.call<{ tools: { tool_id: string; slug: string }[] }>('GET', `/v1/orgs/${orgId}/tools`);
    const github = body.tools.find(({ slug }) => slug === 'github')!.tool_id;
    const editor = caller(app, { ...(await colleague(app, ann, 'editor')), orgId, workspaceId });
    const made = await newInstance(editor, github, { configuration: {}, auth_mode: 'oauth2', ...clientOf(secret) });
    expect(made).toMatchObject({ connection_credentials: { client_secret_vault_id: secret } });
  });

  test('asks for a fresh factor, if the organization does so before secrets are revealed', async () => {
    const ann = await register(app, { name: 'ann' });
    const toolId = await newTool(ann, { config_schema: [], credential_schema: [oauth] });
    const secret = await newSecret(ann, 'client');
    await withTotp(app, ann);
    const policy = await ann.call('PATCH', `/v1/orgs/${ann.orgId}/sign-in-policy`, { step_up: ['secret_reveal'] });
    expect(policy.status).toBe(200);
    await letFactorsAge(app, ann);
    app.services.authentication.sessionsChanged();
    const body = { tool_id: toolId, name: 'x', auth_mode: 'oauth2', configuration: {}, ...clientOf(secret) };
    expect(await ann.call('POST', instancesOf(ann), body)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'secret:reveal', reason: 'fresh_factor' } },
    });
  });
});
