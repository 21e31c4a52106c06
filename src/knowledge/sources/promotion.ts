import { emitChange } from '../../data/record-change.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { newId } from '../../kernel/ids.ts';

/**
 * Makes a source of the workspace from a locked artifact that is none yet. @returns its id
 */
export async function sourceOfArtifact(
  tx: Tx,
  caller: Caller,
  artifact: ArtifactRow,
  { name, description }: { name?: string | null; description?: string | null },
): Promise<string> {
  const { id: artifactId, orgId, workspaceId, chunkCount, sizeBytes } = artifact;
  const [counted] = await tx.query<{ tokens: number }>(
    statement`select coalesce(sum(token_count), 0)::int as tokens from artifact_chunks
      where artifact_id = ${artifactId}`,
  );
  const row = { id: newId('source'), orgId, workspaceId, namespaceId: null };
  tx.insert('sources', {
    ...row,
    artifactId,
    name: name ?? artifact.name,
    description: description === undefined ? artifact.description : description,
    sourceType: 'artifact',
    status: artifact.isIndexed ? 'ready' : 'pending',
    chunkCount,
    tokenCount: counted!.tokens,
    sizeBytes,
    createdBy: caller.principal.userId,
  });
  emitChange(tx, 'created', 'source', row);
  return row.id;
}

/** What a source shows of the artifact that it was promoted from. */
type Followed = Required<Pick<Columns<'sources'>, 'status' | 'chunkCount' | 'tokenCount' | 'sizeBytes'>>;

/** Tells the source of an artifact, if there is one, what became of the artifact's content. */
export function followArtifact(tx: Tx, artifactId: string, facts: Partial<Followed>): void {
  tx.update('sources', { artifactId }, facts);
}
