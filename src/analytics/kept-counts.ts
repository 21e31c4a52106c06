import { words } from '../data/pages.ts';
import type { Sql } from '../data/sql.ts';
import { countersOfRuns, firstDayOfRuns } from './runs.ts';

/** How many resources a place has (spec, Analytics shapes). */
export interface ResourceCounts {
  sources: number;
  augmentations: number;
  endpoints: number;
  namespaces: number;
  apps: number;
  threads: number;
  actions: number;
  secrets: number;
  models: number;
}

interface Counter {
  counter: string;
  n: number;
}

/** The kept counters of a place. */
export class KeptCounts {
  readonly #counts: ReadonlyMap<string, number>;

  constructor(rows: readonly Counter[]) {
    this.#counts = new Map(rows.map(({ counter, n }) => [counter, n]));
  }

  /** The value of a counter; 0 if it never was anything else. */
  of(counter: string): number {
    return this.#counts.get(counter) ?? 0;
  }

  /** The counters `name …` by what follows, without zeros. */
  by(name: string): Record<string, number> {
    const start = `${name} `;
    const found = [...this.#counts].filter(([counter, n]) => counter.startsWith(start) && n !== 0);
    return Object.fromEntries(found.map(([counter, n]) => [counter.slice(start.length), n]));
  }
}

/** The numbers of resources. */
export const resourcesOf = (counts: KeptCounts): ResourceCounts => ({
  sources: counts.of('sources'),
  augmentations: counts.of('augmentations'),
  endpoints: counts.of('endpoints'),
  namespaces: counts.of('namespaces'),
  apps: counts.of('apps'),
  threads: counts.of('threads'),
  actions: counts.of('actions'),
  secrets: counts.of('secrets'),
  models: counts.of('models'),
});

const OF_PLACE = `select counter, sum(n)::float8 as n from place_counts where org_id = $1 and place_id = $2`;
const ALL_OF_PLACE = `${OF_PLACE} group by counter`;
const SOME_OF_PLACE = `${OF_PLACE} and counter = any($3::text[]) group by counter`;

/** All counters of a place: also those by types, of which there may be many. */
export async function readAllCounts(sql: Sql, orgId: string, placeId: string): Promise<KeptCounts> {
  return new KeptCounts(await sql.read<Counter>(ALL_OF_PLACE, [orgId, placeId]));
}

/** Some counters of a place. */
export async function readCounts(
  sql: Sql,
  orgId: string,
  placeId: string,
  counters: readonly string[],
): Promise<KeptCounts> {
  return new KeptCounts(await sql.read<Counter>(SOME_OF_PLACE, [orgId, placeId, counters]));
}

const SUMMARY = words('sources augmentations endpoints namespaces apps threads actions secrets models');

const OF_WORKSPACE = `${SOME_OF_PLACE} union all ${countersOfRuns('$2', '$4')}
  union all select 'workspaces', 1
  union all select 'users', count(*)::float8 from workspace_members where org_id = $1 and workspace_id = $2`;

/** What a workspace has, with its runs, and its members as `users`. */
export async function readWorkspace(sql: Sql, orgId: string, workspaceId: string): Promise<KeptCounts> {
  const values = [orgId, workspaceId, SUMMARY, firstDayOfRuns()];
  return new KeptCounts(await sql.read<Counter>(OF_WORKSPACE, values));
}

// what is in deleted workspaces does not count, but what ran there did run; the organization has its own models, and
// secrets beside those of its workspaces
const OF_ORGANIZATION = `select counter, sum(n)::float8 as n from place_counts
    where org_id = $1 and counter = any($2::text[]) and counter <> 'models' and place_id in
      (select id from workspaces where org_id = $1 and deleted_at is null union all select $1) group by counter
  union all ${countersOfRuns('$1', '$3')}
  union all select 'models', count(*)::float8 from logical_models where org_id = $1
  union all select 'workspaces', count(*)::float8 from workspaces where org_id = $1 and deleted_at is null
  union all select 'users', count(*)::float8 from organization_members where org_id = $1`;

/** What all workspaces of an organization have together, with their runs, its `workspaces` and its `users`. */
export async function readOrganization(sql: Sql, orgId: string): Promise<KeptCounts> {
  return new KeptCounts(await sql.read<Counter>(OF_ORGANIZATION, [orgId, SUMMARY, firstDayOfRuns()]));
}

// `NAME VALUE` counts by a text that callers choose. Locked rows are the latest, so that their sum is that of all that
// is deleted
const ZEROS = `with zeros as (
    select org_id, place_id, counter from place_counts where counter like '% %' group by 1, 2, 3 having sum(n) = 0),
  locked as (select c.* from place_counts c join zeros using (org_id, place_id, counter)
    order by c.org_id, c.place_id, c.counter, c.slot for update of c),
  emptied as (select org_id, place_id, counter from locked group by 1, 2, 3 having sum(n) = 0)
  delete from place_counts c using locked l join emptied using (org_id, place_id, counter)
    where (c.org_id, c.place_id, c.counter, c.slot) = (l.org_id, l.place_id, l.counter, l.slot)`;

const GONE = `delete from place_counts c where not exists (select 1 from workspaces w where w.id = c.place_id)
  and not exists (select 1 from apps a where a.id = c.place_id)
  and not exists (select 1 from namespaces n where n.id = c.place_id)
  and not exists (select 1 from organizations o where o.id = c.place_id)`;

/** Removes counts of places that are gone, and those by a text of which nothing is left. */
export const RETENTION_OF_COUNTS = [GONE, ZEROS];
