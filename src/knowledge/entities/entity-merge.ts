import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Entity as EntityRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { alreadyExists, invalidInput, notFound } from '../../kernel/errors.ts';
import { lockImports } from './entity-place.ts';
import { identityKeyOf } from './identity-key.ts';
import { leadingFrom } from './merged-entities.ts';

/** Most entities that one merge takes. */
export const MAX_MERGES = 50;
/** Most aliases, and tags, that an entity may have by merges. */
const MAX_NAMES = 200;
/** Most relations that one merge moves: more would take longer than a statement may. */
const MAX_RELATIONS = 20_000;
const MAX_METADATA_BYTES = 16 * 1024;
const MAX_COUNT = 2_147_483_647;

/**
 * Merges entities into another one: their relations, memories, names and tags are its own from then on, and their ids
 * lead to it, as do the ids that led to them. Repeating it changes nothing.
 * @returns the id of the entity that is left
 * @throws RESOURCE_NOT_FOUND; RESOURCE_ALREADY_EXISTS like an update; FORBIDDEN without `entity:update`; InputError for
 * an entity that is merged into itself, and for more than one entity can have
 */
export async function mergeEntities(
  { changes, access }: Pick<ServiceDeps, 'changes' | 'access'>,
  caller: Caller,
  place: Checked<AppNamespacePlace>,
  id: string,
  mergedIds: readonly string[],
): Promise<string> {
  const own = mergedIds.indexOf(id);
  if (own >= 0) throw invalidInput(['input', 'mergedEntityIds', own], 'must be another entity');
  const { orgId, workspaceId, appId, namespaceId } = place;
  await access.requireWorkspace(caller, orgId, workspaceId, 'entity:update', { appId, namespaceId });
  const run = () => changes.run(caller, (tx) => mergeInto(tx, caller, place, id, mergedIds));
  return run().catch((error: unknown) => {
    // somebody created the same entity meanwhile: it is found now
    if (brokenUnique(error)) return run();
    throw error;
  });
}

async function mergeInto(
  tx: Tx,
  { principal: { userId } }: Caller,
  place: Checked<AppNamespacePlace>,
  id: string,
  mergedIds: readonly string[],
): Promise<string> {
  // imports and other merges wait, so what an id leads to stays until the end
  await lockImports(tx, place);
  const leading = await leadingFrom(tx, place, [id, ...mergedIds]);
  const [survivorId, ...given] = [id, ...mergedIds].map((each) => leading.get(each) ?? each) as [string, ...string[]];
  const others = [...new Set(given)].filter((each) => each !== survivorId);
  const rows = await lockEntities(tx, place, [survivorId, ...others]);
  const missing = [id, ...mergedIds].find((each) => !rows.has(leading.get(each) ?? each));
  if (missing !== undefined) throw notFound('entity', missing);
  await tx.expectVersion({ table: 'entities', key: { id: survivorId } });
  if (others.length === 0) return survivorId;
  const survivor = rows.get(survivorId)!;
  const together = mergedFields(
    survivor,
    others.map((each) => rows.get(each)!),
  );
  await refuseSame(tx, place, survivor, together.identityKey, others);
  await moveRelations(tx, survivorId, others);
  await moveLinks(tx, place, { id: survivorId, others, userId });
  // their names are free then
  await tx.query(statement`delete from entities where id = any(${others}::text[])`);
  // above the version of each: who has seen one of the others has not seen what it is now
  const resourceVersion = Math.max(...[...rows.values()].map((row) => row.resourceVersion)) + 1;
  tx.update('entities', { id: survivorId }, { ...together, resourceVersion });
  record(tx, place, survivorId, others);
  return survivorId;
}

async function lockEntities(
  tx: Tx,
  { appId, namespaceId }: AppNamespacePlace,
  ids: readonly string[],
): Promise<ReadonlyMap<string, EntityRow>> {
  const isThere = statement`t.id = any(${[...ids]}) and t.app_id = ${appId} and t.namespace_id = ${namespaceId}`;
  return new Map((await tx.lockAll('entities', isThere, 'update')).map((row) => [row.id, row]));
}

/** An entity that is not merged may be the same as what is left, because that has the external id of another one. */
async function refuseSame(
  tx: Tx,
  { appId, namespaceId }: AppNamespacePlace,
  { id, name, entityType }: EntityRow,
  identityKey: string,
  others: readonly string[],
): Promise<void> {
  const [same] = await tx.query<{ id: string }>(statement`select id from entities where app_id = ${appId}
    and namespace_id = ${namespaceId} and entity_type = ${entityType} and identity_key = ${identityKey}
    and id <> all(${[id, ...others]}::text[])`);
  if (same) throw alreadyExists('entity', 'name', name, same.id);
}

const keyOf = (name: string): string => name.normalize('NFC').toLowerCase();

/** The first of those that are the same but for their case. */
function distinct(texts: readonly string[]): string[] {
  const first = new Map<string, string>();
  for (const text of texts) if (!first.has(keyOf(text))) first.set(keyOf(text), text);
  return [...first.values()];
}

/** What the entity that is left has of the others: what it says itself comes first. */
function mergedFields(survivor: EntityRow, others: readonly EntityRow[]) {
  const all = [survivor, ...others];
  const names = [...survivor.aliases, ...others.flatMap(({ name, aliases }) => [name, ...aliases])];
  const aliases = distinct(names).filter((name) => keyOf(name) !== keyOf(survivor.name));
  const tags = distinct(all.flatMap((row) => row.tags));
  if (aliases.length > MAX_NAMES || tags.length > MAX_NAMES)
    throw invalidInput(['input', 'mergedEntityIds'], `together they would have more than ${MAX_NAMES} aliases or tags`);
  const metadata = Object.assign({}, ...all.map((row) => row.metadata).reverse()) as Record<string, unknown>;
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalidInput(['input', 'mergedEntityIds'], `their metadata would have more than ${MAX_METADATA_BYTES} bytes`);
  const latest = Math.max(...all.map(({ lastReferencedAt }) => lastReferencedAt?.getTime() ?? 0));
  return {
    aliases,
    tags,
    description: all.find(({ description }) => description !== null)?.description ?? null,
    importance: Math.max(...all.map(({ importance }) => importance)),
    mentionCount: Math.min(
      MAX_COUNT,
      all.reduce((sum, { mentionCount }) => sum + mentionCount, 0),
    ),
    lastReferencedAt: latest === 0 ? null : new Date(latest),
    metadata: metadata as never,
    identityKey: identityKeyOf(survivor.name, metadata),
  };
}

/** The relations `r` of entities `$2`, each once, with the ends that they have when they are those of `$1`. */
const MOVED = `(
    select x.id, x.relation_type, case when x.source_entity_id = any($2) then $1 else x.source_entity_id end as source,
      case when x.target_entity_id = any($2) then $1 else x.target_entity_id end as target
    from entity_relations x where x.id in (
      select o.id from entity_relations o where o.source_entity_id = any($2)
      union select i.id from entity_relations i where i.target_entity_id = any($2))
  ) r`;

/**
 * Relations of the others become those of the entity that is left. Those between them end, and so does one of which it
 * has the same already; of several that become the same, the oldest is left.
 */
async function moveRelations(tx: Tx, id: string, others: readonly string[]): Promise<void> {
  const [moved] = await tx.query<{ count: number }>({
    text: `with moved as materialized (select r.* from ${MOVED} limit ${MAX_RELATIONS + 1}), ended as (
        delete from entity_relations e using (
          select m.id, m.source = m.target or row_number() over (partition by m.source, m.target, m.relation_type
              order by m.id) > 1
            or exists (select from entity_relations k where k.source_entity_id = m.source
              and k.target_entity_id = m.target and k.relation_type = m.relation_type) as is_over
          from moved m) o
        where e.id = o.id and o.is_over)
      select count(*)::int as count from moved`,
    values: [id, others],
  });
  if (moved!.count > MAX_RELATIONS)
    throw invalidInput(['input', 'mergedEntityIds'], `together they have more than ${MAX_RELATIONS} relations`);
  await tx.query({
    text: `update entity_relations e set source_entity_id = r.source, target_entity_id = r.target
      from ${MOVED} where e.id = r.id`,
    values: [id, others],
  });
}

/** Memories of the others are about the entity that is left, and ids lead to it: theirs, and those that led to them. */
async function moveLinks(
  tx: Tx,
  { orgId, appId, namespaceId }: AppNamespacePlace,
  { id, others, userId }: { id: string; others: readonly string[]; userId: string },
): Promise<void> {
  await tx.query(statement`with linked as (
      insert into memory_entities (memory_id, entity_id, namespace_id, app_id)
      select distinct m.memory_id, ${id}, ${namespaceId}, ${appId} from memory_entities m
      where m.entity_id = any(${[...others]}::text[]) on conflict do nothing
    ), led as (
      update entity_merges set entity_id = ${id} where entity_id = any(${[...others]}::text[])
    )
    insert into entity_merges (id, org_id, app_id, namespace_id, entity_id, merged_by)
    select o, ${orgId}, ${appId}, ${namespaceId}, ${id}, ${userId} from unnest(${[...others]}::text[]) o`);
}

function record(tx: Tx, place: AppNamespacePlace, id: string, others: readonly string[]): void {
  const { orgId, workspaceId, appId } = place;
  const metadata = { merged_entity_ids: others };
  tx.audit({ action: 'merge', resourceType: 'entity', resourceId: id, orgId, workspaceId, appId, metadata });
  emitChange(tx, 'updated', 'entity', { ...place, id });
  for (const other of others) emitChange(tx, 'merged', 'entity', { ...place, id: other }, { into_entity_id: id });
}
