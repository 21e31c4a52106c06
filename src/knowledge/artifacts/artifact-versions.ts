import { tableOf } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import type { Statement } from '../../data/writes.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import { type ApiError, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';

/** Locks an artifact until the transaction ends. The lock of a head is that of its chain. @throws RESOURCE_NOT_FOUND */
export async function lockArtifact(tx: Tx, id: string): Promise<ArtifactRow> {
  const row = await tx.lock('artifacts', { id }, 'no key update', () => notFound('artifact', id));
  if (row.deletedAt) throw notFound('artifact', id);
  return row;
}

/** The refusal of what only the head of a chain can do. */
export const notLatest = ({ id, rootArtifactId }: Pick<ArtifactRow, 'id' | 'rootArtifactId'>): ApiError =>
  conflict(
    'artifact',
    id,
    'not_latest_version',
    `'${id}' is an old version. Change its artifact '${rootArtifactId}' instead.`,
  );

const NUMBER_OF_NEW_ID = 2;

/** What differs in the row of an old version from the head that it was. */
const differing: Readonly<Record<string, string>> = {
  id: `$${NUMBER_OF_NEW_ID}`,
  is_latest: 'false',
  replaced_by_version: 't.version + 1',
  is_indexed: 'false',
  indexed_at: 'null',
  index_collection: 'null',
  index_error: 'null',
  index_attempts: '0',
  chunk_count: '0',
  embedding_model_id: 'null',
  promoted_to_source_id: 'null',
};

const columns = Object.values(tableOf('artifacts').columns);
const SNAPSHOT = `insert into artifacts (${columns.join(', ')})
  select ${columns.map((column) => differing[column] ?? `t.${column}`).join(', ')} from artifacts t where t.id = $1`;

/** Copies a locked head to a row of its own, before the head gets its next version. */
export const snapshotOf = ({ id }: Pick<ArtifactRow, 'id'>): Statement => ({
  text: SNAPSHOT,
  values: [id, newId('artifact')],
});

interface ArtifactLifetime {
  ttlSeconds: number | null;
  isPinned: boolean;
}

/** The columns of a lifetime that begins now. What is pinned does not expire. */
export const lifetimeOf = ({ ttlSeconds, isPinned }: ArtifactLifetime) => ({
  ttlSeconds,
  isPinned,
  expiresAt: isPinned || ttlSeconds === null ? null : new Date(Date.now() + ttlSeconds * 1_000),
  expiryNoticedAt: null,
});

/** The columns of the lifetime, if the caller changes it; `null` if not. */
export function changedLifetime(
  before: ArtifactLifetime,
  { ttlSeconds, isPinned }: { ttlSeconds?: number | null | undefined; isPinned?: boolean | null | undefined },
): ReturnType<typeof lifetimeOf> | null {
  const after = {
    ttlSeconds: ttlSeconds === undefined ? before.ttlSeconds : ttlSeconds,
    isPinned: isPinned ?? before.isPinned,
  };
  return ttlSeconds === undefined && after.isPinned === before.isPinned ? null : lifetimeOf(after);
}
