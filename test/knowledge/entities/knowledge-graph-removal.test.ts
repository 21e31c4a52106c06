import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { type Person, register } from '../../support/person.ts';
import { logQueries, type QueryLog } from '../../support/query-log.ts';
import { createGraph, type Graph } from './graph.ts';

/** With the hub, more than two statements remove. */
const OTHERS = 10_000;

let app: TestApp;
let log: QueryLog;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
  log = logQueries(app.database.pool);
});
afterAll(() => app.close());

/** A graph of more entities than one statement removes, all with a relation to one of them, and with a memory. */
async function bigGraph(who: Person, namespaceId?: string): Promise<Graph> {
  const graph = await createGraph(app, who, namespaceId);
  const { entity_id: hub } = await graph.entity('Hub');
  await graph.memory('About the hub.', [hub]);
  await fill(
    app,
    `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, identity_key)
      select 'ent_' || lpad(n::text, 20, '0') || right($1, 6), org_id, workspace_id, app_id, namespace_id, 'n' || n,
        n::text
      from entities, generate_series(1, ${OTHERS}) n where id = $1`,
    [hub],
  );
  await fill(
    app,
    `insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type)
      select 'rel_' || substr(id, 5), org_id, workspace_id, app_id, namespace_id, $1, id, 'has'
      from entities where app_id = $2 and id <> $1`,
    [hub, graph.appId],
  );
  // PostgreSQL keeps the plans of foreign keys, and those for an empty table read all of it for each entity
  await fill(app, 'analyze entities, entity_relations, memory_entities');
  return graph;
}

/** How many entities, relations and memories an app has. */
async function left({ appId }: Graph): Promise<number[]> {
  const { entity, entityRelation, memory } = app.database.prisma;
  const where = { appId };
  return Promise.all([entity.count({ where }), entityRelation.count({ where }), memory.count({ where })]);
}

/** How many statements removed entities while something ran. */
async function parts(work: () => Promise<unknown>): Promise<number> {
  return (await log.during(work)).filter((text) => text.startsWith('delete from entities ')).length;
}

test('an app and a namespace are deleted with a large graph in parts, and others stay', async () => {
  const who = await register(app, { name: 'ann' });
  const { body: space } = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Two' });
  const [ofApp, inSpace, other] = [
    await bigGraph(who),
    await bigGraph(who, space.namespace_id),
    await createGraph(app, who),
  ];
  await other.entity('stays');
  for (const [graph, url] of [
    [ofApp, `${who.home}/apps/${ofApp.appId}`],
    [inSpace, `${who.home}/namespaces/${space.namespace_id}`],
  ] as const) {
    expect(await left(graph)).toEqual([OTHERS + 1, OTHERS, 1]);
    let status = 0;
    const statements = await parts(async () => {
      ({ status } = await who.call('DELETE', url));
    });
    expect([status, statements]).toEqual([204, 3]);
    expect(await left(graph)).toEqual([0, 0, 0]);
  }
  expect(await left(other)).toEqual([1, 0, 0]);
});

test('a workspace that ends for good loses a large graph in parts', async () => {
  const [who, other] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  const [graph, kept] = [await bigGraph(who), await createGraph(app, other)];
  await kept.entity('stays');
  const { prisma } = app.database;
  const deleted = (days: number) => ({ deletedAt: new Date(Date.now() - days * 24 * 3_600_000) });
  await prisma.workspace.update({ where: { id: other.workspaceId }, data: deleted(29) });
  await prisma.workspace.update({ where: { id: who.workspaceId }, data: deleted(31) });
  expect(await parts(() => app.retention.run())).toBe(3);
  expect(await left(graph)).toEqual([0, 0, 0]);
  expect(await left(kept)).toEqual([1, 0, 0]);
  expect(await prisma.workspace.findUnique({ where: { id: who.workspaceId } })).toBeNull();
});
