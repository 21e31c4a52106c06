import type { QueryRunner } from '../../data/find-row.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Entity as EntityRow } from '../../generated/prisma/client.ts';
import type { AppNamespacePlace } from '../../kernel/checked-place.ts';
import { cleanName } from './entity-name.ts';

/** Entities that are looked at because of a name or an alias that they share with what is given. */
const MOST_ALIKE = 10_000;

/** How an entity that is given is the same as one that is there, the surest first. */
export type MatchedBy = 'id' | 'external_id' | 'name' | 'alias';

/** What tells whether two entities are the same. */
export type Identity = Pick<EntityRow, 'id' | 'name' | 'entityType' | 'aliases' | 'identityKey' | 'metadata'>;

/** An entity that is the same as a given one. */
export interface Match<Known> {
  entity: Known;
  by: MatchedBy;
}

/** A name as entities are compared by it: `entity_name_key` does the same. */
const keyOf = (name: string) => cleanName(name.normalize('NFKC')).toLowerCase().replaceAll('ς', 'σ');

/** `metadata.external_id` as a text that tells a number from the text of it; `null` without one. */
function externalIdOf(metadata: unknown): string | null {
  const { external_id: id = null } = (metadata ?? {}) as { external_id?: unknown };
  return id === null ? null : JSON.stringify(id);
}

const textOf = (externalId: string): string => {
  const value: unknown = JSON.parse(externalId);
  return typeof value === 'string' ? value : externalId;
};

/**
 * The condition on entities `t` of a place that may be the same as given ones: those with the ids, and those that share
 * a name, an alias or an external id. {@link Matches} tells which are.
 */
export function alike(
  { appId, namespaceId }: AppNamespacePlace,
  given: readonly Pick<Identity, 'name' | 'entityType' | 'identityKey' | 'metadata'>[],
  { ids = [], names = [] }: { ids?: readonly string[]; names?: readonly string[] } = {},
): Statement {
  const types = [...new Set(given.map(({ entityType }) => entityType))];
  const keys = given.map(({ identityKey }) => identityKey);
  const all = [...new Set([...given.map(({ name }) => name), ...names])];
  const externalIds = given.flatMap(({ metadata }) => externalIdOf(metadata) ?? []).map(textOf);
  return statement`t.app_id = ${appId} and t.namespace_id = ${namespaceId} and t.id = any(array(
    select unnest(${[...ids]}::text[])
    union
    select e.id from entities e where e.app_id = ${appId} and e.namespace_id = ${namespaceId}
      and e.entity_type = any(${types}::text[]) and e.identity_key = any(${keys}::text[])
    union
    (select e.id from entities e where e.app_id = ${appId} and e.namespace_id = ${namespaceId}
      and entity_name_key(e.name) = any(array(select entity_name_key(n) from unnest(${all}::text[]) n))
      order by e.id limit ${MOST_ALIKE})
    union
    (select e.id from entities e where e.app_id || ' ' || e.namespace_id = ${appId}::text || ' ' || ${namespaceId}::text
      and entity_lookup_keys(e.aliases, e.tags, e.metadata) && array(
        select 'a:' || entity_name_key(n) from unnest(${all}::text[]) n
        union all select 'x:' || entity_name_key(x) from unnest(${externalIds}::text[]) x)
      order by e.id limit ${MOST_ALIKE})))`;
}

/** The same entities without a lock. */
export async function findAlike(
  reads: QueryRunner,
  place: AppNamespacePlace,
  given: readonly Pick<Identity, 'name' | 'entityType' | 'identityKey' | 'metadata'>[],
): Promise<Identity[]> {
  const { text, values } = alike(place, given);
  return reads.query<Identity>({
    text: `select t.id, t.name, t.entity_type as "entityType", t.aliases, t.identity_key as "identityKey", t.metadata
      from entities t where ${text} order by t.id`,
    values,
  });
}

/** Finds which of the known entities a given one is. Of several that fit as well, it is the first that was added. */
export class Matches<Known extends Identity> {
  readonly #byId = new Map<string, Known>();
  readonly #byExternalId = new Map<string, Known>();
  readonly #byIdentity = new Map<string, Known>();
  readonly #byName = new Map<string, Known[]>();
  readonly #byAlias = new Map<string, Known[]>();

  constructor(known: readonly Known[]) {
    for (const entity of known) this.add(entity);
  }

  add(entity: Known): void {
    const { entityType, metadata } = entity;
    const externalId = externalIdOf(metadata);
    this.#byId.set(entity.id, entity);
    if (externalId !== null) keepFirst(this.#byExternalId, `${entityType} ${externalId}`, entity);
    keepFirst(this.#byIdentity, `${entityType} ${entity.identityKey}`, entity);
    addTo(this.#byName, keyOf(entity.name), entity);
    for (const alias of new Set(entity.aliases.map(keyOf))) addTo(this.#byAlias, alias, entity);
  }

  /** The entity with an id. */
  withId(id: string): Known | undefined {
    return this.#byId.get(id);
  }

  /** The entity of a type that has exactly this name and external id. */
  withIdentity({ entityType, identityKey }: Pick<Identity, 'entityType' | 'identityKey'>): Known | undefined {
    return this.#byIdentity.get(`${entityType} ${identityKey}`);
  }

  /**
   * The entity of its type that has the external id of the given one, or its name or an alias of this name if not both
   * have external ids that differ.
   */
  of(given: Pick<Identity, 'name' | 'entityType' | 'identityKey' | 'metadata'>): Match<Known> | null {
    const externalId = externalIdOf(given.metadata);
    const isSame = ({ entityType, metadata }: Known) => {
      const theirs = externalIdOf(metadata);
      return entityType === given.entityType && (externalId === null || theirs === null || externalId === theirs);
    };
    const key = keyOf(given.name);
    const found: [MatchedBy, Known | undefined][] = [
      ['external_id', externalId === null ? undefined : this.#byExternalId.get(`${given.entityType} ${externalId}`)],
      ['name', this.withIdentity(given) ?? this.#byName.get(key)?.find(isSame)],
      ['alias', this.#byAlias.get(key)?.find(isSame)],
    ];
    for (const [by, entity] of found) if (entity) return { entity, by };
    return null;
  }

  /** The entities with a name, or without any those with an alias; of a type if one is given. */
  named(name: string, entityType: string | null): readonly Known[] {
    const key = keyOf(name);
    const ofType = (known: readonly Known[] = []) =>
      entityType === null ? known : known.filter((each) => each.entityType === entityType);
    const exact = ofType(this.#byName.get(key));
    return exact.length > 0 ? exact : ofType(this.#byAlias.get(key));
  }
}

function keepFirst<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (!map.has(key)) map.set(key, value);
}

function addTo<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const known = map.get(key);
  if (known) known.push(value);
  else map.set(key, [value]);
}
