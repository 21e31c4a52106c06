import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { issueToken } from '../../support/tokens.ts';
import { createGraph, type Graph, graphAt } from './graph.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const args = `orgId: $orgId, workspaceId: $workspaceId, appId: $appId, namespaceId: "default"`;
const header = '$orgId: ID!, $workspaceId: ID!, $appId: ID!';
const variables = ({ who, appId }: Graph, more: object = {}) => ({
  orgId: who.orgId,
  workspaceId: who.workspaceId,
  appId,
  ...more,
});

/** `relations { nodes { target { name relations { … } } } }`, this many levels. */
const walkOf = (levels: number, first: number): string =>
  levels === 0
    ? ''
    : `relations(first: ${first}) { nodes { relationType direction target { name ${walkOf(levels - 1, first)} } } }`;

/** A tree: each entity has `width` children, `levels` deep. */
async function tree(width: number, levels: number): Promise<{ graph: Graph; root: string }> {
  const graph = await createGraph(app);
  const root = (await graph.entity('root')).entity_id;
  let level = [root];
  for (let at = 1; at <= levels; at++) {
    const next: string[] = [];
    for (const [of, parent] of level.entries())
      for (let child = 0; child < width; child++) {
        const { entity_id: id } = await graph.entity(`${at} ${of} ${child}`);
        await graph.relate(parent, id, 'has');
        next.push(id);
      }
    level = next;
  }
  return { graph, root };
}

test('a front end walks the graph: each level costs the same few statements, however wide it is', async () => {
  const narrow = await tree(1, 3);
  const wide = await tree(4, 3);
  const log = logQueries(app.database.pool);
  const countOnce = async ({ graph, root }: typeof wide, levels: number) => {
    const query = `query ($id: ID!, ${header}) { entity(id: $id, ${args}) { name ${walkOf(levels, 6)} } }`;
    let answer: unknown;
    const statements = await log.by(async () => {
      answer = await graph.who.ask(query, variables(graph, { id: root }));
    });
    expect(answer).toMatchObject({ data: { entity: { name: 'root' } } });
    expect(JSON.stringify(answer)).not.toContain('errors');
    return statements.filter((text) => /from (?:entities|entity_relations|unnest)/.test(text)).length;
  };
  // a batch that is sent a moment early leaves its last row to the next: on a busy machine, not each time
  const count = async (of: typeof wide, levels: number) => {
    const counts = [];
    for (let n = 0; n < 5; n += 1) counts.push(await countOnce(of, levels));
    return Math.min(...counts);
  };
  const [one, two, three] = [await count(wide, 1), await count(wide, 2), await count(wide, 3)];
  expect([two - one, three - two]).toEqual([2, 2]);
  expect(await count(narrow, 3)).toBe(three);
});

test('relations are a list with pages and a total, in both directions', async () => {
  const { graph, root } = await tree(3, 1);
  const before = (await graph.entity('before')).entity_id;
  await graph.relate(before, root, 'owns');
  const query = `query ($id: ID!, $after: String, ${header}) { entity(id: $id, ${args}) { relations(first: 3,
    after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { direction targetName target { id } } } } }`;
  interface Relations {
    entity: {
      relations: {
        totalCount: number;
        pageInfo: { hasNextPage: boolean; endCursor: string | null };
        nodes: { direction: string; targetName: string; target: { id: string } }[];
      };
    };
  }
  const page = async (after: string | null) =>
    (await graph.who.ask<Relations>(query, variables(graph, { id: root, after }))).data.entity.relations;
  const first = await page(null);
  expect(first).toMatchObject({ totalCount: 4, pageInfo: { hasNextPage: true } });
  const second = await page(first.pageInfo.endCursor);
  expect(second).toMatchObject({ totalCount: 4, pageInfo: { hasNextPage: false, endCursor: null } });
  const seen = [...first.nodes, ...second.nodes].map(({ direction, targetName }) => `${direction} ${targetName}`);
  expect(seen).toEqual(['incoming before', 'outgoing 1 0 2', 'outgoing 1 0 1', 'outgoing 1 0 0']);
  expect(first.nodes[0]!.target.id).toBe(before);
});

test('a walk that asks for too much is refused before it starts', async () => {
  const { graph, root } = await tree(1, 1);
  const query = `query ($id: ID!, ${header}) { entity(id: $id, ${args}) { name ${walkOf(3, 50)} } }`;
  const answer = await graph.who.ask(query, variables(graph, { id: root }));
  expect(answer.errors?.[0]).toMatchObject({ message: expect.stringContaining('asks for more than 10000 objects') });
});

test('entities and memories are reached from their app, their namespace and each other', async () => {
  const graph = await createGraph(app);
  const { entity_id: id } = await graph.entity('Ada');
  const { memory_id } = await graph.memory('Something', [id]);
  await (await createGraph(app, graph.who)).entity('Of another app');
  const query = `query ($id: ID!, ${header}) {
    app(orgId: $orgId, workspaceId: $workspaceId, id: $appId) {
      entities { totalCount nodes { id } } memories { nodes { id } }
    }
    namespace(orgId: $orgId, workspaceId: $workspaceId, id: "default") {
      entities(entityType: "other") { totalCount nodes { name } } memories { totalCount }
    }
    node(id: $id) { ... on Entity { name app { id } namespace { slug } createdByUser { id }
      sourceMemories { id content entities { id } } } }
  }`;
  const { who, appId } = graph;
  expect(await who.ask(query, variables(graph, { id }))).toEqual({
    data: {
      app: { entities: { totalCount: 1, nodes: [{ id }] }, memories: { nodes: [{ id: memory_id }] } },
      namespace: {
        entities: { totalCount: 2, nodes: [{ name: 'Of another app' }, { name: 'Ada' }] },
        memories: { totalCount: 1 },
      },
      node: {
        name: 'Ada',
        app: { id: appId },
        namespace: { slug: 'default' },
        createdByUser: { id: who.userId },
        sourceMemories: [{ id: memory_id, content: 'Something', entities: [{ id }] }],
      },
    },
  });
});

test('a token that is restricted to a namespace or an app sees and changes nothing of others', async () => {
  const who = await register(app, { name: 'ann' });
  const { body: space } = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Two' });
  const graph = await createGraph(app, who);
  const elsewhere = graphAt(who, graph.appId, space.namespace_id);
  const here = (await graph.entity('here')).entity_id;
  const there = (await elsewhere.entity('there')).entity_id;
  const { headers } = await issueToken(app, who, { namespace_ids: [space.namespace_id] });
  const status = async (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) =>
    (await app.server.inject({ method, url, headers, ...(payload ? { payload } : {}) })).statusCode;
  expect([
    await status('GET', `${elsewhere.url}/entities/${there}`),
    await status('PUT', `${elsewhere.url}/entities/${there}`, { tags: ['x'] }),
    await status('GET', `${graph.url}/entities/${here}`),
    await status('PUT', `${graph.url}/entities/${here}`, { tags: ['x'] }),
    await status('POST', `${graph.url}/entities/${here}/traverse`),
    await status('POST', `${graph.url}/memories`, { content: 'x' }),
  ]).toEqual([200, 200, 403, 403, 403, 403]);
  const query = `query ($here: ID!, $there: ID!, ${header}) {
    app(orgId: $orgId, workspaceId: $workspaceId, id: $appId) { entities { totalCount nodes { id } } }
    here: node(id: $here) { id } there: node(id: $there) { id }
  }`;
  const answer = await app.server.inject({
    method: 'POST',
    url: '/graphql',
    headers,
    payload: { query, variables: variables(graph, { here, there }) },
  });
  expect(answer.json()).toEqual({
    data: { app: { entities: { totalCount: 1, nodes: [{ id: there }] } }, here: null, there: { id: there } },
  });
});
