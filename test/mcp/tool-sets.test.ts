import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withheldIn } from '../../src/mcp/open-operations.ts';
import { withoutSecrets } from '../../src/mcp/set-operations.ts';
import { MAX_IN_SET, MAX_TOOLS, operationsOfSets, TOOL_SETS } from '../../src/mcp/tool-sets.ts';
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
const refusalOf = async (url: string) => {
  const answer = await app.server.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    payload: '{}',
  });
  return [answer.statusCode, answer.json<{ error: string; message: string }>()];
};
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
      Object.entries(TOOL_SETS).map(async ([set, names]) => {
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
    expect(() => operationsOfSets(Object.keys(TOOL_SETS).join(','))).toThrow(/at most 40/);
    expect(operationsOfSets('secrets,secrets, members')).toHaveLength(16);
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
    properties: { secret_id: expect.any(Object) },
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
  expect(await namesOf('tools=deployments&workspace=ws_of_nobody')).toEqual([]);
});

test('options that there are not are refused, and say what there is', async () => {
  expect(await refusalOf('/mcp?tools=secrets,keys')).toEqual([
    400,
    expect.objectContaining({
      error: 'INVALID_REQUEST',
      message: "There is no set 'keys'. The sets are: activity, deployments, files, members, models, secrets, tools.",
    }),
  ]);
  for (const query of [
    'tools=',
    'tools=constructor',
    'tools=secrets&tools=files',
    'workspace=ws_1',
    'tools=secrets&workspace=',
    'tool=secrets',
  ])
    expect((await refusalOf(`/mcp?${query}`))[0], query).toBe(400);
  expect((await refusalOf(`/mcp/w/${ann.workspaceId}?tools=secrets`))[0]).toBe(400);
});
