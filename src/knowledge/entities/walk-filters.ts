/** Most relations that one level of a walk looks at, the newest of each entity first: a hub with more costs no more. */
export const MAX_LOOKED_AT = 20_000;

export const directions = ['outgoing', 'incoming', 'both'] as const;

/** Which relations a walk follows, and through which entities. Without a filter: all of them. */
export interface WalkFilters {
  /** `outgoing` follows relations from source to target; the default is `both`. */
  direction?: string | null;
  /** Only relations of these types; all if empty. */
  relationTypes?: readonly string[] | null;
  /** Only relations that hold at this time. */
  asOf?: Date | null;
  /** Only entities of at least this importance. */
  minImportance?: number | null;
  /** Only entities of these types; all if empty. */
  entityTypes?: readonly string[] | null;
}

/** The parts of a walk's statement. They follow from the filters that are given, so there are few statements. */
export interface WalkForm {
  /** Common table expressions: `looked`, the relations that were looked at, and `edges`, those that may be followed. */
  relations: string;
  /** Whether an entity `o` may be walked through. */
  entityFits: string;
}

const unique = (values: readonly string[] | null | undefined) => [...new Set(values ?? [])];

const isFiltered = ({ asOf, minImportance, entityTypes }: WalkFilters) =>
  Boolean(asOf) || (minImportance ?? null) !== null || Boolean(entityTypes?.length);

/** The values of the filters, in the order in which {@link writeWalk} counts them. */
export function valuesOf(filters: WalkFilters): unknown[] {
  const types = unique(filters.relationTypes);
  const entityTypes = unique(filters.entityTypes);
  return [
    ...(types.length > 0 ? [types] : []),
    ...(isFiltered(filters)
      ? [filters.asOf ?? null, filters.minImportance ?? null, entityTypes.length > 0 ? entityTypes : null]
      : []),
  ];
}

/**
 * Builds a statement of a walk, once for each form.
 * @param own how many parameters the statement has of its own, before those of {@link valuesOf}; the second is the app
 * and the third the namespace
 * @param ids the entities to start from, as SQL
 */
export function writeWalk(own: number, ids: string, write: (form: WalkForm) => string): (of: WalkFilters) => string {
  const texts = new Map<string, string>();
  return (filters) => {
    const ofType = Boolean(filters.relationTypes?.length);
    const key = `${filters.direction ?? 'both'} ${ofType} ${isFiltered(filters)}`;
    const known = texts.get(key);
    if (known !== undefined) return known;
    const text = write(formOf(own, ids, filters, ofType));
    texts.set(key, text);
    return text;
  };
}

function formOf(own: number, ids: string, filters: WalkFilters, ofType: boolean): WalkForm {
  const filtered = isFiltered(filters);
  const at = (place: number) => `$${own + place + (ofType ? 1 : 0)}`;
  const [asOf, importance, types] = [`${at(1)}::timestamptz`, `${at(2)}::float8`, `${at(3)}::text[]`];
  const direction = filters.direction ?? 'both';
  const ways = [
    ...(direction === 'incoming' ? [] : [relationsOf('source_entity_id', 'target_entity_id', 'outgoing', ofType)]),
    ...(direction === 'outgoing' ? [] : [relationsOf('target_entity_id', 'source_entity_id', 'incoming', ofType)]),
  ];
  // what holds at a time is chosen of those that were looked at: a filter that fits few costs no more
  const holds = `where ${asOf} is null
        or coalesce(e.valid_from <= ${asOf}, true) and coalesce(${asOf} < e.valid_to, true)`;
  return {
    relations: `looked as materialized (
        select x.*, f.id as via, f.at
        from unnest(${ids}) with ordinality f(id, at)
        ${ofType ? `cross join unnest($${own + 1}::text[]) y(type)` : ''}
        cross join lateral (${ways.join(' union all ')}) x
        limit ${MAX_LOOKED_AT}
      ), edges as not materialized (select * from looked e ${filtered ? holds : ''})`,
    entityFits: filtered
      ? `(${importance} is null or o.importance >= ${importance})
          and (${types} is null or o.entity_type = any(${types}))`
      : 'true',
  };
}

/** The relations of an entity `f` in one direction. */
const relationsOf = (own: string, other: string, direction: string, ofType: boolean) => `
  (select r.${other} as other, r.relation_type, '${direction}' as direction, r.id as relation, r.valid_from, r.valid_to
    from entity_relations r
    where r.${own} = f.id and r.app_id = $2 and r.namespace_id = $3${ofType ? ' and r.relation_type = y.type' : ''}
    order by r.id desc limit ${MAX_LOOKED_AT})`;
