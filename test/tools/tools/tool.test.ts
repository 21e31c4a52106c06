import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { issueToken } from '../../support/tokens.ts';

type Tool = RestBody<ToolFragment>;
interface Page {
  tools: Tool[];
  total: number;
  has_more: boolean;
  next_cursor: string | null;
}

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const toolsOf = ({ orgId }: { orgId: string }) => `/v1/orgs/${orgId}/tools`;
let count = 0;
const bodyOf = (more: object = {}) => ({ name: 'A tool', slug: `tool-${++count}`, description: 'It helps.', ...more });

async function newTool(owner: Person, more: object = {}): Promise<Tool & { url: string }> {
  const { status, body } = await owner.call<Tool>('POST', toolsOf(owner), bodyOf(more));
  expect(status, JSON.stringify(body)).toBe(201);
  return { ...body, url: `${toolsOf(owner)}/${body.tool_id}` };
}
const list = async (owner: Person, query = '') => (await owner.call<Page>('GET', `${toolsOf(owner)}${query}`)).body;
const slugs = ({ tools }: Page) => tools.map(({ slug }) => slug);
const BUILT_IN = [
  'sendgrid',
  'cloudflare',
  'pagerduty',
  'asana',
  'gitlab',
  'google-calendar',
  'airtable',
  'hubspot',
  'anthropic',
  'openai',
  'discord',
  'jira',
  'linear',
  'stripe',
  'data-transform',
  'rest-countries',
  'wikipedia',
  'open-meteo',
  'notion',
  'gmail',
  'google-drive',
  'slack',
  'github',
  'http-request',
];

describe('a new tool', () => {
  test('has the defaults of everything that it does not say', async () => {
    const owner = await register(app);
    const { url, ...tool } = await newTool(owner, { slug: 'plain' });
    expect(tool).toEqual({
      tool_id: expect.stringMatching(/^tool_[0-9A-Z]{26}$/),
      name: 'A tool',
      slug: 'plain',
      description: 'It helps.',
      short_description: null,
      category: 'custom',
      version: '1.0.0',
      status: 'active',
      icon_url: null,
      documentation_url: null,
      connection_service_name: null,
      author: null,
      tags: [],
      supported_actions: [],
      supported_step_types: [],
      is_builtin: false,
      config_schema: [],
      credential_schema: [],
      action_schemas: [],
      mcp_functions: [],
      custom_action_type: 'none',
      is_mcp_compatible: false,
      current_schema_version: 1,
      min_schema_version: 1,
      schema_changelog: {},
      supports_connection: false,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await owner.call('GET', url)).body).toEqual(tool);
    expect((await owner.call('GET', `${toolsOf(owner)}/slug/plain`)).body).toEqual(tool);
    const [event] = await app.database.prisma.event.findMany({ where: { resourceId: tool.tool_id } });
    expect(event).toMatchObject({ type: 'tool.created', orgId: owner.orgId, workspaceId: null });
    const records = await app.database.prisma.activity.findMany({
      where: { resourceId: tool.tool_id, action: 'create' },
    });
    expect(records).toMatchObject([{ resourceType: 'tool', metadata: { slug: 'plain' }, userId: owner.userId }]);
  });

  test('has a slug that no other has, also no built-in one', async () => {
    const owner = await register(app);
    const first = await newTool(owner, { slug: 'taken' });
    const refused = (slug: string, resource_id: string) => ({
      status: 409,
      body: {
        error: 'RESOURCE_ALREADY_EXISTS',
        details: { resource_type: 'tool', field: 'slug', value: slug, resource_id },
      },
    });
    expect(await owner.call('POST', toolsOf(owner), bodyOf({ slug: 'taken' }))).toMatchObject(
      refused('taken', first.tool_id),
    );
    const github = (await owner.call<Tool>('GET', `${toolsOf(owner)}/slug/github`)).body;
    expect(await owner.call('POST', toolsOf(owner), bodyOf({ slug: 'github' }))).toMatchObject(
      refused('github', github.tool_id),
    );
    const second = await newTool(owner);
    expect(await owner.call('PUT', second.url, { slug: 'taken' })).toMatchObject(refused('taken', first.tool_id));
    expect((await owner.call('PUT', first.url, { slug: 'taken' })).status).toBe(200);
    // another organization has its own
    expect((await newTool(await register(app), { slug: 'taken' })).slug).toBe('taken');
    const both = ['x', 'y'].map(() => owner.call('POST', toolsOf(owner), bodyOf({ slug: 'at-once' })));
    expect((await Promise.all(both)).map(({ status }) => status)).toEqual(expect.arrayContaining([201, 409]));
  });

  test('is refused with the place of each entry that is wrong', async () => {
    const owner = await register(app);
    const wrong = {
      slug: 'Not A Slug',
      config_schema: [{ name: 'ok' }, { display_name: 'nameless' }, { name: 'b', required: 'yes', type: 'No Word' }],
      credential_schema: [{ name: 'login', type: 'oauth2', token_url: 'ftp://x', scopes: [5] }],
      action_schemas: [{ name: 'run', parameters: [{ name: 'p', type: 'mystery' }], method: 'BREW' }],
      mcp_functions: [{ name: 'f', input_schema: 'none' }, 7],
      status: 'gone',
    };
    const { status, body } = await owner.call<{ detail: { loc: unknown[]; type: string; msg: string }[] }>(
      'POST',
      toolsOf(owner),
      bodyOf(wrong),
    );
    expect(status).toBe(422);
    expect(body.detail.map(({ loc, type }) => `${loc.join('.')} ${type}`).sort()).toEqual(
      [
        'body.slug string_pattern_mismatch',
        'body.status literal_error',
        'body.config_schema.1.name missing',
        'body.config_schema.2.required bool_type',
        'body.config_schema.2.type string_pattern_mismatch',
        'body.credential_schema.0.authorization_url missing',
        'body.credential_schema.0.token_url string_pattern_mismatch',
        'body.credential_schema.0.scopes.0 string_type',
        'body.action_schemas.0.parameters.0.type literal_error',
        'body.action_schemas.0.method literal_error',
        'body.mcp_functions.0.input_schema dict_type',
        'body.mcp_functions.1 dict_type',
      ].sort(),
    );
    const twice = await owner.call('POST', toolsOf(owner), bodyOf({ config_schema: [{ name: 'a' }, { name: 'a' }] }));
    expect(twice).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'config_schema', 1, 'name'] }] } });
    for (const [size, field] of [
      [101, { name: 'n' }],
      [1, { name: 'n', description: 'x'.repeat(4_001) }],
      [1, { name: 'n', default: 'x'.repeat(40_000) }],
      [100, { name: 'n', default: 'x'.repeat(4_000) }],
    ] as const) {
      const config_schema = Array.from({ length: size }, (_, n) => ({ ...field, name: `n${n}` }));
      expect((await owner.call('POST', toolsOf(owner), bodyOf({ config_schema }))).status, String(size)).toBe(422);
    }
  });
});

describe('a change', () => {
  test('of a config or action schema raises the version, with an entry in the changelog; others do not', async () => {
    const owner = await register(app);
    const a = { name: 'a', type: 'string' };
    const tool = await newTool(owner, { config_schema: [a], action_schemas: [{ name: 'get' }] });
    const put = async (body: object) => (await owner.call<Tool>('PUT', tool.url, body)).body;
    expect(await put({ name: 'Renamed', config_schema: [{ type: 'string', name: 'a' }] })).toMatchObject({
      name: 'Renamed',
      current_schema_version: 1,
      schema_changelog: {},
    });
    expect(await put({ credential_schema: [{ name: 'key', type: 'secret' }] })).toMatchObject({
      current_schema_version: 1,
    });
    expect(await put({ config_schema: [{ ...a, required: true }, { name: 'b' }] })).toMatchObject({
      current_schema_version: 2,
      schema_changelog: { 2: 'Fields: added b; changed a.' },
    });
    expect(
      await put({ action_schemas: [{ name: 'set' }], schema_changelog: { 2: 'More fields.', 3: 'It sets.' } }),
    ).toMatchObject({
      current_schema_version: 3,
      schema_changelog: { 2: 'More fields.', 3: 'It sets.' },
    });
    expect(await put({ config_schema: [], action_schemas: [], min_schema_version: 4 })).toMatchObject({
      current_schema_version: 4,
      min_schema_version: 4,
      schema_changelog: { 2: 'More fields.', 3: 'It sets.', 4: 'Fields: removed a, b. Actions: removed set.' },
    });
    expect(await owner.call('PUT', tool.url, { min_schema_version: 5 })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'min_schema_version'] }] },
    });
    expect(await owner.call('PUT', tool.url, { schema_changelog: { 5: 'Of the future.' } })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'schema_changelog', '5'] }] },
    });
    const at4 = await app.database.prisma.activity.findMany({
      where: { resourceId: tool.tool_id, action: 'update', success: true },
      orderBy: { id: 'asc' },
    });
    expect(at4.at(-1)?.metadata).toEqual({
      fields: ['configSchema', 'actionSchemas', 'minSchemaVersion'],
      schema_version: 4,
    });
  });

  test('of the changelog corrects what it names, and takes nothing from the past', async () => {
    const owner = await register(app);
    const tool = await newTool(owner);
    const put = async (body: object) => (await owner.call<Tool>('PUT', tool.url, body)).body.schema_changelog;
    await put({ config_schema: [{ name: 'a' }] });
    await put({ config_schema: [{ name: 'b' }] });
    const third = await put({ config_schema: [{ name: 'c' }], schema_changelog: { 4: 'Only this line.' } });
    expect(third).toEqual({
      2: 'Fields: added a.',
      3: 'Fields: added b; removed a.',
      4: 'Only this line.',
    });
    expect(await put({ schema_changelog: { 2: 'The first field.', 1: 'The beginning.' } })).toEqual({
      ...(third as object),
      1: 'The beginning.',
      2: 'The first field.',
    });
    expect(await put({ schema_changelog: {} })).toEqual({
      ...(third as object),
      1: 'The beginning.',
      2: 'The first field.',
    });
  });

  test('of two at once that change the schema: each makes a version of its own', async () => {
    const owner = await register(app);
    const tool = await newTool(owner);
    const names = ['a', 'b', 'c', 'd'];
    const answers = await Promise.all(
      names.map((name) => owner.call<Tool>('PUT', tool.url, { config_schema: [{ name }] })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const after = (await owner.call<Tool>('GET', tool.url)).body;
    expect(after.current_schema_version).toBe(5);
    expect(Object.keys(after.schema_changelog as object)).toEqual(['2', '3', '4', '5']);
  });

  test('of the status goes forward: active and beta and back, deprecated; and to disabled and back', async () => {
    const owner = await register(app);
    const tool = await newTool(owner);
    const move = async (status: string) => {
      const { body, status: code } = await owner.call<{ details?: { reason: string } }>('PUT', tool.url, { status });
      return code === 200 ? 'moved' : body.details?.reason;
    };
    const moves = ['beta', 'active', 'active', 'deprecated', 'active', 'beta', 'disabled', 'deprecated', 'active'];
    const answers: unknown[] = [];
    for (const status of moves) answers.push(await move(status));
    const no = 'invalid_status';
    expect(answers).toEqual(['moved', 'moved', 'moved', 'moved', no, no, 'moved', 'moved', no]);
  });

  test('that deletes a tool frees its slug, and is refused while it is used and for a built-in one', async () => {
    const owner = await register(app);
    const tool = await newTool(owner);
    const instance = { tool_id: tool.tool_id, name: 'Ours', configuration: {} };
    const made = await owner.call<{ instance_id: string }>('POST', `${owner.home}/tool-instances`, instance);
    const { instance_id: resource_id } = made.body;
    expect(await owner.call('DELETE', tool.url)).toMatchObject({
      status: 409,
      body: {
        details: {
          resource_type: 'tool',
          resource_id: tool.tool_id,
          reason: 'in_use',
          references: [{ resource_type: 'tool_instance', resource_id, workspace_id: owner.workspaceId }],
        },
      },
    });
    await owner.call('DELETE', `${owner.home}/tool-instances/${resource_id}`);
    const editor = await colleague(app, owner, 'editor');
    expect((await editor.call('DELETE', tool.url)).status).toBe(403);
    expect((await owner.call('DELETE', tool.url)).status).toBe(204);
    expect((await owner.call('GET', tool.url)).status).toBe(404);
    expect((await owner.call('DELETE', tool.url)).status).toBe(404);
    expect((await eventsOf(app, String(tool.tool_id))).at(-1)).toBe('tool.deleted');
    expect((await newTool(owner, { slug: tool.slug })).slug).toBe(tool.slug);
    const github = (await owner.call<Tool>('GET', `${toolsOf(owner)}/slug/github`)).body;
    expect(await owner.call('DELETE', `${toolsOf(owner)}/${github.tool_id}`)).toMatchObject({
      status: 409,
      body: { details: { reason: 'builtin_tool' } },
    });
  });

  test('of a built-in tool is refused, and so is one of another organization or below a foreign address', async () => {
    const owner = await register(app);
    const github = (await owner.call<Tool>('GET', `${toolsOf(owner)}/slug/github`)).body;
    expect(await owner.call('PUT', `${toolsOf(owner)}/${github.tool_id}`, { name: 'Mine' })).toMatchObject({
      status: 409,
      body: {
        error: 'RESOURCE_CONFLICT',
        details: { resource_type: 'tool', resource_id: github.tool_id, reason: 'builtin_tool' },
      },
    });
    const other = await newTool(await register(app));
    expect((await owner.call('PUT', `${toolsOf(owner)}/${other.tool_id}`, { name: 'Mine' })).status).toBe(404);
    expect((await owner.call('GET', `${toolsOf(owner)}/${other.tool_id}`)).status).toBe(404);
    expect((await owner.call('GET', `${toolsOf(owner)}/slug/nothing-has-it`)).body).toMatchObject({
      details: { resource_type: 'tool', resource_id: 'nothing-has-it' },
    });
  });
});

describe('the catalogue', () => {
  test("has an organization's own tools, newest first, then the built-in ones, over pages of any size", async () => {
    const owner = await register(app);
    const own = [await newTool(owner), await newTool(owner), await newTool(owner)].map(({ slug }) => slug).reverse();
    const wanted = [...own, ...BUILT_IN];
    const whole = await list(owner);
    expect({ slugs: slugs(whole), total: whole.total, has_more: whole.has_more }).toEqual({
      slugs: wanted,
      total: wanted.length,
      has_more: false,
    });
    for (const size of [1, 2, 3, 4, 12]) {
      const found: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Page = await list(owner, `?limit=${size}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
        expect(page.total).toBe(wanted.length);
        found.push(...slugs(page));
        cursor = page.next_cursor;
      }
      expect(found, `by ${size}`).toEqual(wanted);
    }
  });

  test('is read with one statement, the number of all with it', async () => {
    const owner = await register(app);
    await newTool(owner);
    await list(owner);
    const sent = await logQueries(app.database.pool).during(() => list(owner));
    const statements = sent.filter((text) => text.includes('from tools'));
    expect(statements).toHaveLength(1);
  });

  test('is filtered', async () => {
    const owner = await register(app);
    const crm = await newTool(owner, { category: 'crm', status: 'beta' });
    const off = await newTool(owner, { category: 'crm' });
    await owner.call('PUT', off.url, { status: 'disabled' });
    expect(slugs(await list(owner, '?category=crm'))).toEqual([crm.slug, 'hubspot']);
    const all = [off.slug, crm.slug, 'hubspot'];
    expect(slugs(await list(owner, '?category=crm&include_disabled=true'))).toEqual(all);
    expect(slugs(await list(owner, '?status=disabled'))).toEqual([off.slug]);
    expect(slugs(await list(owner, '?status=beta'))).toEqual([crm.slug]);
    expect(slugs(await list(owner, '?category=storage'))).toEqual(['google-drive']);
    expect(await list(owner, '?category=custom')).toMatchObject({ tools: [], total: 0 });
    expect(slugs(await list(owner, `?workspace_id=${owner.workspaceId}`))).toEqual([crm.slug, ...BUILT_IN]);
    const foreign = (await register(app)).workspaceId;
    for (const workspace of [foreign, 'ws_unknown'])
      expect(await owner.call('GET', `${toolsOf(owner)}?workspace_id=${workspace}`)).toMatchObject({
        status: 404,
        body: { details: { resource_type: 'workspace', resource_id: workspace } },
      });
  });

  test.each([
    // one typing error away is another tool
    ['github', ['gitlab', 'github']],
    ['GitHub', ['gitlab', 'github']],
    ['githb', ['gitlab', 'github']],
    ['notoin', ['notion']],
    ['slakc', ['slack']],
    ['gogle drvie', ['google-drive']],
    ['wether', ['open-meteo']],
    ['encyclop', ['wikipedia']],
    ['Zanzibar', []],
    ['100%', []],
    ['_', []],
  ])('is searched: %s', async (text, wanted) => {
    const owner = await register(app);
    for (const name of ['search', 'q'])
      expect(slugs(await list(owner, `?${name}=${encodeURIComponent(text)}`))).toEqual(wanted);
  });

  test('is searched by the index of trigrams, in slugs, names, descriptions and tags', async () => {
    const owner = await register(app);
    const tool = await newTool(owner, {
      name: 'Quillon',
      short_description: 'Varnish for parquet',
      description: 'Wombats are welcome.',
      tags: ['xylophone'],
    });
    for (const text of ['quilon', 'parqet', 'wombts', 'xylofone', 'loph', tool.slug])
      expect(slugs(await list(owner, `?search=${text}`)), text).toContain(tool.slug);
    const client = await app.database.pool.connect();
    try {
      await client.query('begin'); // a pooler would give the session to others
      await client.query('set local enable_seqscan = off');
      const text = 'tool_search_text(name, slug, short_description, description, tags)';
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain select 1 from tools where ${text} like '%quil%' or 'quilon' <% ${text}`,
      );
      expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('tools_search');
      const threshold = await client.query('show pg_trgm.word_similarity_threshold');
      expect(threshold.rows).toEqual([{ 'pg_trgm.word_similarity_threshold': '0.4' }]);
    } finally {
      client.release(true);
    }
  });
});

describe('over GraphQL', () => {
  test('tools are below their organization and nodes, built-in ones in the organization of the caller', async () => {
    const owner = await register(app);
    const tool = await newTool(owner);
    const github = (await owner.call<Tool>('GET', `${toolsOf(owner)}/slug/github`)).body;
    const query = `query ($org: ID!, $own: ID!, $builtIn: ID!) {
      organization(id: $org) { tools(first: 1) { totalCount nodes { slug isBuiltin orgId } } }
      own: node(id: $own) { ... on Tool { slug orgId organization { id } createdByUser { id } } }
      builtIn: node(id: $builtIn) { ... on Tool { slug orgId isBuiltin createdBy } }
      toolBySlug(orgId: $org, slug: "github") { id }
      tools(orgId: $org, search: "githb", first: 2) { nodes { slug } } }`;
    const variables = { org: owner.orgId, own: tool.tool_id, builtIn: github.tool_id };
    const { body } = await owner.call('POST', '/graphql', { query, variables });
    const { orgId } = owner;
    expect(body).toEqual({
      data: {
        organization: {
          tools: { totalCount: BUILT_IN.length + 1, nodes: [{ slug: tool.slug, isBuiltin: false, orgId }] },
        },
        own: { slug: tool.slug, orgId, organization: { id: orgId }, createdByUser: { id: owner.userId } },
        builtIn: { slug: 'github', orgId, isBuiltin: true, createdBy: null },
        toolBySlug: { id: github.tool_id },
        tools: { nodes: [{ slug: 'gitlab' }, { slug: 'github' }] },
      },
    });
  });
});

describe('what a tool says of addresses, while its instances have credentials', () => {
  const run = { name: 'run', method: 'GET', url_template: '{{base}}/things' };
  const base = { name: 'base', type: 'string', default: 'https://good.test' };
  const key = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } };
  const oauth = {
    name: 'oauth',
    type: 'oauth2',
    authorization_url: 'https://good.test/a',
    token_url: 'https://good.test/t',
  };
  const lists = { config_schema: [base], credential_schema: [key], action_schemas: [run, { ...run, name: 'more' }] };
  const needsReveal = { status: 403, body: { details: { required_permission: 'secret:reveal' } } };
  const newInstance = async (person: Person, tool_id: string, more: object) => {
    const url = `${person.home}/tool-instances`;
    const made = await person.call<{ instance_id: string }>('POST', url, { tool_id, name: 'Ours', ...more });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    return made.body.instance_id;
  };
  const keyed = { configuration: { api_key: 'KEPT' }, auth_mode: 'api_key' };
  /** The same person, with a token that may change tools, and not see secrets. */
  const without = async (owner: Person) => {
    const permissions = ['tool:read', 'tool:update'];
    return caller(app, { ...owner, accessToken: (await issueToken(app, owner, { permissions })).plaintext_token });
  };

  test('changes only by who may see secrets, where the credentials are those of others', async () => {
    const owner = await register(app);
    const { orgId, workspaceId } = owner;
    const bob = caller(app, { ...(await colleague(app, owner, 'member')), orgId, workspaceId });
    const { tool_id, url } = await newTool(owner, lists);
    const token = await without(owner);
    const put = (body: object, by = token) => by.call<Tool>('PUT', url, body);
    // nobody's credential goes anywhere yet, and one's own goes where one wants
    expect(
      (await put({ action_schemas: lists.action_schemas.map((one) => ({ ...one, timeout_seconds: 9 })) })).status,
    ).toBe(200);
    await newInstance(owner, tool_id, keyed);
    expect((await put(lists)).status).toBe(200);
    await newInstance(bob, tool_id, keyed);
    for (const changed of [
      { action_schemas: [{ ...run, url_template: 'https://evil.test/stolen' }] },
      { action_schemas: [...lists.action_schemas, { ...run, name: 'third' }] },
      { config_schema: [{ ...base, default: 'https://evil.test' }] },
      { credential_schema: [{ ...key, placement: { in: 'query', name: 'key' } }] },
    ])
      expect(await put({ name: 'Renamed', ...changed }), JSON.stringify(changed)).toMatchObject(needsReveal);
    expect((await owner.call<Tool>('GET', url)).body).toMatchObject({ name: 'A tool', ...lists });
    // what is only read, and what sends less
    const described = {
      config_schema: [{ ...base, display_name: 'Base' }],
      action_schemas: [{ ...run, description: 'x' }],
    };
    expect((await put({ name: 'Renamed', ...described })).status).toBe(200);
    expect((await put({ action_schemas: [{ ...run, url_template: 'https://new.test' }] }, owner)).status).toBe(200);
  });

  test('a credential is of who filled it in, also in an instance of somebody else', async () => {
    const owner = await register(app);
    const { orgId, workspaceId } = owner;
    const bob = caller(app, { ...(await colleague(app, owner, 'admin')), orgId, workspaceId });
    const token = await without(owner);
    const { tool_id, url } = await newTool(owner, lists);
    const instance_id = await newInstance(owner, tool_id, keyed);
    const evil = { action_schemas: [{ ...run, url_template: 'https://evil.test/stolen' }] };
    expect((await token.call('PUT', url, evil)).status).toBe(200);
    const filled = await bob.call('PUT', `${owner.home}/tool-instances/${instance_id}`, {
      configuration: { api_key: 'OF BOB' },
    });
    expect(filled.status).toBe(200);
    expect(await token.call('PUT', url, lists)).toMatchObject(needsReveal);
  });

  test('a connection counts as a credential, and a client secret as everybody’s', async () => {
    const owner = await register(app);
    const { orgId, workspaceId } = owner;
    const bob = caller(app, { ...(await colleague(app, owner, 'admin')), orgId, workspaceId });
    const token = await without(owner);
    const elsewhere = [{ ...oauth, token_url: 'https://evil.test/t' }];
    const { tool_id, url } = await newTool(owner, { credential_schema: [oauth], action_schemas: [] });
    const secret = { name: 'client', secret_type: 'oauth2', value: { client_secret: 's' } };
    await owner.call('POST', `/v1/orgs/${orgId}/secrets`, secret);
    const client = { client_id: 'c', client_secret_vault_id: 'secret://client' };
    const instance_id = await newInstance(owner, tool_id, { auth_mode: 'oauth2', connection_credentials: client });
    expect(await token.call('PUT', url, { credential_schema: elsewhere })).toMatchObject(needsReveal);
    // actions never see a client secret
    const actions = { action_schemas: [{ ...run, url_template: 'https://any.test' }] };
    expect((await token.call('PUT', url, actions)).status).toBe(200);
    const begun = await bob.call('POST', `${owner.home}/connections/oauth/initiate`, { tool_instance_id: instance_id });
    expect(begun.status, JSON.stringify(begun.body)).toBe(200);
    const evil = { action_schemas: [{ ...run, url_template: 'https://evil.test' }] };
    expect(await token.call('PUT', url, evil)).toMatchObject(needsReveal);
    expect((await bob.call('PUT', url, { credential_schema: elsewhere })).status).toBe(200);
  });
});
