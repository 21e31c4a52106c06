import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { newId } from '../../src/kernel/ids.ts';
import { pageOf } from './common.ts';

interface Params {
  org: string;
  workspace: string;
  app: string;
  namespace: string;
  id: string;
}

interface EntityRow {
  entity_id: string;
  importance: number;
}

interface RelationRow {
  entity_id: string;
  target_entity_id: string;
}

/** A relation, seen from an entity of the level before. */
interface Edge {
  id: string;
  via: string;
  other: string;
  relation_type: string;
  direction: string;
}

interface Found {
  depth: number;
  relation_type: string;
  direction: string;
  via_entity_id: string;
}

const MAX_FOUND = 500;
const MAX_TOGETHER = 2_500;
const E = '/v1/orgs/:org/workspaces/:workspace/apps/:app/namespaces/:namespace/entities';

const COLUMNS = `e.id as entity_id, e.workspace_id, e.namespace_id, e.name, e.entity_type, e.description, e.aliases,
  array(select m.memory_id from memory_entities m where m.entity_id = e.id order by m.memory_id desc limit 100)
    as source_memory_ids,
  e.tags, e.importance, e.mention_count, e.last_referenced_at, e.metadata, e.is_indexed, e.created_at, e.updated_at`;
const PAGE = `select ${COLUMNS} from entities e where e.app_id = $1 and e.namespace_id = $2
  order by e.id desc limit $3`;
const TOTAL = 'select count(*)::int as n from entities e where e.app_id = $1 and e.namespace_id = $2';
const SOME = `select ${COLUMNS} from entities e where e.id = any($1) and e.app_id = $2 and e.namespace_id = $3`;
const edgesFrom = (own: string, other: string, direction: string) => `
  select r.id, r.${own} as via, r.${other} as other, r.relation_type, '${direction}' as direction
  from entity_relations r where r.${own} = any($1) and r.app_id = $2 and r.namespace_id = $3`;
const EDGES = `${edgesFrom('source_entity_id', 'target_entity_id', 'outgoing')}
  union all ${edgesFrom('target_entity_id', 'source_entity_id', 'incoming')} limit 20000`;
const IMPORTANCE = 'select id, importance from entities where id = any($1) and app_id = $2 and namespace_id = $3';
const seenFrom = (own: string, other: string, direction: string) => `(
  select r.id as relation_id, r.relation_type, '${direction}' as direction, r.${other} as target_entity_id,
    o.name as target_name, r.weight, r.metadata, r.created_at
  from entity_relations r join entities o on o.id = r.${other}
  where r.${own} = p.id order by r.id desc limit $2)`;
const NEWEST = `select p.id as entity_id, r.* from unnest($1::text[]) p(id) cross join lateral (
  select * from (${seenFrom('source_entity_id', 'target_entity_id', 'outgoing')}
    union all ${seenFrom('target_entity_id', 'source_entity_id', 'incoming')}) u
  order by relation_id desc limit $2) r`;

interface Import {
  entities: { key: string; name: string; entity_type: string; tags: string[] }[];
  relations: { source: { key: string }; target: { key: string }; relation_type: string; weight: number }[];
}

const UPSERT_ENTITIES = `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, entity_type, tags,
    identity_key)
  select id, $2, $3, $4, $5, name, type, tags, key
  from json_to_recordset($1) x(id text, name text, type text, tags text[], key text)
  on conflict (app_id, namespace_id, entity_type, identity_key) do update set tags = excluded.tags
  returning id, name`;
const UPSERT_RELATIONS = `with made as (
    insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
      relation_type, weight)
    select id, $2, $3, $4, $5, source, target, type, weight
    from json_to_recordset($1) x(id text, source text, target text, type text, weight float8)
    on conflict (source_entity_id, target_entity_id, relation_type) do update set weight = excluded.weight
    returning source_entity_id, target_entity_id)
  update entities e set mention_count = mention_count + m.n, last_referenced_at = now()
  from (select id, count(*) as n from (select source_entity_id as id from made union all
    select target_entity_id from made) u group by id) m where e.id = m.id`;

const MOVED = `select r.id, r.relation_type,
    case when r.source_entity_id = any($2) then $1 else r.source_entity_id end as source,
    case when r.target_entity_id = any($2) then $1 else r.target_entity_id end as target
  from entity_relations r where r.source_entity_id = any($2) or r.target_entity_id = any($2)`;
const END_RELATIONS = `with moved as (${MOVED}) delete from entity_relations e using (
    select m.id from (select m.*, row_number() over (partition by source, target, relation_type order by id) as n
      from moved m) m
    where m.source = m.target or m.n > 1 or exists (select from entity_relations k where k.source_entity_id = m.source
      and k.target_entity_id = m.target and k.relation_type = m.relation_type)) o
  where e.id = o.id`;
const MOVE_RELATIONS = `update entity_relations e set source_entity_id = r.source, target_entity_id = r.target
  from (${MOVED}) r where e.id = r.id`;
const MOVE_LINKS = `with linked as (
    insert into memory_entities (memory_id, entity_id, namespace_id, app_id)
    select distinct memory_id, $1, $4, $3 from memory_entities where entity_id = any($5) on conflict do nothing),
  led as (update entity_merges set entity_id = $1 where entity_id = any($5))
  insert into entity_merges (id, org_id, app_id, namespace_id, entity_id)
  select o, $2, $3, $4, $1 from unnest($5::text[]) o`;
const END_ENTITIES = 'delete from entities where id = any($1) returning name, aliases, mention_count';
const ADD_NAMES = `update entities set aliases = array(select distinct unnest(aliases || $2::text[])),
  mention_count = mention_count + $3, updated_at = now() where id = $1`;

/** The hand-written list and the breadth-first search of entities: one statement for each level and kind of row. */
export function addEntities(server: FastifyInstance, pool: Pool): void {
  const query = async <Row extends object>(name: string, text: string, values: unknown[]): Promise<Row[]> =>
    (await pool.query<Row>({ name, text, values })).rows;

  /** Gives entities their newest relations. */
  async function withRelations<Row extends EntityRow>(rows: readonly Row[]): Promise<object[]> {
    const limit = Math.min(200, Math.max(5, Math.floor(MAX_TOGETHER / rows.length)));
    const relations = new Map<string, object[]>(rows.map(({ entity_id }) => [entity_id, []]));
    for (const { entity_id, ...relation } of await query<RelationRow>('newest', NEWEST, [[...relations.keys()], limit]))
      relations.get(entity_id)!.push(relation);
    return rows.map((row) => ({ ...row, relations: relations.get(row.entity_id) }));
  }

  server.get<{ Params: Params; Querystring: { limit?: string } }>(E, async (request) => {
    const { app, namespace } = request.params;
    const limit = Number(request.query.limit ?? 100);
    const [page, total] = await Promise.all([
      query<EntityRow>('entities', PAGE, [app, namespace, limit + 1]),
      query<{ n: number }>('entities total', TOTAL, [app, namespace]),
    ]);
    const rows = await withRelations(page.slice(0, limit));
    const cursor = page.length > limit ? Buffer.from(page[limit - 1]!.entity_id).toString('base64url') : null;
    return { ...pageOf('entities', rows, limit, total[0]!.n, cursor), has_more: page.length > limit };
  });

  server.post<{ Params: Params; Body: Import }>(`${E}/import`, async ({ params, body }) => {
    const { org, workspace, app, namespace } = params;
    const place = [org, workspace, app, namespace];
    const client = await pool.connect();
    try {
      await client.query('begin');
      const rows = body.entities.map(({ name, entity_type: type, tags }) => {
        const key = createHash('sha256')
          .update(JSON.stringify([name.toLowerCase(), null]))
          .digest('base64url');
        return { id: newId('entity'), name, type, tags, key };
      });
      const written = await client.query<{ id: string; name: string }>({
        name: 'upsert entities',
        text: UPSERT_ENTITIES,
        values: [JSON.stringify(rows), ...place],
      });
      const byName = new Map(written.rows.map(({ id, name }) => [name, id]));
      const byKey = new Map(body.entities.map(({ key, name }) => [key, byName.get(name)!]));
      const relations = body.relations.map(({ source, target, relation_type: type, weight }) => ({
        id: newId('entity_relation'),
        source: byKey.get(source.key),
        target: byKey.get(target.key),
        type,
        weight,
      }));
      await client.query({
        name: 'upsert relations',
        text: UPSERT_RELATIONS,
        values: [JSON.stringify(relations), ...place],
      });
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
    return { entities: body.entities.length, relations: body.relations.length };
  });

  server.post<{ Params: Params; Body: { merged_entity_ids: string[] } }>(`${E}/:id/merge`, async ({ params, body }) => {
    const { org, app, namespace, id } = params;
    const others = body.merged_entity_ids;
    const client = await pool.connect();
    const write = <Row extends object>(name: string, text: string, values: unknown[]) =>
      client.query<Row>({ name, text, values });
    try {
      await client.query('begin');
      await write('lock merged', 'select id from entities where id = any($1) order by id for update', [
        [id, ...others],
      ]);
      await write('end relations', END_RELATIONS, [id, others]);
      await write('move relations', MOVE_RELATIONS, [id, others]);
      await write('move links', MOVE_LINKS, [id, org, app, namespace, others]);
      const ended = await write<{ name: string; aliases: string[]; mention_count: number }>(
        'end entities',
        END_ENTITIES,
        [others],
      );
      const names = ended.rows.flatMap(({ name, aliases }) => [name, ...aliases]);
      const mentions = ended.rows.reduce((sum, row) => sum + row.mention_count, 0);
      await write('add names', ADD_NAMES, [id, names, mentions]);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
    const [entity] = await withRelations(await query<EntityRow>('some', SOME, [[id], app, namespace]));
    return entity;
  });

  server.post<{ Params: Params; Querystring: { depth?: string } }>(`${E}/:id/traverse`, async (request, reply) => {
    const { app, namespace, id } = request.params;
    const depth = Number(request.query.depth ?? 1);
    const known = new Map<string, Found | null>([[id, null]]);
    let frontier = [id];
    let reached = 0;
    for (let level = 1; level <= depth && frontier.length > 0 && known.size <= MAX_FOUND; level++) {
      const edges = await query<Edge>('edges', EDGES, [frontier, app, namespace]);
      const places = new Map(frontier.map((via, place) => [via, place]));
      const next = new Map<string, Edge>();
      for (const edge of edges) {
        if (known.has(edge.other)) continue;
        const found = next.get(edge.other);
        const ahead = found ? places.get(edge.via)! - places.get(found.via)! : -1;
        if (!found || ahead < 0 || (ahead === 0 && edge.id > found.id)) next.set(edge.other, edge);
      }
      const rows = await query<{ id: string; importance: number }>('importance', IMPORTANCE, [
        [...next.keys()],
        app,
        namespace,
      ]);
      rows.sort((a, b) => b.importance - a.importance || (a.id < b.id ? -1 : 1));
      frontier = rows.slice(0, MAX_FOUND + 1 - known.size).map((row) => row.id);
      for (const other of frontier) {
        const { relation_type, direction, via } = next.get(other)!;
        known.set(other, { depth: level, relation_type, direction, via_entity_id: via });
      }
      if (frontier.length > 0) reached = level;
    }
    const rows = new Map(
      (await query<EntityRow>('some', SOME, [[...known.keys()], app, namespace])).map((row) => [row.entity_id, row]),
    );
    if (!rows.has(id)) return reply.code(404).send({ error: 'RESOURCE_NOT_FOUND' });
    const ordered = [...known.keys()].map((of) => ({ ...rows.get(of)!, ...known.get(of) }));
    const [root, ...connected_entities] = await withRelations(ordered);
    return { root, connected_entities, linked_memories: [], depth_reached: reached };
  });
}
