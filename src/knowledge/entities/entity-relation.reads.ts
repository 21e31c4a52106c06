import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf, selectList, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { ReadRunner } from '../../data/sql.ts';
import type { EntityRelation as RelationRow } from '../../generated/prisma/client.ts';
import type { AppNamespacePlace, OrganizationPlace } from '../../kernel/checked-place.ts';

/** Most relations that an entity shows at once. */
export const MAX_NEWEST = 200;

/**
 * What the entities of one level of an answer show of their newest relations: entities with many relations cannot make
 * an answer of any size, and five of each are always shown.
 */
export const newestShare = { together: 2_500, least: 5 } as const;

/** A relation as one of its entities sees it: the target is the other one, whichever way the relation points. */
export interface SeenRelation
  extends Pick<
    RelationRow,
    | 'id'
    | 'orgId'
    | 'relationType'
    | 'weight'
    | 'metadata'
    | 'validFrom'
    | 'validTo'
    | 'createdBy'
    | 'createdAt'
    | 'resourceVersion'
  > {
  /** The entity that sees it. */
  entityId: string;
  /** `outgoing` if the entity is its source, `incoming` if it is its target. */
  direction: 'outgoing' | 'incoming';
  targetEntityId: string;
  targetName: string;
}

/** An entity of a tenant. */
export interface EntityPlace extends OrganizationPlace {
  entityId: string;
}

const own = columnsOf(
  words('id orgId relationType weight metadata validFrom validTo createdBy createdAt resourceVersion'),
);

/** A relation `t`, as its source sees it. */
export const outgoing = {
  from: 'entity_relations t join entities o on o.id = t.target_entity_id',
  columns: {
    ...own,
    entityId: 't.source_entity_id',
    direction: `'outgoing'`,
    targetEntityId: 't.target_entity_id',
    targetName: 'o.name',
  },
} as const;

/** A relation `t`, as its target sees it. */
const incoming = {
  from: 'entity_relations t join entities o on o.id = t.source_entity_id',
  columns: {
    ...own,
    entityId: 't.target_entity_id',
    direction: `'incoming'`,
    targetEntityId: 't.source_entity_id',
    targetName: 'o.name',
  },
} as const;

const selectSeen = ({ from, columns }: typeof outgoing | typeof incoming, ids: string) => `
  select ${selectList(columns)} from ${from}
  where t.id = any(${ids}) and t.org_id = $1 and t.app_id = $2 and t.namespace_id = $3`;
const SEEN = `${selectSeen(outgoing, '$4')} union all ${selectSeen(incoming, '$5')}`;

/** Relations by their ids: some as their sources see them, others as their targets do. In no order. */
export const seenRelations = (
  reads: ReadRunner,
  { orgId, appId, namespaceId }: AppNamespacePlace,
  bySource: readonly string[],
  byTarget: readonly string[],
): Promise<SeenRelation[]> => reads.read<SeenRelation>(SEEN, [orgId, appId, namespaceId, bySource, byTarget]);

/** The relations of entities in both directions, newest first. */
export const relationReads = (deps: ServiceDeps): Reads<SeenRelation, EntityPlace> =>
  new Reads(deps, {
    kind: 'entity_relation',
    name: 'entity_relations',
    ...outgoing,
    below: { orgId: 't.org_id', entityId: 't.source_entity_id' },
    also: { ...incoming, below: { orgId: 't.org_id', entityId: 't.target_entity_id' } },
  });
