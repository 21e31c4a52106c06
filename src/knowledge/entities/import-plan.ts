import { isDeepStrictEqual } from 'node:util';
import type { Entity as EntityRow } from '../../generated/prisma/client.ts';
import { type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { type Identity, Matches } from './entity-matching.ts';
import { blankNames, cleaned } from './entity-name.ts';
import { identityKeyOf } from './identity-key.ts';

type Path = (string | number)[];

/** An entity to create, or to change if it is there. */
export interface GivenEntity {
  /** Names it in the relations of the same import. */
  key?: string | null;
  /** The entity that it is, if that is known. */
  id?: string | null;
  name: string;
  entityType?: string | null;
  description?: string | null;
  aliases?: string[] | null;
  tags?: string[] | null;
  importance?: number | null;
  metadata?: Record<string, unknown> | null;
}

/** An end of a relation: by the key of an entity of the same import, by its id or by its name. */
export interface GivenEnd {
  key?: string | null;
  id?: string | null;
  name?: string | null;
  /** Together with a name. */
  entityType?: string | null;
}

/** A relation to create, or to change if it is there. */
export interface GivenRelation {
  source: GivenEnd;
  target: GivenEnd;
  relationType: string;
  weight?: number | null;
  metadata?: Record<string, unknown> | null;
  validFrom?: Date | null;
  validTo?: Date | null;
}

/** What of an entity an import writes. */
export type PlannedEntity = Identity & Pick<EntityRow, 'description' | 'tags' | 'importance'>;

/** What becomes of a given entity. */
export type ImportOutcome = 'created' | 'updated' | 'unchanged';

/** A relation between entities that are known. */
export interface PlannedRelation extends Omit<GivenRelation, 'source' | 'target'> {
  sourceEntityId: string;
  targetEntityId: string;
}

/** What an import does. */
export interface ImportPlan {
  /** In the order in which they were given. */
  entities: { row: PlannedEntity; outcome: ImportOutcome }[];
  relations: PlannedRelation[];
}

/** What tells which entity a given one is. */
export const identityOfGiven = ({
  name,
  entityType,
  metadata,
}: {
  name: string;
  entityType?: string | null;
  metadata?: unknown;
}) => ({
  name,
  entityType: entityType ?? 'other',
  metadata: (metadata ?? {}) as EntityRow['metadata'],
  identityKey: identityKeyOf(name, metadata ?? {}),
});

/** The entities with clean names, and what is wrong with their names and keys. */
export function checkedEntities(given: readonly GivenEntity[]): { entities: GivenEntity[]; issues: InputIssue[] } {
  const keys = new Set<string>();
  const issues = given.flatMap((entity, at) => {
    const path: Path = ['input', 'entities', at];
    const isTaken = typeof entity.key === 'string' && keys.has(entity.key);
    if (typeof entity.key === 'string') keys.add(entity.key);
    return [
      ...blankNames(entity, path),
      ...(isTaken ? [valueIssue([...path, 'key'], 'must be unique among the entities that are given')] : []),
    ];
  });
  return { entities: given.map(cleaned), issues };
}

/**
 * Decides what becomes of each entity and relation.
 * @param known all entities that may be the same as given ones, or that relations may name
 * @returns the plan, and everything that is wrong, by place: a plan with issues must not be carried out
 */
export function planImport(
  entities: readonly GivenEntity[],
  relations: readonly GivenRelation[],
  known: readonly PlannedEntity[],
): { plan: ImportPlan; issues: InputIssue[] } {
  const issues: InputIssue[] = [];
  const matches = new Matches(known);
  const byKey = new Map<string, string>();
  const takenAt = new Map<string, number>();
  const planned = entities.map((given, at): ImportPlan['entities'][number] | null => {
    const path: Path = ['input', 'entities', at];
    const fail = (where: string, error: string): null => {
      issues.push(valueIssue([...path, where], error));
      return null;
    };
    const identity = identityOfGiven(given);
    const before = given.id ? matches.withId(given.id) : matches.of(identity)?.entity;
    if (given.id && !before) return fail('id', `names no entity of the app and namespace: '${given.id}'`);
    const row = before ? changed(before, given) : created(given);
    const earlier = before && takenAt.get(before.id);
    if (earlier !== undefined) return fail('name', `is the same entity as entities.${earlier}`);
    const other = matches.withIdentity(row);
    if (other && other.id !== row.id) return fail('name', `is the name of another entity of the type: '${other.id}'`);
    takenAt.set(row.id, at);
    if (given.key) byKey.set(given.key, row.id);
    matches.add(row);
    return { row, outcome: !before ? 'created' : isSame(before, row) ? 'unchanged' : 'updated' };
  });
  const ends = new Ends(matches, byKey);
  const plannedRelations = planRelations(relations, ends, issues);
  return { plan: { entities: planned.filter((each) => each !== null), relations: plannedRelations }, issues };
}

function planRelations(relations: readonly GivenRelation[], ends: Ends, issues: InputIssue[]): PlannedRelation[] {
  const seen = new Map<string, number>();
  return relations.flatMap(({ source, target, ...relation }, at) => {
    const path: Path = ['input', 'relations', at];
    const sourceEntityId = ends.idOf(source, [...path, 'source'], issues);
    const targetEntityId = ends.idOf(target, [...path, 'target'], issues);
    if (relation.validFrom && relation.validTo && relation.validFrom >= relation.validTo)
      issues.push(valueIssue([...path, 'validTo'], 'must be later than valid_from'));
    if (sourceEntityId === null || targetEntityId === null) return [];
    if (sourceEntityId === targetEntityId)
      issues.push(valueIssue([...path, 'target'], 'must be another entity than the source'));
    const key = `${sourceEntityId} ${targetEntityId} ${relation.relationType}`;
    const earlier = seen.get(key);
    if (earlier !== undefined) issues.push(valueIssue(path, `is the same relation as relations.${earlier}`));
    seen.set(key, at);
    return [{ ...relation, sourceEntityId, targetEntityId }];
  });
}

/** Finds the entities that relations name. */
class Ends {
  readonly #matches: Matches<PlannedEntity>;
  readonly #byKey: ReadonlyMap<string, string>;

  constructor(matches: Matches<PlannedEntity>, byKey: ReadonlyMap<string, string>) {
    this.#matches = matches;
    this.#byKey = byKey;
  }

  /** @returns `null` for an end that names no entity, which is added to the issues */
  idOf({ key, id, name, entityType }: GivenEnd, path: Path, issues: InputIssue[]): string | null {
    const fail = (where: Path, error: string): null => {
      issues.push(valueIssue([...path, ...where], error));
      return null;
    };
    if ([key, id, name].filter((each) => typeof each === 'string').length !== 1)
      return fail([], 'must have one of key, id and name');
    if (typeof key === 'string')
      return this.#byKey.get(key) ?? fail(['key'], `names no entity of the import: '${key}'`);
    if (typeof id === 'string')
      return this.#matches.withId(id)?.id ?? fail(['id'], `names no entity of the app and namespace: '${id}'`);
    const ids = new Set(this.#matches.named(name!, entityType ?? null).map((entity) => entity.id));
    const [first] = ids;
    if (ids.size > 1) return fail(['name'], `is the name of ${ids.size} entities: '${name}'`);
    return first ?? fail(['name'], `names no entity of the app and namespace: '${name}'`);
  }
}

function created(given: GivenEntity): PlannedEntity {
  return {
    id: newId('entity'),
    ...identityOfGiven(given),
    description: given.description ?? null,
    aliases: given.aliases ?? [],
    tags: given.tags ?? [],
    importance: given.importance ?? 0.5,
  };
}

/** What is not given stays; `null` clears only the description. */
function changed(before: PlannedEntity, given: GivenEntity): PlannedEntity {
  const entityType = given.entityType ?? before.entityType;
  const metadata = (given.metadata ?? before.metadata) as EntityRow['metadata'];
  // an entity that is known by an alias, or otherwise written, keeps its name unless its id is given
  const isRenamed = Boolean(given.id);
  const name = isRenamed ? given.name : before.name;
  const isKnownAnew = isRenamed || given.metadata || given.entityType;
  return {
    ...before,
    name,
    entityType,
    metadata,
    identityKey: isKnownAnew ? identityKeyOf(name, metadata) : before.identityKey,
    description: given.description === undefined ? before.description : given.description,
    aliases: given.aliases ?? before.aliases,
    tags: given.tags ?? before.tags,
    importance: given.importance ?? before.importance,
  };
}

const shown = ({ name, entityType, metadata, description, aliases, tags, importance }: PlannedEntity) =>
  [name, entityType, metadata, description, aliases, tags, importance] as const;
// the database keeps no order of the keys of metadata
const isSame = (before: PlannedEntity, after: PlannedEntity): boolean => isDeepStrictEqual(shown(before), shown(after));
