import { afterAll, beforeAll, expect, test } from 'vitest';
import { SEARCH } from '../../../src/knowledge/entities/entity-search.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';
import { createGraph, type Entity, type Graph } from './graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Found extends Entity {
  score: number;
  matched_by: string;
}
interface Results {
  results: Found[];
}

const search = async ({ who, url }: Graph, query: string, more = '') => {
  const path = `${url}/entities/search?query=${encodeURIComponent(query)}${more}`;
  const { body } = await who.call<Results>('GET', path);
  return body.results;
};
const seen = (found: readonly Found[]) => found.map(({ name, matched_by }) => [name, matched_by]);

test('names are trimmed and composed on every way in, and are unique as they are stored', async () => {
  const graph = await createGraph(app);
  const { who, url } = graph;
  const zoe = await graph.entity('  Zoe\u0308\t Smith ', { aliases: [' Zo  ', 'Z'] });
  expect(zoe).toMatchObject({ name: 'Zoë Smith', aliases: ['Zo', 'Z'] });
  const taken = { status: 409, body: { details: { field: 'name', resource_id: zoe.entity_id } } };
  expect(await who.call('POST', `${url}/entities`, { name: 'Zoë Smith' })).toMatchObject(taken);
  const other = await graph.entity('Other');
  const put = (body: object) => who.call('PUT', `${url}/entities/${other.entity_id}`, body);
  expect(await put({ name: ' zoë  smith' })).toMatchObject(taken);
  expect(await put({ name: ' Eve ', aliases: ['\n Evi'] })).toMatchObject({ body: { name: 'Eve', aliases: ['Evi'] } });
  const blank = (loc: unknown[]) => ({ loc, msg: 'Value error, must not be blank', type: 'value_error' });
  expect(await put({ name: ' \t ', aliases: ['a', ' '] })).toMatchObject({
    status: 422,
    body: { detail: [blank(['body', 'name']), blank(['body', 'aliases', 1])] },
  });
  expect(await who.call('POST', `${url}/entities`, { name: ' ' })).toMatchObject({ status: 422 });
});

test('lists by name, alias, tag, external id and importance, ignoring case', async () => {
  const graph = await createGraph(app);
  const { who, url } = graph;
  await graph.entity('N77', {
    aliases: ['Seventy seven'],
    tags: ['Odd'],
    metadata: { external_id: 77 },
    importance: 1,
  });
  await graph.entity('N78', { aliases: ['N77'], tags: ['even'], metadata: { external_id: 'crm-78' } });
  const list = async (query: string) => {
    const { body } = await who.call<{ total: number; entities: Entity[] }>('GET', `${url}/entities?${query}`);
    expect(body.total).toBe(body.entities.length);
    return body.entities.map(({ name }) => name);
  };
  expect(await list('name=n77')).toEqual(['N77']);
  expect(await list('alias=n77')).toEqual(['N78']);
  expect(await list('tag=ODD')).toEqual(['N77']);
  expect(await list('external_id=77')).toEqual(['N77']);
  expect(await list('external_id=CRM-78&tag=even')).toEqual(['N78']);
  expect(await list('min_importance=0.8')).toEqual(['N77']);
  expect(await list('min_importance=0.1')).toEqual(['N78', 'N77']);
  expect(await list('tag=odd&alias=n77')).toEqual([]);
});

test('finds by name, external id, alias, tag, part and with typing errors, in this order', async () => {
  const graph = await createGraph(app);
  await graph.entity('Ada', { entity_type: 'person' });
  await graph.entity('Adam', { importance: 1 });
  await graph.entity('Countess', { aliases: ['ADA'] });
  await graph.entity('Language', { tags: ['ada'] });
  await graph.entity('Nevada');
  await graph.entity('Number', { metadata: { external_id: 'ada' }, importance: 0.1 });
  await graph.entity('Analytical Engine', { entity_type: 'product', aliases: ['Difference Machine'] });
  expect(seen(await search(graph, ' ADA '))).toEqual([
    ['Ada', 'name'],
    ['Number', 'external_id'],
    ['Adam', 'name_prefix'],
    ['Countess', 'alias'],
    ['Language', 'tag'],
    ['Nevada', 'part'],
  ]);
  const [first] = await search(graph, 'ada', '&limit=1');
  const { score, matched_by, ...entity } = first!;
  expect({ score, matched_by }).toEqual({ score: 1, matched_by: 'name' });
  expect(entity).toEqual(await graph.get(entity.entity_id));
  expect(seen(await search(graph, 'Analitical Engin'))).toEqual([['Analytical Engine', 'similar']]);
  expect(seen(await search(graph, 'diference machine'))).toEqual([['Analytical Engine', 'similar']]);
  expect(seen(await search(graph, 'diff'))).toEqual([['Analytical Engine', 'alias']]);
  expect(seen(await search(graph, 'ada', '&entity_type=person'))).toEqual([['Ada', 'name']]);
  expect(seen(await search(graph, 'e', '&tag=ADA'))).toEqual([]);
  expect(seen(await search(graph, 'lang', '&tag=ADA'))).toEqual([['Language', 'name_prefix']]);
  expect(seen(await search(graph, 'ada', '&min_importance=0.9'))).toEqual([['Adam', 'name_prefix']]);
  expect(await search(graph, '%')).toEqual([]);
  expect(await search(graph, 'nobody at all')).toEqual([]);
  const bad = ['query=%20%09', 'query=', 'query=ada&limit=101', 'query=ada&limit=0', `query=${'x'.repeat(256)}`, ''];
  for (const query of bad)
    expect((await graph.who.call('GET', `${graph.url}/entities/search?${query}`)).status).toBe(422);
});

test('finds names in scripts without ASCII letters, and nothing of another app, namespace or tenant', async () => {
  const graph = await createGraph(app);
  await graph.entity('北京大学', { aliases: ['Пекинский университет'] });
  expect(seen(await search(graph, '北京'))).toEqual([['北京大学', 'name_prefix']]);
  expect(seen(await search(graph, 'пекинский УНИВЕРСИТЕТ'))).toEqual([['北京大学', 'alias']]);
  const other = await createGraph(app, graph.who);
  const stranger = await createGraph(app);
  await other.entity('Pekin');
  expect(seen(await search(other, '北京大学'))).toEqual([]);
  expect(seen(await search(stranger, '北京大学'))).toEqual([]);
  const answer = await stranger.who.call('GET', `${graph.url}/entities/search?query=Pekin`);
  expect(answer.status).toBe(403);
});

test('among 20,000 entities each way of being found is read by an index, with its bound', async () => {
  const graph = await createGraph(app);
  const { entity_id: one, namespace_id: namespaceId } = await graph.entity('Analytical Engine', { tags: ['machine'] });
  const { pool } = app.database;
  await fill(
    app,
    `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, aliases, tags, metadata, identity_key)
      select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id,
        'Entity ' || n, array['Alias ' || n], array['bulk'], jsonb_build_object('external_id', 'crm-' || n), n::text
      from entities, generate_series(1, 20000) n where id = $1`,
    [one],
  );
  await fill(app, 'analyze entities');
  expect(seen(await search(graph, 'Entity 77', '&limit=2'))).toEqual([
    ['Entity 77', 'name'],
    ['Entity 770', 'name_prefix'],
  ]);
  expect(seen(await search(graph, 'alias 19999'))[0]).toEqual(['Entity 19999', 'alias']);
  expect(seen(await search(graph, 'crm-4242'))[0]).toEqual(['Entity 4242', 'external_id']);
  expect(seen(await search(graph, 'Anlytical Engine'))[0]).toEqual(['Analytical Engine', 'similar']);
  expect(await search(graph, 'bulk', '&limit=100')).toHaveLength(100);
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('set local plan_cache_mode = force_generic_plan');
    const values = [graph.who.orgId, graph.appId, namespaceId, 'Anlytical Engine', null, null, null, 20];
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({
      text: `explain (analyze, timing off, format json) ${SEARCH}`,
      values,
    });
    const nodes = nodesOf(rows[0]!['QUERY PLAN'][0].Plan);
    const reads = nodes.filter((node) => node['Relation Name'] === 'entities');
    expect(new Set(reads.map((node) => node['Node Type']))).toEqual(new Set(['Index Scan', 'Bitmap Heap Scan']));
    const indexes = new Set(nodes.map((node) => node['Index Name']).filter((name) => name?.startsWith('entities_')));
    for (const index of ['entities_name_key', 'entities_lookup_keys', 'entities_search_text'])
      expect(indexes).toContain(index);
    // what is read and does not fit is a small part of what there is
    const wasted = reads.map(
      (node) => (node['Rows Removed by Index Recheck'] ?? 0) + (node['Rows Removed by Filter'] ?? 0),
    );
    expect(Math.max(...wasted)).toBeLessThan(1_000);
  } finally {
    await client.query('rollback');
    client.release();
  }
});
