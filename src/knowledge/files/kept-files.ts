import type { Storage } from '../../platform/storage/storage.ts';

/** A file that is kept, as its row says it. */
export interface KeptObject {
  key: string;
  sizeBytes: number;
}

const BATCH = 500;
const KEPT_AFTER = `select storage_key as key, size_bytes::float8 as "sizeBytes" from files
  where state = 'kept' and storage_key > $1 order by storage_key limit ${BATCH}`;

/**
 * Every file that is kept.
 * @param ask runs a statement, in the state of the database that the caller reads
 */
export async function* keptFiles(
  ask: (text: string, values: unknown[]) => Promise<KeptObject[]>,
): AsyncGenerator<KeptObject, void, void> {
  for (let after = ''; ; ) {
    const rows = await ask(KEPT_AFTER, [after]);
    yield* rows;
    if (rows.length < BATCH) return;
    after = rows.at(-1)!.key;
  }
}

const NEWEST = `select storage_key as key from files where state = 'kept' order by id desc limit 20`;

/**
 * Whether a store has at least one of the newest files that are kept; `undefined` when none is.
 * @param ask runs a statement
 */
export async function hasKeptFiles(
  ask: (text: string, values: unknown[]) => Promise<Pick<KeptObject, 'key'>[]>,
  storage: Pick<Storage, 'exists'>,
): Promise<boolean | undefined> {
  const newest = await ask(NEWEST, []);
  for (const { key } of newest) if (await storage.exists(key)) return true;
  return newest.length === 0 ? undefined : false;
}
