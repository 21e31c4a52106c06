import { selectList } from '../../data/paging.ts';
import type { SlowReads } from '../../data/slow-reads.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { type Entity, entityColumns, LOOKUP_KEYS } from './entity.reads.ts';
import { cleanName } from './entity-name.ts';

/** Entities that are looked at which are found in one way that says a lot, and in one that says less. */
const MOST_EXACT = 200;
const MOST_SIMILAR = 2_000;

/** What an entity is searched by. */
export interface EntityQuery {
  query: string;
  entityType?: string | null;
  tag?: string | null;
  minImportance?: number | null;
  limit: number;
}

/** How an entity was found, the best first. */
type SearchMatch = 'name' | 'external_id' | 'name_prefix' | 'alias' | 'tag' | 'part' | 'similar';

/** An entity that was found. */
export interface FoundEntity {
  entity: Entity;
  /** From 0 to 1. */
  score: number;
  matchedBy: SearchMatch;
}

const TEXT = 'entity_search_text(t.name, t.aliases, t.tags, t.metadata)';
const IN_PLACE = `t.app_id || ' ' || t.namespace_id = $2 || ' ' || $3`;
const KEY = 'entity_name_key(t.name)';
const Q = '(select q from asked)';
const pattern = (before: string) => `${before} || (select escaped from asked) || '%'`;
const FILTERS = `t.org_id = $1 and ($5::text is null or t.entity_type = $5)
      and ($6::text is null or ${LOOKUP_KEYS} @> array['t:' || entity_name_key($6)])
      and ($7::float8 is null or t.importance >= $7)`;

const byName = (condition: string) => `
    (select t.id from entities t where t.app_id = $2 and t.namespace_id = $3 and ${condition} and ${FILTERS}
      order by ${KEY} using ~<~ limit ${MOST_EXACT})`;
const byIndex = (condition: string, most = MOST_EXACT) => `
    (select t.id from entities t where ${IN_PLACE} and ${condition} and ${FILTERS} limit ${most})`;

/**
 * Each way of being found has an index and a bound of its own, so a word that all entities have does not hide the one
 * that has it as its name. Parameters: organization, app, namespace, query, type, tag, importance, limit.
 */
export const SEARCH = `with asked as materialized (
    select q, regexp_replace(q, '([\\\\%_])', '\\\\\\1', 'g') as escaped from (select entity_name_key($4) as q) a),
  found as materialized (${[
    byName(`${KEY} = ${Q}`),
    byName(`${KEY} ~>=~ ${Q} and ${KEY} ~<~ (${Q} || chr(1114111))`),
    byIndex(`${LOOKUP_KEYS} && array['a:' || ${Q}, 'x:' || ${Q}]`),
    byIndex(`${LOOKUP_KEYS} @> array['t:' || ${Q}]`),
    byIndex(`${TEXT} like ${pattern(`'%' || chr(10)`)}`),
    byIndex(`${TEXT} like ${pattern(`'%'`)} and length(${Q}) >= 3`, MOST_SIMILAR),
    byIndex(`${TEXT} %> ${Q} and length(${Q}) >= 3`, MOST_SIMILAR),
  ].join(' union ')}),
  compared as (
    select t.id, t.importance, ${KEY} as name, ${LOOKUP_KEYS} as keys, ${TEXT} as text
    from found f join entities t on t.id = f.id where t.org_id = $1 and t.app_id = $2 and t.namespace_id = $3),
  matched as (
    select c.*, a.q, case
      when c.name = a.q then 'name'
      when c.keys @> array['x:' || a.q] then 'external_id'
      when starts_with(c.name, a.q) then 'name_prefix'
      when exists (select from unnest(c.keys) k where starts_with(k, 'a:' || a.q)) then 'alias'
      when c.keys @> array['t:' || a.q] then 'tag'
      when position(a.q in c.text) > 0 then 'part'
      else 'similar' end as match
    from compared c cross join asked a),
  best as (
    select m.id, m.match, m.importance, case m.match
      when 'name' then 1
      when 'external_id' then 1
      when 'name_prefix' then 0.8 + 0.1 * m.closeness
      when 'alias' then case when m.keys @> array['a:' || m.q] then 0.8 else 0.7 + 0.09 * m.closeness end
      when 'tag' then 0.65
      when 'part' then 0.5 + 0.1 * m.closeness
      else 0.5 * word_similarity(m.q, m.text) end as score
    from (select *, least(1, length(q)::float8 / greatest(1, length(name))) as closeness from matched) m
    order by score desc, m.importance desc, m.id limit $8)
  select ${selectList(entityColumns)}, round(b.score::numeric, 4)::float8 as score, b.match as "matchedBy"
  from best b join entities t on t.id = b.id
  order by b.score desc, b.importance desc, b.id`;

/**
 * Searches the entities of an app in a namespace by name, alias, tag and `metadata.external_id`: exact ones first, then
 * names that begin with the query, aliases, tags, parts, and what is similar.
 * @throws InputError for a query without a character
 */
export async function searchEntities(
  slowReads: SlowReads,
  { orgId, appId, namespaceId }: Checked<AppNamespacePlace>,
  { query, entityType = null, tag = null, minImportance = null, limit }: EntityQuery,
): Promise<FoundEntity[]> {
  if (cleanName(query) === '') throw invalidInput(['query'], 'must not be blank');
  const rows = await slowReads
    .searchesOf(orgId)
    .read<Entity & Omit<FoundEntity, 'entity'>>(SEARCH, [
      orgId,
      appId,
      namespaceId,
      query,
      entityType,
      tag,
      minImportance,
      limit,
    ]);
  return rows.map(({ score, matchedBy, ...entity }) => ({ entity, score, matchedBy }));
}
