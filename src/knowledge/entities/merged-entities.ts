import type { QueryRunner } from '../../data/find-row.ts';
import type { LockStrength } from '../../data/locks.ts';
import type { PageArgs } from '../../data/page.ts';
import { loaderOf, Reads } from '../../data/reads.ts';
import type { ReadsOptions } from '../../data/reads-options.ts';
import type { ReadDeps } from '../../data/replica-reads.ts';
import type { RequestCache } from '../../data/request-cache.ts';
import type { ReadRunner } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { AppNamespacePlace, Checked } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';

/** Most ids of merged entities that an entity shows. */
export const MAX_MERGED = 100;

const LEADING = 'select m.id, m.entity_id as "entityId" from entity_merges m where m.id = any($1)';

/** An id of an entity that was merged, and the entity that it leads to: the last one, after several merges. */
interface Leading {
  id: string;
  entityId: string;
}

/** Reads of entities that also know the ids of those that were merged: they answer the entity that has them now. */
export class LeadingReads<Row extends { id: string }, Place extends object, Args extends PageArgs> extends Reads<
  Row,
  Place,
  Args
> {
  readonly #sql: ReadRunner;

  constructor(deps: ReadDeps, options: NoInfer<ReadsOptions<Row, Place, Args>>) {
    super(deps, options);
    this.#sql = deps.sql;
  }

  override find(context: RequestCache, place: Checked<Place>, id: string): Promise<Row | null> {
    return this.#leading(context, id, (known) => super.find(context, place, known));
  }

  override findInTenant(context: RequestCache, orgId: string, id: string): Promise<Row | null> {
    return this.#leading(context, id, (known) => super.findInTenant(context, orgId, known));
  }

  override findUnscoped(context: RequestCache, id: string): Promise<Row | null> {
    return this.#leading(context, id, (known) => super.findUnscoped(context, known));
  }

  /** The ids that lead to an entity because theirs were merged into it, the newest first. */
  mergedInto(context: RequestCache, id: string): Promise<string[]> {
    return loaderOf(context, 'merged into entities', async (keys) => {
      const rows = await this.#sql.read<{ ids: string[] }>(
        `select array(select m.id from entity_merges m where m.entity_id = g.id order by m.id desc limit ${MAX_MERGED})
          as ids from unnest($1::text[]) with ordinality g(id, at) order by g.at`,
        [keys.map(([of]) => of)],
      );
      return rows.map(({ ids }) => ids);
    }).load([id]);
  }

  /** Only an id that is not there is looked for among the merged ones: what was never merged costs no more. */
  async #leading(context: RequestCache, id: string, find: (id: string) => Promise<Row | null>): Promise<Row | null> {
    const row = await find(id);
    if (row) return row;
    const leadsTo = await loaderOf(context, 'entities of merged ids', async (keys) => {
      const rows = await this.#sql.read<Leading>(LEADING, [keys.map(([of]) => of)]);
      const known = new Map(rows.map((each) => [each.id, each.entityId]));
      return keys.map(([of]) => known.get(of!) ?? null);
    }).load([id]);
    return leadsTo === null ? null : find(leadsTo);
  }
}

const OF_PLACE = `${LEADING} and m.org_id = $2 and m.app_id = $3 and m.namespace_id = $4`;
const valuesFor = ({ orgId, appId, namespaceId }: AppNamespacePlace, ids: readonly string[]) => [
  [...ids],
  orgId,
  appId,
  namespaceId,
];

/** The entities that ids of merged ones lead to in a place, by these ids; others are not in it. */
export async function leadingFrom(
  db: QueryRunner,
  place: AppNamespacePlace,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db.query<Leading>({ text: OF_PLACE, values: valuesFor(place, ids) });
  return new Map(rows.map(({ id, entityId }) => [id, entityId]));
}

/**
 * Locks the entities that ids lead to. @returns their own ids, in the same order
 * @throws RESOURCE_NOT_FOUND with the given id that leads to none
 */
export async function lockLeading(
  tx: Tx,
  place: AppNamespacePlace,
  ids: readonly string[],
  strength: LockStrength,
): Promise<string[]> {
  const { appId, namespaceId } = place;
  const lock = async (some: readonly string[]): Promise<ReadonlySet<string>> => {
    const rows = await tx.lockAll(
      'entities',
      statement`t.id = any(${[...some]}) and t.app_id = ${appId} and t.namespace_id = ${namespaceId}`,
      strength,
    );
    return new Set(rows.map(({ id }) => id));
  };
  const found = await lock(ids);
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return [...ids];
  // merged before, or while this change waited for them
  const leading = await leadingFrom(tx, place, missing);
  const others = leading.size > 0 ? await lock([...new Set(leading.values())]) : new Set<string>();
  return ids.map((id) => {
    if (found.has(id)) return id;
    const own = leading.get(id);
    if (own === undefined || !others.has(own)) throw notFound('entity', id);
    return own;
  });
}

/**
 * Asks about entities, and once more with what their ids lead to if one is not there.
 * @param ask answers `null` if one is not there
 * @throws RESOURCE_NOT_FOUND with the given id that leads to none
 */
export async function askLeading<T>(
  reads: ReadRunner,
  place: AppNamespacePlace,
  ids: readonly string[],
  ask: (ids: readonly string[]) => Promise<T | null>,
): Promise<T> {
  const answer = await ask(ids);
  if (answer !== null) return answer;
  const rows = await reads.read<Leading>(
    `select g.id, coalesce(e.id, '') as "entityId" from unnest($1::text[]) g(id)
      left join entity_merges m on m.id = g.id and m.org_id = $2 and m.app_id = $3 and m.namespace_id = $4
      left join entities e on e.id = coalesce(m.entity_id, g.id) and e.org_id = $2 and e.app_id = $3
        and e.namespace_id = $4`,
    valuesFor(place, ids),
  );
  const leading = new Map(rows.map(({ id, entityId }) => [id, entityId]));
  const missing = ids.find((id) => !leading.get(id));
  const again = missing === undefined ? await ask(ids.map((id) => leading.get(id)!)) : null;
  if (again === null) throw notFound('entity', missing ?? ids[0]!);
  return again;
}
