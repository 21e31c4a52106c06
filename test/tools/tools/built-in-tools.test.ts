import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../../src/paths.ts';
import { faultsOf, readBuiltInTools, writeBuiltInTools } from '../../../src/tools/tools/built-in-tools.ts';
import { oauthServiceOf } from '../../../src/tools/tools/tool-shapes.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';

const dir = path.join(projectRoot, 'src', 'tools', 'tools', 'built-in');
const files = readdirSync(dir);

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test.each(files)('%s has the form of a tool, and its own name', (file) => {
  const tool = JSON.parse(readFileSync(path.join(dir, file), 'utf8')) as Record<string, unknown>;
  expect(faultsOf(tool)).toEqual([]);
  expect(file).toBe(`${tool.slug as string}.json`);
  for (const list of ['config_schema', 'credential_schema', 'action_schemas', 'mcp_functions']) {
    const names = ((tool[list] ?? []) as { name: string }[]).map(({ name }) => name);
    expect(names, list).toEqual([...new Set(names)]);
  }
  const actions = ((tool.action_schemas ?? []) as { name: string }[]).map(({ name }) => name);
  expect(tool.supported_actions ?? []).toEqual(actions);
});

test('a file that is wrong says where', () => {
  const [first] = readBuiltInTools();
  const action_schemas = [{ name: 'get', url_template: 'https://example.test/{{id}}' }];
  expect(faultsOf({ ...first, id: 'tool_1', surprise: 1, config_schema: [{ name: '?' }], action_schemas })).toEqual([
    'surprise: Extra inputs are not permitted',
    "id: String should match pattern '^tool_0{22}[0-9A-HJKMNP-TV-Z]{4}$'",
    expect.stringContaining('config_schema.0.name: String should match pattern'),
    expect.stringContaining('action_schemas.0.url_template: Value error, {{id}} names no parameter'),
  ]);
});

test('every OAuth service is called over https, and every tool that supports a connection says how', () => {
  const services = readBuiltInTools().flatMap((tool) => {
    const service = oauthServiceOf(tool.credential_schema as object[]);
    expect(tool.supports_connection, tool.slug).toBe((tool.credential_schema as object[]).length > 0);
    return service ? [[tool.slug, service] as const] : [];
  });
  const earlier = ['github', 'slack', 'google-drive', 'gmail', 'notion'];
  const later = ['linear', 'hubspot', 'airtable', 'google-calendar', 'gitlab', 'asana'];
  expect(services.map(([slug]) => slug)).toEqual([...earlier, ...later]);
  for (const [slug, { authorization_url, token_url, revocation_url, userinfo_url }] of services)
    for (const url of [authorization_url, token_url, revocation_url ?? token_url, userinfo_url ?? token_url])
      expect(new URL(url).protocol, slug).toBe('https:');
});

test('a start writes what differs, leaves the rest alone, and disables what is no more', async () => {
  const { prisma, pool } = app.database;
  const read = () => prisma.tool.findMany({ where: { orgId: null }, orderBy: { id: 'asc' } });
  const before = await read();
  expect(before.map(({ id }) => id)).toEqual(readBuiltInTools().map(({ id }) => id));
  await Promise.all([1, 2, 3].map(() => writeBuiltInTools(app.services.sql)));
  expect(await read()).toEqual(before);
  await pool.query(`update tools set name = 'Altered', tags = '{}' where slug = 'github' and org_id is null`);
  const old = 'tool_00000000000000000000000ZZZ';
  await prisma.tool.create({ data: { id: old, name: 'Old', slug: 'old', description: 'Of an earlier version.' } });
  await writeBuiltInTools(app.services.sql);
  const after = await read();
  const shown = (rows: typeof before) => rows.map(({ name, tags, slug, status }) => ({ name, tags, slug, status }));
  expect(shown(after.filter(({ id }) => id !== old))).toEqual(shown(before));
  expect(after.find(({ id }) => id === old)?.status).toBe('disabled');
  await prisma.tool.delete({ where: { id: old } });
});

test('nodes that start at once on a database without them write each once', async () => {
  const { prisma } = app.database;
  const ids = async () =>
    (await prisma.tool.findMany({ where: { orgId: null }, orderBy: { id: 'asc' } })).map(({ id }) => id);
  const before = await ids();
  for (let round = 0; round < 20; round++) {
    await prisma.tool.deleteMany({ where: { orgId: null } });
    await Promise.all(Array.from({ length: 6 }, () => writeBuiltInTools(app.services.sql)));
    expect(await ids()).toEqual(before);
  }
});

test('they are the same in every organization, and an own tool of a slug that came later comes first', async () => {
  const [one, two] = [await register(app), await register(app)];
  const of = async (owner: typeof one) =>
    (await owner.call<{ tools: object[] }>('GET', `/v1/orgs/${owner.orgId}/tools`)).body.tools;
  expect(await of(one)).toEqual(await of(two));
  const { id } = await app.database.prisma.tool.create({
    data: {
      id: 'tool_01M81B6EWGF6W861YYXF375G80',
      orgId: one.orgId,
      name: 'Own',
      slug: 'github',
      description: 'From before there was a built-in one.',
    },
  });
  const bySlug = async (owner: typeof one) =>
    (await owner.call<{ tool_id: string }>('GET', `/v1/orgs/${owner.orgId}/tools/slug/github`)).body.tool_id;
  expect([await bySlug(one), await bySlug(two)]).toEqual([id, 'tool_00000000000000000000000002']);
});
