import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { type Entity as EntityRow, Prisma } from '../../generated/prisma/client.ts';
import type { AppNamespacePlace, AppPlace, NamespacePlace } from '../../kernel/checked-place.ts';
import { LeadingReads } from './merged-entities.ts';

/** Most memories that an entity shows. */
export const MAX_MEMORIES = 100;

/** An entity as callers see it. */
export interface Entity extends Omit<EntityRow, 'identityKey'> {
  /** The memories that are about it, newest first, at most {@link MAX_MEMORIES}. */
  sourceMemoryIds: string[];
}

/** The filters of a list of entities. */
export interface EntityFilters {
  entityType?: string | null;
  /** The name, as far as names are compared. */
  name?: string | null;
  alias?: string | null;
  tag?: string | null;
  /** `metadata.external_id`. */
  externalId?: string | null;
  minImportance?: number | null;
}

/** What finds an alias, a tag or an external id of an entity `t` by an index. */
export const LOOKUP_KEYS = 'entity_lookup_keys(t.aliases, t.tags, t.metadata)';
const hasKey = (kind: 'a' | 't' | 'x') => `${LOOKUP_KEYS} @> array['${kind}:' || entity_name_key(?)]`;

const { identityKey: _, ...own } = columnsOf(Object.values(Prisma.EntityScalarFieldEnum));

/** The columns of an entity `t`. */
export const entityColumns: Readonly<Record<keyof Entity, string>> = {
  ...own,
  // part of the row's own statement, so that the number of statements does not depend on the size of the page
  sourceMemoryIds: `array(select l.memory_id from memory_entities l where l.entity_id = t.id
    order by l.memory_id desc limit ${MAX_MEMORIES})`,
};

const entities = {
  kind: 'entity',
  from: 'entities',
  columns: entityColumns,
  filters: ({ entityType, name, alias, tag, externalId, minImportance }: EntityFilters) => ({
    't.entity_type = ?': entityType,
    'entity_name_key(t.name) = entity_name_key(?)': name,
    [hasKey('a')]: alias,
    [hasKey('t')]: tag,
    [hasKey('x')]: externalId,
    't.importance >= ?': minImportance,
  }),
} as const;

/** The entities of an app in a namespace, and of each of the two alone. */
export const entityReads = (
  deps: ServiceDeps,
): {
  reads: LeadingReads<Entity, AppNamespacePlace, PageArgs & EntityFilters>;
  ofApp: Reads<Entity, AppPlace, PageArgs & EntityFilters>;
  ofNamespace: Reads<Entity, NamespacePlace, PageArgs & EntityFilters>;
} => ({
  reads: new LeadingReads(deps, { ...entities, below: ['orgId', 'workspaceId', 'appId', 'namespaceId'] }),
  ofApp: new Reads(deps, { ...entities, name: 'entities_of_app', below: ['orgId', 'workspaceId', 'appId'] }),
  ofNamespace: new Reads(deps, {
    ...entities,
    name: 'entities_of_namespace',
    below: ['orgId', 'workspaceId', 'namespaceId'],
  }),
});
