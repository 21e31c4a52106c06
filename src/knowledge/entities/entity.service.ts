import { isDeepStrictEqual } from 'node:util';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { Given } from '../../data/given.ts';
import type { PageArgs } from '../../data/page.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import type { Reads } from '../../data/reads.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import { noCache, type RequestCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Entity as EntityRow, EntityRelation as RelationRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppNamespacePlace, AppPlace, Checked, Deleted, NamespacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { linkMemories } from '../memories/memory-links.ts';
import { type Entity, type EntityFilters, entityReads } from './entity.reads.ts';
import { type EntityTraversal, type TraversalArgs, traverse } from './entity.traversal.ts';
import { type EntityImport, type EntityImportResult, importEntities } from './entity-import.ts';
import { mergeEntities } from './entity-merge.ts';
import { withCleanNames } from './entity-name.ts';
import { type EntityPathResult, findPath, type PathArgs } from './entity-path.ts';
import { demandPlace, lockImports } from './entity-place.ts';
import {
  type EntityPlace,
  newestShare,
  relationReads,
  type SeenRelation,
  seenRelations,
} from './entity-relation.reads.ts';
import { findOrCreate, matchOf, type ResolvedEntity } from './entity-resolution.ts';
import { type EntityQuery, type FoundEntity, searchEntities } from './entity-search.ts';
import { identityKeyOf } from './identity-key.ts';
import { identityOfGiven } from './import-plan.ts';
import { askLeading, type LeadingReads, lockLeading } from './merged-entities.ts';

type Changeable =
  | 'name'
  | 'entityType'
  | 'description'
  | 'aliases'
  | 'tags'
  | 'importance'
  | 'mentionCount'
  | 'lastReferencedAt'
  | 'metadata';

interface UpdateEntity extends Given<EntityRow, Changeable> {
  /** Replaces the links to memories. */
  sourceMemoryIds?: string[] | null;
}

type CreateEntity = UpdateEntity & Pick<EntityRow, 'name'>;

export interface RelateEntities {
  sourceEntityId: string;
  targetEntityId: string;
  relationType: string;
  weight?: number | null;
  metadata?: Record<string, unknown> | null;
  /** Since when it holds, and until when; `null` for no bound. */
  validFrom?: Date | null;
  validTo?: Date | null;
}

export type UpdateRelation = Partial<Omit<RelateEntities, 'sourceEntityId' | 'targetEntityId' | 'relationType'>> & {
  relationType?: string | null;
};

/**
 * The knowledge graph (defaults §7): entities of an app in a namespace, and relations between them. Everything is
 * within the two: reads, uniqueness, both ends of a relation and traversals (docs/decisions/0016).
 */
export class EntityService {
  readonly reads: LeadingReads<Entity, AppNamespacePlace, PageArgs & EntityFilters>;
  /** The entities of an app in all namespaces. */
  readonly ofApp: Reads<Entity, AppPlace, PageArgs & EntityFilters>;
  /** The entities of a namespace in all apps. */
  readonly ofNamespace: Reads<Entity, NamespacePlace, PageArgs & EntityFilters>;
  /** The relations of entities. */
  readonly relations: Reads<SeenRelation, EntityPlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    const { reads, ofApp, ofNamespace } = entityReads(deps);
    this.reads = reads;
    this.ofApp = ofApp;
    this.ofNamespace = ofNamespace;
    this.relations = relationReads(deps);
  }

  /** The newest relations of an entity, at most `first`, and no more than its share of {@link newestShare}. */
  newestRelations(context: RequestCache, place: Checked<EntityPlace>, first: number): Promise<SeenRelation[]> {
    return this.relations.firstOf(context, place, { first, ...newestShare });
  }

  /** Walks the relations of an entity. @throws RESOURCE_NOT_FOUND */
  traverse(place: Checked<AppNamespacePlace>, id: string, args: TraversalArgs): Promise<EntityTraversal> {
    const reads = this.#deps.slowReads.of(place.orgId);
    return askLeading(reads, place, [id], ([root]) => traverse(reads, place, root!, args));
  }

  /** The shortest path between two entities. @throws RESOURCE_NOT_FOUND */
  path(place: Checked<AppNamespacePlace>, from: string, args: PathArgs): Promise<EntityPathResult> {
    const reads = this.#deps.slowReads.of(place.orgId);
    const { targetEntityId, ...filters } = args;
    return askLeading(reads, place, [from, targetEntityId], ([source, target]) =>
      findPath(reads, place, source!, { ...filters, targetEntityId: target! }),
    );
  }

  /** Searches by name, alias, tag and external id. @throws InputError for a blank query */
  search(place: Checked<AppNamespacePlace>, query: EntityQuery): Promise<FoundEntity[]> {
    return searchEntities(this.#deps.slowReads, place, query);
  }

  /**
   * @throws RESOURCE_NOT_FOUND `memory`; RESOURCE_ALREADY_EXISTS for the name of another entity of the type, unless
   * their `metadata.external_id` differ
   */
  async create(caller: Caller, place: Checked<AppNamespacePlace>, given: CreateEntity): Promise<Entity> {
    const input = withCleanNames(given);
    const id = newId('entity');
    const identity = identityOfGiven(input);
    await this.#unique(place, identity, () =>
      this.#deps.changes.run(caller, async (tx) => {
        demandPlace(tx, place);
        await this.#insert(tx, caller, place, { ...input, ...keysOf(identity), id });
      }),
    );
    return this.reads.get(noCache, place, id);
  }

  /**
   * The entity that a new one would be the same as: by `metadata.external_id`, by name, or by an alias of this name.
   * It is created if there is none; of several requests at once, one creates it.
   * @throws RESOURCE_NOT_FOUND `memory`; InputError for a blank name
   */
  async resolve(caller: Caller, place: Checked<AppNamespacePlace>, given: CreateEntity): Promise<ResolvedEntity> {
    const input = withCleanNames(given);
    const identity = identityOfGiven(input);
    const { id, match } = await findOrCreate(
      () => matchOf(this.#deps.sql, place, identity),
      () =>
        this.#deps.changes.run(caller, async (tx) => {
          await lockImports(tx, place);
          const made = await matchOf(tx, place, identity);
          if (made) return { id: made.entity.id, match: made };
          const newOne = newId('entity');
          demandPlace(tx, place);
          await this.#insert(tx, caller, place, { ...input, ...keysOf(identity), id: newOne });
          return { id: newOne, match: null };
        }),
    );
    const entity = await this.reads.get(noCache, place, id);
    return { entity, created: !match, matchedBy: match?.by ?? null };
  }

  /** Creates and changes many entities and relations in one change. */
  import(caller: Caller, place: Checked<AppNamespacePlace>, input: EntityImport): Promise<EntityImportResult> {
    return importEntities(this.#deps, caller, place, input);
  }

  /** Merges entities into another one, which their ids lead to from then on: see {@link mergeEntities}. */
  async merge(
    caller: Caller,
    place: Checked<AppNamespacePlace>,
    id: string,
    merged: readonly string[],
  ): Promise<Entity> {
    const survivor = await mergeEntities(this.#deps, caller, place, id, merged);
    return this.reads.get(noCache, place, survivor);
  }

  async #insert(
    tx: Tx,
    caller: Caller,
    place: AppNamespacePlace,
    { sourceMemoryIds, ...input }: CreateEntity & Pick<EntityRow, 'id' | 'entityType' | 'identityKey'>,
  ): Promise<void> {
    const { id, name, entityType, identityKey } = input;
    tx.insert('entities', {
      id,
      ...place,
      name,
      entityType,
      identityKey,
      description: input.description ?? null,
      aliases: input.aliases ?? [],
      tags: input.tags ?? [],
      importance: input.importance ?? undefined,
      mentionCount: input.mentionCount ?? undefined,
      lastReferencedAt: input.lastReferencedAt ?? (input.mentionCount ? new Date() : null),
      metadata: input.metadata ?? {},
      createdBy: caller.principal.userId,
    });
    if (sourceMemoryIds?.length) await linkMemories(tx, place, id, sourceMemoryIds);
    recordChange(tx, 'create', 'entity', { id, ...place }, { entity_type: entityType });
  }

  /**
   * Changes the given fields; omitted ones stay. An entity is mentioned by a greater `mentionCount`: without
   * `lastReferencedAt`, it was referenced now.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_ALREADY_EXISTS like {@link create}
   */
  async update(
    caller: Caller,
    place: Checked<AppNamespacePlace>,
    givenId: string,
    given: UpdateEntity,
  ): Promise<Entity> {
    const { appId, namespaceId } = place;
    const input = withCleanNames(given);
    const { sourceMemoryIds } = input;
    const known = await this.reads.get(noCache, place, givenId);
    const { id } = known;
    const name = input.name ?? known.name;
    await this.#unique(place, { ...identityOf(known, input), name }, () =>
      this.#deps.changes.run(caller, async (tx) => {
        const before = await tx.lock('entities', { id, appId, namespaceId }, 'no key update', () =>
          notFound('entity', id),
        );
        await tx.expectVersion({ table: 'entities', key: { id } });
        const isMentioned = (input.mentionCount ?? 0) > before.mentionCount;
        const isRenamed = Boolean(input.name ?? input.entityType ?? input.metadata);
        if (sourceMemoryIds) await linkMemories(tx, place, id, sourceMemoryIds, { replaces: true });
        tx.update(
          'entities',
          { id },
          {
            name: input.name ?? undefined,
            entityType: input.entityType ?? undefined,
            identityKey: isRenamed ? identityOf(before, input).identityKey : undefined,
            description: input.description,
            aliases: input.aliases ?? undefined,
            tags: input.tags ?? undefined,
            importance: input.importance ?? undefined,
            mentionCount: input.mentionCount ?? undefined,
            lastReferencedAt: input.lastReferencedAt === undefined && isMentioned ? new Date() : input.lastReferencedAt,
            metadata: input.metadata ?? undefined,
            // counts and links do not raise the version by themselves, but what a client sets does
            resourceVersion: setsUnversioned(input) ? before.resourceVersion + 1 : undefined,
          },
        );
        recordChange(tx, 'update', 'entity', before, { fields: Object.keys(input) });
      }),
    );
    return this.reads.get(noCache, place, id);
  }

  /**
   * Deletes an entity with its relations. The id of a merged entity deletes nothing: a caller who has it does not know
   * what else the surviving entity stands for.
   * @throws RESOURCE_NOT_FOUND
   */
  async delete(caller: Caller, place: Checked<AppNamespacePlace>, id: string): Promise<Deleted<AppNamespacePlace>> {
    return deleteRow(this.#deps, caller, { kind: 'entity', from: 'entities' }, { id, ...place });
  }

  /**
   * Creates a relation, which counts as a mention of both ends. If there is one of the type already, what is
   * given of it is changed; omitted fields stay.
   * @returns the relation, as its source sees it
   * @throws RESOURCE_NOT_FOUND with the end that is missing; InputError for a relation of an entity to itself
   */
  async relate(caller: Caller, place: Checked<AppNamespacePlace>, input: RelateEntities): Promise<SeenRelation> {
    const { relationType } = input;
    const demandTwo = (source: string, target: string) => {
      if (source === target) throw invalidInput(['input', 'targetEntityId'], 'must be another entity than the source');
    };
    demandTwo(input.sourceEntityId, input.targetEntityId);
    const id = await this.#deps.changes.run(caller, async (tx) => {
      const ends = await lockLeading(tx, place, [input.sourceEntityId, input.targetEntityId], 'no key update');
      const [sourceEntityId, targetEntityId] = ends as [string, string];
      demandTwo(sourceEntityId, targetEntityId);
      // both ends are locked: a relation between them cannot be created meanwhile
      const [same] = await tx.query<SameRelation>(statement`select id, weight, metadata, valid_from as "validFrom",
          valid_to as "validTo"
        from entity_relations where source_entity_id = ${sourceEntityId} and target_entity_id = ${targetEntityId}
          and relation_type = ${relationType}`);
      demandPeriod({ ...same, ...givenOf(input) });
      if (same) {
        const changed = { ...same, ...givenOf(input) };
        if (isDeepStrictEqual(changed, same)) return same.id;
        const { id: relationId, ...set } = changed;
        tx.update('entity_relations', { id: relationId }, { ...set, metadata: set.metadata as never });
        recordRelation(tx, 'relate', place, { id: relationId, sourceEntityId, targetEntityId, relationType });
        return relationId;
      }
      const relationId = newId('entity_relation');
      tx.insert('entity_relations', {
        id: relationId,
        ...place,
        sourceEntityId,
        targetEntityId,
        relationType,
        weight: input.weight ?? undefined,
        metadata: (input.metadata ?? undefined) as never,
        validFrom: input.validFrom ?? null,
        validTo: input.validTo ?? null,
        createdBy: caller.principal.userId,
      });
      tx.write(statement`update entities set mention_count = least(mention_count::bigint + 1, 2147483647)::int,
        last_referenced_at = clock_timestamp() where id = any(${ends})`);
      recordRelation(tx, 'relate', place, { id: relationId, sourceEntityId, targetEntityId, relationType });
      return relationId;
    });
    return this.#relation(place, id);
  }

  /**
   * Changes the given fields of a relation; omitted ones stay.
   * @returns the relation, as its source sees it
   * @throws RESOURCE_NOT_FOUND `entity_relation`; RESOURCE_ALREADY_EXISTS if there is one of the new type
   */
  async updateRelation(
    caller: Caller,
    place: Checked<AppNamespacePlace>,
    id: string,
    input: UpdateRelation,
  ): Promise<SeenRelation> {
    const { appId, namespaceId } = place;
    const change = this.#deps.changes.run(caller, async (tx) => {
      const before = await tx.lock('entity_relations', { id, appId, namespaceId }, 'no key update', () =>
        notFound('entity_relation', id),
      );
      await tx.expectVersion({ table: 'entity_relations', key: { id } });
      const relationType = input.relationType ?? before.relationType;
      const set = givenOf(input);
      demandPeriod({ ...before, ...set });
      tx.update('entity_relations', { id }, { ...set, relationType, metadata: set.metadata as never });
      recordRelation(tx, 'relate', place, { ...before, relationType });
    });
    await change.catch(async (error: unknown) => {
      if (!brokenUnique(error)) throw error;
      const type = input.relationType ?? '';
      const [other] = await this.#deps.sql.read<{ id: string }>(
        `select o.id from entity_relations r join entity_relations o
          on o.source_entity_id = r.source_entity_id and o.target_entity_id = r.target_entity_id
        where r.id = $1 and o.relation_type = $2`,
        [id, type],
      );
      throw alreadyExists('entity_relation', 'relation_type', type, other?.id);
    });
    return this.#relation(place, id);
  }

  /** Deletes a relation. @throws RESOURCE_NOT_FOUND `entity_relation` */
  async unrelate(
    caller: Caller,
    place: Checked<AppNamespacePlace>,
    id: string,
  ): Promise<Deleted<AppNamespacePlace & Related>> {
    const { appId, namespaceId } = place;
    return this.#deps.changes.run(caller, async (tx) => {
      await tx.expectVersion({ table: 'entity_relations', key: { id } });
      const [relation] = await tx.query<Related>(statement`delete from entity_relations
        where id = ${id} and app_id = ${appId} and namespace_id = ${namespaceId} returning id,
          source_entity_id as "sourceEntityId", target_entity_id as "targetEntityId", relation_type as "relationType"`);
      if (!relation) throw notFound('entity_relation', id);
      recordRelation(tx, 'unrelate', place, relation);
      return { ...place, ...relation };
    });
  }

  /** A relation as its source sees it. */
  async #relation(place: AppNamespacePlace, id: string): Promise<SeenRelation> {
    const [row] = await seenRelations(this.#deps.sql, place, [id], []);
    if (!row) throw notFound('entity_relation', id);
    return row;
  }

  /** @throws RESOURCE_ALREADY_EXISTS with the entity that is known by the same */
  async #unique<T>(
    { appId, namespaceId }: AppNamespacePlace,
    { name, entityType, identityKey }: Pick<EntityRow, 'name' | 'entityType' | 'identityKey'>,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      const [other] = await this.#deps.sql.read<{ id: string }>(
        `select id from entities where app_id = $1 and namespace_id = $2 and entity_type = $3 and identity_key = $4`,
        [appId, namespaceId, entityType, identityKey],
      );
      throw alreadyExists('entity', 'name', name, other?.id);
    }
  }
}

const keysOf = ({ entityType, identityKey }: Pick<EntityRow, 'entityType' | 'identityKey'>) => ({
  entityType,
  identityKey,
});

const setsUnversioned = ({ mentionCount, lastReferencedAt, sourceMemoryIds }: UpdateEntity): boolean =>
  mentionCount !== undefined || lastReferencedAt !== undefined || sourceMemoryIds !== undefined;

type SameRelation = Pick<RelationRow, 'id' | 'weight' | 'metadata' | 'validFrom' | 'validTo'>;

/** What is given of a relation that is there: weight and metadata cannot be cleared. */
const givenOf = ({ weight, metadata, validFrom, validTo }: UpdateRelation): Partial<SameRelation> => ({
  ...(weight !== null && weight !== undefined && { weight }),
  ...(metadata && { metadata: metadata as RelationRow['metadata'] }),
  ...(validFrom !== undefined && { validFrom }),
  ...(validTo !== undefined && { validTo }),
});

/** @throws InputError for a relation that would never hold */
function demandPeriod({ validFrom, validTo }: Partial<SameRelation>): void {
  if (validFrom && validTo && validFrom >= validTo)
    throw invalidInput(['input', 'validTo'], 'must be later than valid_from');
}

interface Related {
  id: string;
  sourceEntityId: string;
  targetEntityId: string;
  relationType: string;
}

/** A relation is recorded with its source. */
function recordRelation(tx: Tx, verb: 'relate' | 'unrelate', place: AppNamespacePlace, relation: Related): void {
  const { id, sourceEntityId, targetEntityId, relationType } = relation;
  const { orgId, workspaceId, appId } = place;
  const data = { relation_id: id, target_entity_id: targetEntityId, relation_type: relationType };
  tx.audit({
    action: verb,
    resourceType: 'entity',
    resourceId: sourceEntityId,
    orgId,
    workspaceId,
    appId,
    metadata: data,
  });
  emitChange(tx, verb === 'relate' ? 'related' : 'unrelated', 'entity', { ...place, id: sourceEntityId }, data);
}

/** What an entity is known by after a change. */
function identityOf(
  before: Pick<EntityRow, 'name' | 'entityType' | 'metadata'>,
  { name, entityType, metadata }: UpdateEntity,
): Pick<EntityRow, 'entityType' | 'identityKey'> {
  return {
    entityType: entityType ?? before.entityType,
    identityKey: identityKeyOf(name ?? before.name, metadata ?? before.metadata),
  };
}
