import pg from 'pg';

/** Where the graph is. */
export interface GraphPlace {
  orgId: string;
  workspaceId: string;
  appId: string;
  namespaceId: string;
}

/** A graph with a fixed seed: the same entities and relations in each run. */
export interface SeededGraph {
  /** The entity with {@link HUB_RELATIONS} relations. */
  hub: string;
  /** Entities of all degrees, without the hub and its neighbours. */
  roots: string[];
}

const ENTITIES = 100_000;
const RELATIONS = 500_000;
export const HUB_RELATIONS = 12_000;
const BATCH = 50_000;
const TYPES = ['knows', 'works_at', 'part_of', 'mentions', 'located_in'];

const idOf = (prefix: string, n: number) => `${prefix}_0${n.toString(32).toUpperCase().padStart(25, '0')}`;

/** Marsaglia's xorshift: numbers from 0 to 1, the same in each run. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/**
 * 100,000 entities and 500,000 relations. One end of each relation is drawn evenly, the other by the square of a random
 * number, so that a few entities have more than a thousand relations and most have a handful; and there is one hub.
 */
export async function seedGraph(url: string, place: GraphPlace): Promise<SeededGraph> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const random = randomOf(20_261_122);
  const own = [place.orgId, place.workspaceId, place.appId, place.namespaceId];
  try {
    for (let from = 0; from < ENTITIES; from += BATCH) {
      const numbers = Array.from({ length: BATCH }, (_, at) => from + at);
      await client.query(
        `insert into entities (org_id, workspace_id, app_id, namespace_id, id, name, identity_key, entity_type,
            description, importance, tags)
          select $1, $2, $3, $4, id, name, name, type, 'Made to be measured, with a description of a usual length.',
            importance, array['bench']
          from unnest($5::text[], $6::text[], $7::text[], $8::float8[]) x(id, name, type, importance)`,
        [
          ...own,
          numbers.map((n) => idOf('ent', n)),
          numbers.map((n) => `Entity ${n}`),
          numbers.map((n) => ['person', 'place', 'concept'][n % 3]),
          numbers.map(() => random()),
        ],
      );
    }
    const sources: number[] = [];
    const targets: number[] = [];
    const types: string[] = [];
    const known = new Set<number>();
    const add = (source: number, target: number) => {
      const type = Math.floor(random() * TYPES.length);
      const key = (source * ENTITIES + target) * TYPES.length + type;
      if (source === target || known.has(key)) return;
      known.add(key);
      sources.push(source);
      targets.push(target);
      types.push(TYPES[type]!);
    };
    for (let n = 1; sources.length < HUB_RELATIONS; n += 7) add(0, n);
    while (sources.length < RELATIONS)
      add(1 + Math.floor(random() * (ENTITIES - 1)), 1 + Math.floor(random() ** 2 * (ENTITIES - 1)));
    for (let from = 0; from < RELATIONS; from += BATCH) {
      const slice = <T>(list: T[]) => list.slice(from, from + BATCH);
      await client.query(
        `insert into entity_relations (org_id, workspace_id, app_id, namespace_id, id, source_entity_id,
            target_entity_id, relation_type)
          select $1, $2, $3, $4, * from unnest($5::text[], $6::text[], $7::text[], $8::text[])`,
        [
          ...own,
          slice(sources).map((_, at) => idOf('rel', from + at)),
          slice(sources).map((n) => idOf('ent', n)),
          slice(targets).map((n) => idOf('ent', n)),
          slice(types),
        ],
      );
    }
    await client.query('vacuum analyze entities');
    await client.query('vacuum analyze entity_relations');
    await client.query('vacuum analyze memory_entities');
    const roots = Array.from({ length: 32 }, (_, at) => idOf('ent', 1_000 + at * 3_001));
    return { hub: idOf('ent', 0), roots };
  } finally {
    await client.end();
  }
}
