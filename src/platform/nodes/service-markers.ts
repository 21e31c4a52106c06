import type { Database } from '../postgres/database.ts';

const JOINING_LOCK = 7_206_003;
const MARKERS = 'select name, value from service_markers';
const SET = `insert into service_markers (name, value) values ($1, $2)
  on conflict (name) do update set value = excluded.value, set_at = now()`;
const ADVANCE = `update service_markers set value = $2, set_at = now()
  where name = $1 and value = any($3::text[]) and value <> $2`;

/** What nodes have in common, by the name of its row. */
export type MarkerName = 'app_secret' | 'signing_keys' | 'files';

/** A key that all nodes have: the one in use, and those that this node knows of before. All are fingerprints. */
export interface SharedKey {
  name: MarkerName;
  current: string;
  former: readonly string[];
}

/** Runs a statement within a transaction. */
type Ask = <R extends object>(text: string, values?: unknown[]) => Promise<R[]>;

/** Work on the markers, of one node at a time. What it writes is there when it resolves. */
export async function withMarkers<T>(
  { transaction }: Pick<Database, 'transaction'>,
  work: (markers: ReadonlyMap<string, string>, set: (name: MarkerName, value: string) => Promise<void>) => Promise<T>,
): Promise<T> {
  return transaction(async (open) => {
    const ask: Ask = async <R>(text: string, values: unknown[] = []) => {
      const [result] = await open.send([{ text, values }]);
      return result!.rows as R[];
    };
    await ask('select pg_advisory_xact_lock($1)', [JOINING_LOCK]);
    const rows = await ask<{ name: string; value: string }>(MARKERS);
    const done = await work(new Map(rows.map(({ name, value }) => [name, value])), async (name, value) => {
      await ask(SET, [name, value]);
    });
    await open.commit([]);
    return done;
  });
}

/** The markers as they are. */
export async function readMarkers(pool: Database['pool']): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ name: string; value: string }>(MARKERS);
  return new Map(rows.map(({ name, value }) => [name, value]));
}

/** The names of those keys that the service has otherwise. One that was renewed here is none of them. */
export const differing = (markers: ReadonlyMap<string, string>, keys: readonly SharedKey[]): MarkerName[] =>
  keys
    .filter(({ name, current, former }) => {
      const known = markers.get(name);
      return known !== undefined && known !== current && !former.includes(known);
    })
    .map(({ name }) => name);

/**
 * Enters the keys of a node that starts: those of the first one become those of the service, and one that a node has
 * renewed takes the place of its former one.
 * @returns the names of those that are others: nothing was written then
 */
export const enterKeys = (database: Pick<Database, 'transaction'>, keys: readonly SharedKey[]): Promise<MarkerName[]> =>
  withMarkers(database, async (markers, set) => {
    const others = differing(markers, keys);
    if (others.length > 0) return others;
    for (const { name, current } of keys) if (markers.get(name) !== current) await set(name, current);
    return [];
  });

/** Notes that a key was renewed while nodes run, unless they have another one. */
export async function advanceKey(
  pool: Pick<Database['pool'], 'query'>,
  { name, current, former }: SharedKey,
): Promise<void> {
  await pool.query(ADVANCE, [name, current, former]);
}
