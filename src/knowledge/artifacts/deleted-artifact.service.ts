import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache, type ReadContext } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, NamespacePlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { ApiError, notFound } from '../../kernel/errors.ts';
import { RESTORABLE_DAYS } from '../../tenancy/workspaces/long-deleted.ts';
import type { Artifact } from './artifact.reads.ts';
import type { ArtifactService } from './artifact.service.ts';
import type { ArtifactIndexing } from './artifact-indexing.ts';
import { type DeletedArtifact, deletedArtifactReads } from './deleted-artifact.reads.ts';

interface DeletedArtifactDeps extends ServiceDeps {
  artifacts: Pick<ArtifactService, 'reads' | 'single'>;
  indexing: ArtifactIndexing;
}

type DeletedReads = ReturnType<typeof deletedArtifactReads>;

const living = { deletedAt: null, deletedBy: null } as const;

/**
 * Artifacts that were deleted less than 30 days ago. Whoever may delete one may restore it (docs/decisions/0043).
 */
export class DeletedArtifactService {
  readonly inNamespace: DeletedReads['inNamespace'];
  readonly inWorkspace: DeletedReads['inWorkspace'];
  readonly #deps: DeletedArtifactDeps;

  constructor(deps: DeletedArtifactDeps) {
    this.#deps = deps;
    const { inNamespace, inWorkspace } = deletedArtifactReads(deps);
    this.inNamespace = inNamespace;
    this.inWorkspace = inWorkspace;
  }

  /** What the caller may restore in a place, newest first: members what they created. */
  list(
    context: ReadContext,
    place: Checked<NamespacePlace> | Checked<WorkspacePlace>,
    args: PageArgs,
  ): Promise<Page<DeletedArtifact>> {
    const createdBy = place.asked.grant === 'all' ? null : (context.anyCaller.principal?.userId ?? '');
    return 'namespaceId' in place
      ? this.inNamespace.list(context, place, { ...args, createdBy })
      : this.inWorkspace.list(context, place, { ...args, createdBy });
  }

  /**
   * Restores an artifact with the versions that were deleted with it, or a version that was deleted by itself. What is
   * not deleted stays unchanged. Storage is not asked for: what is deleted counts there until it is removed.
   * @throws RESOURCE_NOT_FOUND, also 30 days after the deletion; FORBIDDEN for an artifact of others
   */
  async restore(caller: Caller, place: Checked<NamespacePlace>, id: string): Promise<Artifact> {
    const { artifacts, changes, indexing } = this.#deps;
    const { rootArtifactId } = await this.#own(caller, place, id);
    await changes.run(caller, async (tx) => {
      const { namespaceId } = place;
      tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
      const row = await lockRestorable(tx, { id, rootArtifactId });
      await tx.expectVersion({ table: 'artifacts', key: { id } });
      if (!row.deletedAt) return;
      // those that were deleted by themselves before stay deleted
      tx.update('artifacts', { rootArtifactId: id, isLatest: false, deletedAt: row.deletedAt }, living);
      const isSearched = row.isLatest && (row.content !== null || row.fileId !== null);
      tx.update('artifacts', { id }, { ...living, ...(isSearched && indexing.contentChanged(tx, row)) });
      recordChange(tx, 'restore', 'artifact', row, { version: row.version });
    });
    return artifacts.single.get(noCache, place, id);
  }

  /** A deleted artifact or one that is not, which it may have become meanwhile. @throws like {@link restore} */
  async #own(caller: Caller, place: Checked<NamespacePlace>, id: string): Promise<{ rootArtifactId: string }> {
    try {
      return await this.inNamespace.own(caller, place, id);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'RESOURCE_NOT_FOUND')) throw error;
      return this.#deps.artifacts.reads.own(caller, place, id);
    }
  }
}

/**
 * Locks an artifact that can be restored, or is not deleted; an old version with its head, which must not be deleted.
 * @throws RESOURCE_NOT_FOUND
 */
async function lockRestorable(
  tx: Tx,
  { id, rootArtifactId }: Pick<ArtifactRow, 'id' | 'rootArtifactId'>,
): Promise<ArtifactRow> {
  const rows = await tx.lockAll(
    'artifacts',
    statement`t.id = any(${[id, rootArtifactId]}::text[])
      and coalesce(t.deleted_at > now() - make_interval(days => ${RESTORABLE_DAYS}::int), true)`,
    'no key update',
  );
  const row = rows.find((one) => one.id === id);
  const head = rows.find((one) => one.id === rootArtifactId);
  if (!row || !head || (row !== head && head.deletedAt)) throw notFound('artifact', id);
  return row;
}
