import { words } from '../../data/paging.ts';
import type { RoutedReads, Sql } from '../../data/sql.ts';
import { modelsOf } from '../../models/views.ts';
import { liveWorkspaces } from '../../tenancy/views.ts';
import { countersOfRuns } from './runs.ts';

/** How many resources a place has (spec, Analytics shapes; artifacts are beyond). */
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
  artifacts: number;
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
  artifacts: counts.of('artifacts'),
});

const ALL_OF_PLACE = `select counter, sum(n)::float8 as n from place_counts
  where org_id = $1 and place_id = $2 group by counter`;

/** All counters of a place: also those by types, of which there may be many. */
export async function readAllCounts(sql: RoutedReads, orgId: string, placeId: string): Promise<KeptCounts> {
  return new KeptCounts(await sql.read<Counter>(ALL_OF_PLACE, [orgId, placeId]));
}

const listed = (names: string): string =>
  `(${words(names)
    .map((name) => `'${name}'`)
    .join(', ')})`;
const RESOURCES = 'sources augmentations endpoints namespaces apps threads actions secrets artifacts';
const STORAGE = 'storage.bytes';
const countersOf = (placeId: string, names: string): string => `select counter, sum(n)::float8 as n from place_counts
  where org_id = k.org_id and place_id = ${placeId} and counter in ${listed(names)} group by counter`;

/** What the artifacts of a place hold. */
export const storageOf = (counts: KeptCounts): number => counts.of(STORAGE);

/** Kinds of places that have numbers, and what is read of them. */
export type CountedKind = 'organization' | 'workspace' | 'app' | 'namespace' | 'actions of workspace';

/** A place; that of an app with its workspace. */
export interface CountedPlace {
  orgId: string;
  id: string;
  workspaceId?: string | undefined;
}

/** The counters of a place `k`. */
const TEXTS: Readonly<Record<CountedKind, string>> = {
  // what is in deleted workspaces does not count, but what ran there did run; the organization has its own models, and
  // secrets beside those of its workspaces
  organization: `select counter, sum(n)::float8 as n from place_counts
      where org_id = k.org_id and counter in ${listed(RESOURCES)} and place_id in
        (${liveWorkspaces('k.org_id')} union all select k.org_id)
      group by counter
    union all ${countersOfRuns('k.org_id', 'k.id')}
    union all ${countersOf('k.org_id', STORAGE)}
    union all select 'models', count(*)::float8 from (${modelsOf('k.org_id')}) m
    union all select 'workspaces', count(*)::float8 from (${liveWorkspaces('k.org_id')}) w
    union all select 'users', count(*)::float8 from organization_members where org_id = k.org_id`,
  workspace: `${countersOf('k.id', `${RESOURCES} models ${STORAGE}`)} union all ${countersOfRuns('k.org_id', 'k.id')}
    union all select 'workspaces', 1
    union all select 'users', count(*)::float8 from workspace_members where org_id = k.org_id and workspace_id = k.id`,
  app: `${countersOf('k.id', 'augmentations endpoints releases')}
    union all ${countersOf('k.workspace_id', 'namespaces')}`,
  namespace: countersOf('k.id', 'threads sources'),
  'actions of workspace': countersOf('k.id', 'actions actions.enabled actions.trigger actions.scheduled'),
};

/**
 * The numbers of places of one kind, in the same order: of an organization, of its live workspaces together, with
 * `workspaces` and `users`.
 */
export async function readCounts(sql: Sql, kind: CountedKind, places: readonly CountedPlace[]): Promise<KeptCounts[]> {
  const text = `select k.at::int - 1 as at, r.counter, r.n
    from unnest($1::text[], $2::text[], $3::text[]) with ordinality k(org_id, id, workspace_id, at)
    cross join lateral (${TEXTS[kind]}) r`;
  const rows = await sql.read<Counter & { at: number }>(text, [
    places.map(({ orgId }) => orgId),
    places.map(({ id }) => id),
    places.map(({ workspaceId }) => workspaceId ?? null),
  ]);
  const found = places.map((): Counter[] => []);
  for (const row of rows) found[row.at]!.push(row);
  return found.map((counters) => new KeptCounts(counters));
}

// `NAME VALUE` counts by a text that callers choose. What is deleted adds up to nothing: its rows are locked, hence the
// latest. Rows that another transaction changes are left for the next time
const ZEROS = `with zeros as (
    select org_id, place_id, counter from place_counts where counter like '% %' group by 1, 2, 3 having sum(n) = 0),
  locked as (select c.* from place_counts c join zeros using (org_id, place_id, counter)
    order by c.org_id, c.place_id, c.counter, c.slot for update of c skip locked),
  emptied as (select org_id, place_id, counter from locked group by 1, 2, 3 having sum(n) = 0)
  delete from place_counts c using locked l join emptied using (org_id, place_id, counter)
    where (c.org_id, c.place_id, c.counter, c.slot) = (l.org_id, l.place_id, l.counter, l.slot)`;

const GONE = `delete from place_counts c where not exists (select 1 from workspaces w where w.id = c.place_id)
  and not exists (select 1 from apps a where a.id = c.place_id)
  and not exists (select 1 from namespaces n where n.id = c.place_id)
  and not exists (select 1 from organizations o where o.id = c.place_id)`;

/** Removes counts of places that are gone, and those by a text of which nothing is left. */
export const RETENTION_OF_COUNTS = [GONE, ZEROS];
