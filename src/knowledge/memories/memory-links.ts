import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { AppNamespacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { lockLeading } from '../entities/merged-entities.ts';

/**
 * Links an entity to memories of its app and namespace.
 * @param options.replaces all other links of the entity end
 * @throws RESOURCE_NOT_FOUND `memory`
 */
export async function linkMemories(
  tx: Tx,
  { appId, namespaceId }: AppNamespacePlace,
  entityId: string,
  memoryIds: readonly string[],
  { replaces = false }: { replaces?: boolean } = {},
): Promise<void> {
  const ids = [...new Set(memoryIds)];
  const found = await tx.lockAll(
    'memories',
    statement`t.id = any(${ids}) and t.app_id = ${appId} and t.namespace_id = ${namespaceId}`,
    'key share',
  );
  const missing = ids.find((id) => !found.some((memory) => memory.id === id));
  if (missing !== undefined) throw notFound('memory', missing);
  if (replaces) tx.remove('memory_entities', { entityId });
  tx.write(statement`insert into memory_entities (memory_id, entity_id, namespace_id, app_id)
    select id, ${entityId}, ${namespaceId}, ${appId} from unnest(${ids}::text[]) id`);
}

/**
 * Links a memory to entities of its app and namespace, which the caller has locked.
 * @param options.replaces all other links of the memory end
 */
export function linkEntities(
  tx: Tx,
  { appId, namespaceId }: AppNamespacePlace,
  memoryId: string,
  entityIds: readonly string[],
  { replaces = false }: { replaces?: boolean } = {},
): void {
  if (replaces) tx.remove('memory_entities', { memoryId });
  tx.write(statement`insert into memory_entities (memory_id, entity_id, namespace_id, app_id)
    select ${memoryId}, id, ${namespaceId}, ${appId} from unnest(${[...new Set(entityIds)]}::text[]) id`);
}

/**
 * Locks entities of an app and namespace against being deleted.
 * @returns their ids: others than the given ones where entities were merged
 * @throws RESOURCE_NOT_FOUND `entity`
 */
export const demandEntities = (tx: Tx, place: AppNamespacePlace, entityIds: readonly string[]): Promise<string[]> =>
  lockLeading(tx, place, entityIds, 'key share');
