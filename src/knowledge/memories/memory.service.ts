import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { deleteRow, type FieldsOf, type NewFieldsOf, newRow, updateRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import { type Memory as MemoryRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppNamespacePlace, AppPlace, Checked, Deleted, NamespacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { demandPlace } from '../entities/entity-place.ts';
import { demandEntities, linkEntities } from './memory-links.ts';

/** Most entities that a memory is about. */
export const MAX_ENTITIES = 50;

/** A memory as callers see it. */
export interface Memory extends MemoryRow {
  /** The entities that it is about, newest first. */
  entityIds: string[];
}

interface Links {
  /** Replaces the links to entities. */
  entityIds?: string[] | null;
}

type UpdateMemory = FieldsOf<'memories'> & Links;
type CreateMemory = NewFieldsOf<'memories'> & Links;

const memories = {
  kind: 'memory',
  from: 'memories',
  columns: {
    ...columnsOf(Object.values(Prisma.MemoryScalarFieldEnum)),
    // links can be made from the side of an entity too, where nothing counts those of a memory
    entityIds: `array(select l.entity_id from memory_entities l where l.memory_id = t.id
      order by l.entity_id desc limit ${MAX_ENTITIES})`,
  },
} as const;

/** Memories: what an app remembers in a namespace, each linked to the entities that it is about. */
export class MemoryService {
  readonly reads: Reads<Memory, AppNamespacePlace>;
  /** The memories of an app in all namespaces. */
  readonly ofApp: Reads<Memory, AppPlace>;
  /** The memories of a namespace in all apps. */
  readonly ofNamespace: Reads<Memory, NamespacePlace>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, { ...memories, below: ['orgId', 'workspaceId', 'appId', 'namespaceId'] });
    this.ofApp = new Reads(deps, { ...memories, name: 'memories_of_app', below: ['orgId', 'workspaceId', 'appId'] });
    this.ofNamespace = new Reads(deps, {
      ...memories,
      name: 'memories_of_namespace',
      below: ['orgId', 'workspaceId', 'namespaceId'],
    });
  }

  /** @throws RESOURCE_NOT_FOUND `entity` */
  async create(caller: Caller, place: Checked<AppNamespacePlace>, input: CreateMemory): Promise<Memory> {
    const id = newId('memory');
    const row = { id, ...place };
    const { entityIds: linked, ...values } = input;
    const entityIds = linked ?? [];
    await this.#deps.changes.run(caller, async (tx) => {
      demandPlace(tx, place);
      const about = entityIds.length > 0 ? await demandEntities(tx, place, entityIds) : [];
      tx.insert('memories', { ...newRow('memories', values), ...row, createdBy: caller.principal.userId });
      if (about.length > 0) linkEntities(tx, place, id, about);
      recordChange(tx, 'create', 'memory', row);
    });
    return this.reads.get(noCache, place, id);
  }

  /** Changes the given fields; omitted ones stay. @throws RESOURCE_NOT_FOUND `memory` or `entity` */
  async update(caller: Caller, place: Checked<AppNamespacePlace>, id: string, input: UpdateMemory): Promise<Memory> {
    const { appId, namespaceId } = place;
    const { entityIds, ...values } = input;
    // a memory that is missing is told before an entity that is
    if (entityIds?.length) await this.reads.get(noCache, place, id);
    await updateRow(this.#deps, caller, memories, { id, ...place }, input, async (tx) => {
      if (!entityIds) return values;
      const about = entityIds.length > 0 ? await demandEntities(tx, place, entityIds) : [];
      const key = { id, appId, namespaceId };
      const { resourceVersion } = await tx.lock('memories', key, 'no key update', () => notFound('memory', id));
      linkEntities(tx, place, id, about, { replaces: true });
      // what it is about is part of it
      return { ...values, resourceVersion: resourceVersion + 1 };
    });
    return this.reads.get(noCache, place, id);
  }

  /** @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<AppNamespacePlace>, id: string): Promise<Deleted<AppNamespacePlace>> {
    return deleteRow(this.#deps, caller, memories, { id, ...place });
  }
}
