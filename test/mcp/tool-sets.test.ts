import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withheldIn } from '../../src/mcp/open-operations.ts';
import { withoutSecrets } from '../../src/mcp/set-operations.ts';
import { MAX_IN_SET, MAX_TOOLS, TOOL_SETS, toolsOfSets } from '../../src/mcp/tool-sets.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { operations } from '../support/operations.ts';
import { colleague, type Person, register } from '../support/person.ts';
import { issueToken } from '../support/tokens.ts';
import { connect } from './mcp-client.ts';

let app: TestApp;
let ann: Person;
let token: string;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  ann = await register(app, { name: 'ann' });
  token = await tokenOf(ann);
});
afterAll(() => app.close());

const tokenOf = async (person: Person, given: Record<string, unknown> = { scopes: ['admin'] }) =>
  (await issueToken(app, person, given)).plaintext_token;
const open = (query: string, as = token, era: 'modern' | 'legacy' = 'modern') =>
  connect(app, as, { path: `/mcp?${query}`, era });
const toolsOf = async (query: string, as = token) => (await (await open(query, as)).client.listTools()).tools;
const namesOf = async (query: string, as = token) => (await toolsOf(query, as)).map(({ name }) => name);
const refusalOf = async (url: string, as = token) => {
  const answer = await app.server.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json' },
    payload: '{}',
  });
  return [answer.statusCode, answer.json<{ error: string; message: string }>()];
};
const FIVE = ['search', 'describe', 'read', 'change', 'events'];
const newSecret = async (name: string) =>
  (
    await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, {
      name,
      secret_type: 'api_key',
      value: { key: 'the-value-of-it' },
    })
  ).body.secret_id;

describe('the sets', () => {
  test('have at most twelve operations each, which models may run and which show no secret', () => {
    const byName = new Map(operations.map((operation) => [operation.name, operation]));
    for (const [set, names] of Object.entries(TOOL_SETS)) {
      expect(names.length, set).toBeLessThanOrEqual(MAX_IN_SET);
      expect(new Set(names).size, set).toBe(names.length);
      for (const name of names) {
        const { document } = withoutSecrets(schema, byName.get(name)!.document);
        expect([name, withheldIn(schema, document)]).toEqual([name, null]);
      }
    }
  });

  test('cost a model at most 12,000 tokens, however they are put together', async () => {
    const sets = await Promise.all(
      Object.entries({ ...TOOL_SETS, platform: FIVE }).map(async ([set, names]) => {
        const tools = await toolsOf(`tools=${set}`);
        expect(tools.length, set).toBe(names.length);
        return { count: tools.length, tokens: countTokens(JSON.stringify(tools)) };
      }),
    );
    // all that fit into one list, in every way
    let sums = [{ count: 0, tokens: 0 }];
    for (const { count, tokens } of sets)
      sums = sums.concat(sums.map((sum) => ({ count: sum.count + count, tokens: sum.tokens + tokens })));
    const dearest = Math.max(...sums.filter(({ count }) => count <= MAX_TOOLS).map(({ tokens }) => tokens));
    expect(dearest).toBeLessThan(12_000);
  });

  test('are refused together if they are more than 40 tools', () => {
    expect(() => toolsOfSets(Object.keys(TOOL_SETS).join(','))).toThrow(/at most 40/);
    expect(toolsOfSets('secrets,secrets, members').operations).toHaveLength(16);
    // 12 + 12 + 12 with the five are one too many
    expect(() => toolsOfSets('deployments,tools,platform,activity,secrets')).toThrow(/at most 40/);
  });

  test('stand beside the five tools over the schema', async () => {
    const { client, call } = await open('tools=secrets,platform');
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      ...FIVE,
      'list_secrets',
      'get_secret',
      'get_secret_by_name',
      'create_secret',
      'update_secret',
      'rotate_secret',
      'delete_secret',
      'restore_secret',
    ]);
    expect((await call('search', { words: 'rotate a secret' })).text).toContain('rotateSecret');
    expect(await call('list_secrets', { limit: 1 })).toMatchObject({ isError: false });
    expect(await namesOf('tools=platform')).toEqual(FIVE);
    expect(await namesOf('tools=platform,secrets&read_only=1')).not.toContain('change');
  });
});

describe.each(['modern', 'legacy'] as const)('a client of the %s revision', (era) => {
  test('reads, changes what needs no agreement, and is asked before the rest', async () => {
    const { call } = await open(`tools=secrets,files`, token, era);
    const id = await newSecret(`of ${era}`);
    const list = await call('list_secrets', { limit: 1, include_expired: false, secret_type: 'api_key' });
    expect(list.json).toMatchObject({ data: { secrets: { secrets: [{ secret_id: id }] } } });
    const update = { secret_id: id, body: { description: `by a ${era} model` } };
    const asked = await call('update_secret', update);
    const confirm = /"confirm": "([^"]+)"/.exec(asked.text)![1];
    expect(await call('update_secret', { secret_id: id, body: { description: 'other' }, confirm })).toMatchObject({
      isError: true,
    });
    const again = /"confirm": "([^"]+)"/.exec((await call('update_secret', update)).text)![1];
    const changed = await call('update_secret', { ...update, confirm: again });
    expect(changed.json).toMatchObject({ data: { update_secret: { description: `by a ${era} model` } } });
  });
});

test('secrets are not shown, whatever the token may', async () => {
  const id = await newSecret('not shown');
  const { call } = await open('tools=secrets');
  const { text, isError } = await call('get_secret', { secret_id: id });
  expect([isError, text.includes('not shown'), text.includes('the-value-of-it')]).toEqual([false, true, false]);
  expect(await call('get_secret', { secret_id: id, include_value: true })).toMatchObject({
    isError: true,
    json: { error: { code: 'VALIDATION_ERROR' } },
  });
  const [tool] = (await toolsOf('tools=secrets')).filter(({ name }) => name === 'get_secret');
  expect(tool!.inputSchema).toEqual({
    type: 'object',
    // a reason is of use to sets that reveal
    properties: { secret_id: expect.any(Object), reason: expect.any(Object) },
    required: ['secret_id'],
  });
});

test('read_only wins over everything', async () => {
  const { client, call } = await open('tools=secrets,members&read_only=1');
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    'list_secrets',
    'get_secret',
    'get_secret_by_name',
    'list_organization_members',
    'list_workspace_members',
  ]);
  const id = await newSecret('stays');
  expect(await call('delete_secret', { secret_id: id })).toMatchObject({
    json: { error: { code: 'RESOURCE_NOT_FOUND' } },
  });
});

test('tools that the token or its user may not use are not listed', async () => {
  const reading = await tokenOf(ann, { permissions: ['secret:read'] });
  expect(await namesOf('tools=secrets,members', reading)).toEqual(['list_secrets', 'get_secret', 'get_secret_by_name']);
  const viewer = await colleague(app, ann, 'viewer');
  const theirs = (await issueToken(app, { ...viewer, orgId: ann.orgId }, { scopes: ['admin'] })).plaintext_token;
  const names = await namesOf('tools=secrets,deployments', theirs);
  expect(names).toContain('list_apps');
  expect(names).not.toContain('delete_secret');
  expect(names).not.toContain('deploy_release');
});

test('the workspace of the address is that of all calls, and nobody asks for it', async () => {
  const query = `tools=deployments&workspace=${ann.workspaceId}`;
  const { call } = await open(query);
  for (const { name, inputSchema } of await toolsOf(query))
    expect([name, Object.keys(inputSchema.properties!)]).toEqual([
      name,
      expect.not.arrayContaining(['org_id', 'workspace_id']),
    ]);
  expect(await call('list_apps')).toMatchObject({ isError: false, json: { data: { apps: expect.any(Object) } } });
  expect(await call('list_apps', { workspace_id: 'ws_other' })).toMatchObject({ isError: true });
  // whatever is given is an argument or a mistake, and no fault
  for (const limit of ['many', [[1]], { a: 1 }, true, 10_000])
    expect(await call('list_apps', { limit })).toMatchObject({ json: { error: { code: 'VALIDATION_ERROR' } } });
  expect(await call('create_release', { body: [] })).toMatchObject({ json: { error: { code: 'VALIDATION_ERROR' } } });
});

test('options that there are not are refused, and say what there is', async () => {
  expect(await refusalOf('/mcp?tools=secrets,keys')).toEqual([
    400,
    expect.objectContaining({
      error: 'INVALID_REQUEST',
      message:
        "There is no set 'keys'. The sets are: activity, deployments, files, members, models, platform, " +
        'secrets, tools.',
    }),
  ]);
  for (const query of [
    'tools=',
    'tools=constructor',
    'tools=secrets&tools=files',
    'workspace=',
    'workspace=ws_1&workspace=ws_2',
    'tools=secrets&workspace=',
    'tool=secrets',
    'reveal=1',
    'tools=platform&reveal=1',
    'tools=secrets&reveal=yes',
  ])
    expect((await refusalOf(`/mcp?${query}`))[0], query).toBe(400);
  for (const query of ['tools=secrets', 'reveal=1', `workspace=${ann.workspaceId}`])
    expect((await refusalOf(`/mcp/w/${ann.workspaceId}?${query}`))[0], query).toBe(400);
});

describe('the workspace of the address', () => {
  let other: string;
  let theirs: { namespace_id: string };
  beforeAll(async () => {
    const { body } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
      organization_id: ann.orgId,
      name: 'The other one',
    });
    other = body.workspace_id;
    theirs = (
      await ann.call<typeof theirs>('POST', `/v1/orgs/${ann.orgId}/workspaces/${other}/namespaces`, { name: 'Theirs' })
    ).body;
  });
  const FORBIDDEN = { isError: true, json: { error: { code: 'FORBIDDEN' } } };

  test('is all that can be reached, by every tool and however it is named', async () => {
    const { call } = await open(`tools=platform,secrets&workspace=${ann.workspaceId}`);
    const o = ann.orgId;
    const naming = (workspace: string) =>
      call('change', {
        mutation: `mutation { createNamespace(orgId: "${o}", workspaceId: "${workspace}", input: {name: "N"}) { id } }`,
      });
    expect(await naming(ann.workspaceId)).toMatchObject({ isError: false });
    expect(await naming(other)).toMatchObject(FORBIDDEN);
    const reading = (workspace: string) =>
      call('read', { query: `{ workspace(orgId: "${o}", id: "${workspace}") { name } }` });
    expect(await reading(ann.workspaceId)).toMatchObject({ isError: false });
    expect(await reading(other)).toMatchObject(FORBIDDEN);
    for (const id of [other, theirs.namespace_id]) {
      const { text } = await call('read', { query: `{ node(id: "${id}") { id } }` });
      expect(text).not.toContain(`"id":"${id}"`);
    }
    const { json } = await call('read', { query: `{ workspaces(orgId: "${o}") { nodes { id } } }` });
    expect(json).toEqual({ data: { workspaces: { nodes: [{ id: ann.workspaceId }] } } });
    // what belongs to the organization as a whole is not changed from here
    const secret = await newSecret('of all workspaces');
    const asked = await call('delete_secret', { secret_id: secret });
    const confirm = /"confirm": "([^"]+)"/.exec(asked.text)?.[1];
    expect(await call('delete_secret', { secret_id: secret, confirm })).toMatchObject(FORBIDDEN);
    const there = { name: 'X', secret_type: 'api_key', scope: 'workspace', workspace_id: other, value: { key: 'k' } };
    const again = /"confirm": "([^"]+)"/.exec((await call('create_secret', { body: there })).text)?.[1];
    expect(await call('create_secret', { body: there, confirm: again })).toMatchObject(FORBIDDEN);
    expect(await call('events', { orgId: o, workspaceId: other })).toMatchObject(FORBIDDEN);
    // another address of the same token is not restricted by it
    expect(
      await (await open('tools=platform')).call('read', {
        query: `{ workspace(orgId: "${o}", id: "${other}") { name } }`,
      }),
    ).toMatchObject({ isError: false });
  });

  test('in arguments of sets, another one is refused', async () => {
    const { body } = await ann.call<{ app_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces/${other}/apps`, {
      name: 'Theirs',
    });
    const { call } = await open(`tools=deployments&workspace=${ann.workspaceId}`);
    expect(await call('get_app', { app_id: body.app_id })).toMatchObject({ isError: true });
    expect(await call('create_release', { app_id: body.app_id, body: {} })).toMatchObject({ isError: true });
    expect(await call('list_apps', { workspace_id: other })).toMatchObject({ isError: true });
  });

  test('is refused where the token, or its user, does not reach it', async () => {
    const elsewhere = await tokenOf(ann, { scopes: ['admin'], workspace_ids: [other] });
    const eve = await register(app, { name: 'eve' });
    for (const [workspace, as] of [
      [ann.workspaceId, elsewhere],
      ['ws_of_nobody', token],
      [ann.workspaceId, await tokenOf(eve)],
    ] as const)
      for (const query of [`workspace=${workspace}`, `tools=secrets&workspace=${workspace}`])
        expect(await refusalOf(`/mcp?${query}`, as)).toEqual([
          403,
          expect.objectContaining({ error: 'FORBIDDEN', details: { required_permission: 'workspace:read' } }),
        ]);
    expect(await namesOf(`workspace=${other}`, elsewhere)).toEqual(FIVE);
  });
});

describe('values of secrets', () => {
  const QUERY = 'tools=platform,secrets&reveal=1';
  let made = 0;
  const valueBy = async (query: string, as: string) => {
    const id = await newSecret(`maybe shown ${++made}`);
    const { call } = await open(query, as);
    return (await call('get_secret', { secret_id: id, include_value: true })).text.includes('the-value-of-it');
  };

  test('are shown if the address and the token both say so, each by its name', async () => {
    const named = await tokenOf(ann, { permissions: ['secret:read', 'secret:reveal'] });
    expect(await valueBy(QUERY, named)).toBe(true);
    expect(await valueBy(`${QUERY}&read_only=1`, named)).toBe(true);
    const { call } = await open(QUERY, named);
    const name = `maybe shown ${made}`;
    const found = await call('get_secret_by_name', { name, include_value: true });
    expect(found.text).toContain('the-value-of-it');
    expect((await call('get_secret_by_name', { name })).text).not.toContain('the-value-of-it');
  });

  test('are shown for a reason only, where the organization wants one', async () => {
    const policy = `/v1/orgs/${ann.orgId}/sign-in-policy`;
    expect((await ann.call('PATCH', policy, { require_reveal_reason: true })).status).toBe(200);
    const named = await tokenOf(ann, { permissions: ['secret:read', 'secret:reveal'] });
    const secret_id = await newSecret(`for a reason ${++made}`);
    const { call } = await open(QUERY, named);
    const without = await call('get_secret', { secret_id, include_value: true });
    expect(without.text).not.toContain('the-value-of-it');
    expect(without.text).toContain('reason');
    expect((await call('get_secret', { secret_id, include_value: true, reason: 'Ticket 7' })).text).toContain(
      'the-value-of-it',
    );
    await ann.call('PATCH', policy, { require_reveal_reason: false });
  });

  test('are not shown if one of them does not, or says it by a word', async () => {
    const named = await tokenOf(ann, { permissions: ['secret:read', 'secret:reveal'] });
    for (const query of ['tools=secrets', 'tools=secrets&reveal=0', 'tools=platform,secrets'])
      expect([query, await valueBy(query, named)]).toEqual([query, false]);
    for (const given of [
      { scopes: ['admin'] },
      { scopes: ['secret'] },
      { permissions: ['secret:*'] },
      { scopes: ['read', 'write'] },
      {},
    ])
      expect([given, await valueBy(QUERY, await tokenOf(ann, given))]).toEqual([given, false]);
  });

  test('are shown by the two operations only, and not to users who may not see them', async () => {
    const named = await tokenOf(ann, { scopes: ['admin', 'secret:reveal'] });
    const id = await newSecret('by documents');
    const { call } = await open(QUERY, named);
    for (const query of [
      `{ secret(orgId: "${ann.orgId}", id: "${id}", includeValue: true) { value } }`,
      `{ secretVersions(orgId: "${ann.orgId}", id: "${id}") { versions { value } } }`,
    ])
      expect(await call('read', { query })).toMatchObject({ json: { error: { code: 'FORBIDDEN' } } });
    expect((await call('list_secrets', {})).text).not.toContain('the-value-of-it');
    const former = await colleague(app, ann, 'admin');
    const theirs = await issueToken(app, { ...former, orgId: ann.orgId }, { scopes: ['read', 'secret:reveal'] });
    await ann.call('PATCH', `/v1/orgs/${ann.orgId}/members/${former.userId}`, { role: 'viewer' });
    expect(await valueBy(QUERY, theirs.plaintext_token)).toBe(false);
    // nor one of another workspace than that of the address
    const { body } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
      organization_id: ann.orgId,
      name: 'Sealed off',
    });
    const theirSecret = await ann.call<{ secret_id: string }>('POST', `/v1/orgs/${ann.orgId}/secrets`, {
      name: 'elsewhere',
      secret_type: 'api_key',
      scope: 'workspace',
      workspace_id: body.workspace_id,
      value: { key: 'the-value-of-it' },
    });
    expect(theirSecret.status).toBe(201);
    const here = await open(`${QUERY}&workspace=${ann.workspaceId}`, named);
    const answer = await here.call('get_secret', { secret_id: theirSecret.body.secret_id, include_value: true });
    expect([answer.isError, answer.text.includes('the-value-of-it')]).toEqual([true, false]);
  });
});
