import type { Sql } from '../../data/sql.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import type { StoredObject } from '../../platform/storage/store.ts';

const BATCH = 500;

/** Where the rows of files and the store do not agree. */
export interface FileFinding {
  /** The key in the store. */
  key: string;
  /** The file; `null` if no row knows the object. */
  fileId: string | null;
  reason: 'no row' | 'no object' | 'another size';
}

/** What was compared. */
export interface ExaminedFiles {
  rows: number;
  objects: number;
}

interface FileRow {
  id: string;
  key: string;
  state: string;
  sizeBytes: number | null;
}

const COLUMNS = `id, storage_key as key, state, size_bytes::float8 as "sizeBytes"`;
const OF_KEYS = `select ${COLUMNS} from files where storage_key = any($1)`;
const KEPT_AFTER = `select ${COLUMNS} from files where state = 'kept' and id > $1 order by id limit ${BATCH}`;

/**
 * Compares the rows of files with the store, in both directions. Services may keep running: a row is written before the
 * bytes of its file and removed after them, and whatever does not agree is looked at again.
 */
export async function examineFiles(
  sql: Sql,
  storage: Storage,
  onFinding: (finding: FileFinding) => void,
): Promise<ExaminedFiles> {
  const seen = new Set<string>();
  for await (const objects of batchesOf(storage.list())) {
    const rows = new Map(
      (await sql.read<FileRow>(OF_KEYS, [objects.map(({ key }) => key)])).map((row) => [row.key, row]),
    );
    for (const { key, sizeBytes } of objects) {
      seen.add(key);
      const row = rows.get(key);
      if (!row) {
        if (await storage.exists(key)) onFinding({ key, fileId: null, reason: 'no row' });
      } else if (row.state === 'kept' && row.sizeBytes !== sizeBytes)
        onFinding({ key, fileId: row.id, reason: 'another size' });
    }
  }
  let count = 0;
  let after: string | undefined = '';
  while (after !== undefined) {
    const rows: FileRow[] = await sql.read<FileRow>(KEPT_AFTER, [after]);
    for (const { id, key } of rows) {
      // stored meanwhile, or removed together with its row
      if (seen.has(key) || (await storage.exists(key))) continue;
      const [still] = await sql.read<FileRow>(OF_KEYS, [[key]]);
      if (still?.state === 'kept') onFinding({ key, fileId: id, reason: 'no object' });
    }
    count += rows.length;
    after = rows.length === BATCH ? rows.at(-1)!.id : undefined;
  }
  return { rows: count, objects: seen.size };
}

async function* batchesOf(objects: AsyncIterable<StoredObject>): AsyncGenerator<StoredObject[], void, void> {
  let batch: StoredObject[] = [];
  for await (const object of objects) {
    batch.push(object);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
