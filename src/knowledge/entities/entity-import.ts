import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { type Statement, statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { alreadyExists, InputError, type InputIssue, invalidInput, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { alike } from './entity-matching.ts';
import { demandPlace, lockImports } from './entity-place.ts';
import {
  checkedEntities,
  type GivenEntity,
  type GivenRelation,
  type ImportOutcome,
  type ImportPlan,
  identityOfGiven,
  planImport,
} from './import-plan.ts';
import { leadingFrom } from './merged-entities.ts';

/** Most issues that one answer lists. */
const SHOWN = 50;
const ATTEMPTS = 3;

/** Entities and relations to create or change in one change. */
export interface EntityImport {
  entities: GivenEntity[];
  relations?: GivenRelation[] | null;
}

/** What an import did. */
export interface EntityImportResult {
  entitiesCreated: number;
  entitiesUpdated: number;
  entitiesUnchanged: number;
  relationsCreated: number;
  relationsUpdated: number;
  relationsUnchanged: number;
  /** In the order in which they were given. */
  entities: { orgId: string; key: string | null; entityId: string; outcome: ImportOutcome }[];
}

/**
 * Creates and changes entities and relations in one change: all of them, or nothing. A few statements do it, whatever
 * their number.
 * @throws InputError with the place of each entity and relation that is wrong; FORBIDDEN without `entity:create`
 */
export async function importEntities(
  { changes, access }: Pick<ServiceDeps, 'changes' | 'access'>,
  caller: Caller,
  place: Checked<AppNamespacePlace>,
  input: EntityImport,
): Promise<EntityImportResult> {
  const { entities, issues } = checkedEntities(input.entities);
  const relations = input.relations ?? [];
  if (entities.length + relations.length === 0) throw invalidInput(['input'], 'must have entities or relations');
  refuse(issues);
  const { orgId, workspaceId, appId, namespaceId } = place;
  await access.requireWorkspace(caller, orgId, workspaceId, 'entity:create', { appId, namespaceId });
  for (let attempt = 1; ; attempt++)
    try {
      return await changes.run(caller, (tx) => importInto(tx, caller, place, entities, relations));
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      // an entity of such a name was created meanwhile: the next attempt finds it
      if (attempt === ATTEMPTS) throw alreadyExists('entity', 'name', entities[0]?.name ?? '');
    }
}

async function importInto(
  tx: Tx,
  caller: Caller,
  place: Checked<AppNamespacePlace>,
  givenEntities: readonly GivenEntity[],
  givenRelations: readonly GivenRelation[],
): Promise<EntityImportResult> {
  await lockImports(tx, place);
  demandPlace(tx, place);
  const [entities, relations] = await led(tx, place, givenEntities, givenRelations);
  const ends = endsOf(relations);
  const ids = idsOf([...entities, ...ends]);
  const names = ends.flatMap(({ name }) => name ?? []);
  const known = await tx.lockAll(
    'entities',
    alike(place, entities.map(identityOfGiven), { ids: [...new Set(ids)], names }),
    'no key update',
  );
  const { plan, issues } = planImport(entities, relations, known);
  refuse(issues);
  const of = (outcome: ImportOutcome) => plan.entities.filter((each) => each.outcome === outcome);
  const [created, updated] = [of('created'), of('updated')];
  const userId = caller.principal.userId;
  if (created.length > 0) tx.write(insertionOf(place, created, userId));
  if (updated.length > 0) tx.write(updateOf(updated));
  const related = relations.length > 0 ? await relate(tx, place, plan.relations, userId) : { created: 0, updated: 0 };
  const result = {
    entitiesCreated: created.length,
    entitiesUpdated: updated.length,
    entitiesUnchanged: of('unchanged').length,
    relationsCreated: related.created,
    relationsUpdated: related.updated,
    relationsUnchanged: plan.relations.length - related.created - related.updated,
    entities: plan.entities.map(({ row, outcome }, at) => ({
      orgId: place.orgId,
      key: entities[at]!.key ?? null,
      entityId: row.id,
      outcome,
    })),
  };
  recordImport(tx, place, plan, result);
  return result;
}

const endsOf = (relations: readonly GivenRelation[]) => relations.flatMap(({ source, target }) => [source, target]);
const idsOf = (named: readonly { id?: string | null }[]): string[] => named.flatMap(({ id }) => id ?? []);

/** The same with the ids that given ones lead to, where entities were merged. No statement if none is given. */
async function led(
  tx: Tx,
  place: AppNamespacePlace,
  entities: readonly GivenEntity[],
  relations: readonly GivenRelation[],
): Promise<[readonly GivenEntity[], readonly GivenRelation[]]> {
  const ids = [...new Set(idsOf([...entities, ...endsOf(relations)]))];
  const leading = ids.length > 0 ? await leadingFrom(tx, place, ids) : new Map<string, string>();
  if (leading.size === 0) return [entities, relations];
  const leads = <Named extends { id?: string | null }>(named: Named): Named =>
    named.id ? { ...named, id: leading.get(named.id) ?? named.id } : named;
  const moved = relations.map((of) => ({ ...of, source: leads(of.source), target: leads(of.target) }));
  return [entities.map(leads), moved];
}

function recordImport(tx: Tx, place: AppNamespacePlace, plan: ImportPlan, result: EntityImportResult): void {
  const { orgId, workspaceId, appId } = place;
  const id = plan.entities[0]?.row.id ?? plan.relations[0]!.sourceEntityId;
  const data = {
    entities_created: result.entitiesCreated,
    entities_updated: result.entitiesUpdated,
    relations_created: result.relationsCreated,
    relations_updated: result.relationsUpdated,
  };
  tx.audit({ action: 'import', resourceType: 'entity', resourceId: id, orgId, workspaceId, appId, metadata: data });
  emitChange(tx, 'imported', 'entity', { ...place, id }, data);
}

type Planned = ImportPlan['entities'];
const rowsOf = (planned: Planned) => JSON.stringify(planned.map(({ row }) => row));
// rows of arrays cannot be given as arrays: `unnest` flattens them
const RECORD = `(id text, name text, "entityType" text, "identityKey" text, description text, aliases text[],
    tags text[], importance float8, metadata jsonb)`;

function insertionOf(place: AppNamespacePlace, planned: Planned, userId: string | null): Statement {
  const { orgId, workspaceId, appId, namespaceId } = place;
  return {
    text: `insert into entities (id, org_id, workspace_id, app_id, namespace_id, name, entity_type, identity_key,
        description, aliases, tags, importance, metadata, created_by)
      select id, $2, $3, $4, $5, name, "entityType", "identityKey", description, aliases, tags, importance, metadata, $6
      from jsonb_to_recordset($1::jsonb) x${RECORD}`,
    values: [rowsOf(planned), orgId, workspaceId, appId, namespaceId, userId],
  };
}

function updateOf(planned: Planned): Statement {
  return {
    text: `update entities t set name = x.name, entity_type = x."entityType", identity_key = x."identityKey",
        description = x.description, aliases = x.aliases, tags = x.tags, importance = x.importance,
        metadata = x.metadata, updated_at = clock_timestamp()
      from jsonb_to_recordset($1::jsonb) x${RECORD} where t.id = x.id`,
    values: [rowsOf(planned)],
  };
}

/** Creates relations, changes those that are there, and counts a mention of both ends of each new one. */
async function relate(
  tx: Tx,
  { orgId, workspaceId, appId, namespaceId }: AppNamespacePlace,
  relations: ImportPlan['relations'],
  userId: string | null,
): Promise<{ created: number; updated: number }> {
  const rows = JSON.stringify(relations.map((relation) => ({ ...relation, id: newId('entity_relation') })));
  const [done] = await tx.query<{ created: number; updated: number }>(statement`with given as materialized (
      select * from jsonb_to_recordset(${rows}::jsonb) x(id text, "sourceEntityId" text, "targetEntityId" text,
        "relationType" text, weight float8, metadata jsonb, "validFrom" timestamptz, "validTo" timestamptz)),
    changed as (
      update entity_relations r set weight = coalesce(g.weight, r.weight), metadata = coalesce(g.metadata, r.metadata),
        valid_from = coalesce(g."validFrom", r.valid_from), valid_to = coalesce(g."validTo", r.valid_to)
      from given g
      where r.source_entity_id = g."sourceEntityId" and r.target_entity_id = g."targetEntityId"
        and r.relation_type = g."relationType"
        and (g.weight <> r.weight or g.metadata <> r.metadata
          or coalesce(g."validFrom", r.valid_from) is distinct from r.valid_from
          or coalesce(g."validTo", r.valid_to) is distinct from r.valid_to)
      returning 1),
    made as (
      insert into entity_relations (id, org_id, workspace_id, app_id, namespace_id, source_entity_id, target_entity_id,
        relation_type, weight, metadata, valid_from, valid_to, created_by)
      select id, ${orgId}, ${workspaceId}, ${appId}, ${namespaceId}, "sourceEntityId", "targetEntityId",
        "relationType", coalesce(weight, 1), coalesce(metadata, '{}'), "validFrom", "validTo", ${userId}
      from given
      on conflict (source_entity_id, target_entity_id, relation_type) do nothing
      returning source_entity_id, target_entity_id),
    mentioned as (
      update entities e set mention_count = least(e.mention_count::bigint + m.n, 2147483647)::int,
        last_referenced_at = clock_timestamp()
      from (select id, count(*) as n from (
        select source_entity_id as id from made union all select target_entity_id from made) u group by id) m
      where e.id = m.id returning 1)
    select (select count(*)::int from made) as created, (select count(*)::int from changed) as updated,
      (select count(*) from mentioned)`);
  return done!;
}

function refuse(issues: readonly InputIssue[]): void {
  if (issues.length === 0) return;
  const more = issues.length - SHOWN;
  const rest = more > 0 ? [valueIssue(['input'], `has ${more} more errors`)] : [];
  throw new InputError([...issues.slice(0, SHOWN), ...rest]);
}
