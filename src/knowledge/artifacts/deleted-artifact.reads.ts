import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import type { NamespacePlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { RESTORABLE, restorableUntil } from '../../tenancy/workspaces/long-deleted.ts';
import { KEPT_AFTER_EXPIRY } from './artifact.reads.ts';

const plain = columnsOf(
  words(
    'id orgId workspaceId namespaceId name artifactType version rootArtifactId isLatest fileName mimeType createdBy',
    'createdAt updatedAt deletedAt deletedBy',
  ),
);
const columns = { ...plain, sizeBytes: 't.size_bytes::float8' };

type StoredDeleted = Pick<ArtifactRow, Exclude<keyof typeof plain, 'deletedAt'>> & {
  deletedAt: Date;
  sizeBytes: number;
};

/** A deleted artifact, or a version that was deleted by itself, as callers see it. */
export interface DeletedArtifact extends StoredDeleted {
  restorableUntil: Date;
}

/** A page of deleted artifacts. */
export interface DeletedArgs extends PageArgs {
  /** Only what this user created. */
  createdBy?: string | null;
}

const deleted = {
  kind: 'artifact',
  from: 'artifacts',
  columns,
  complete: async (_context: unknown, rows: readonly StoredDeleted[]) =>
    rows.map((row) => ({ ...row, restorableUntil: restorableUntil(row.deletedAt) })),
  always: [
    't.deleted_at is not null',
    RESTORABLE,
    KEPT_AFTER_EXPIRY,
    // versions come back with their artifact
    `(t.is_latest or exists (select 1 from artifacts h where h.id = t.root_artifact_id and h.deleted_at is null))`,
  ],
  filters: ({ createdBy }: DeletedArgs) => ({ 't.created_by = ?': createdBy }),
} as const;

/** The reads of what can be restored. */
export function deletedArtifactReads(deps: ServiceDeps) {
  const inNamespace: Reads<DeletedArtifact, NamespacePlace, DeletedArgs, StoredDeleted> = new Reads(deps, {
    ...deleted,
    name: 'deleted_artifacts',
    below: ['orgId', 'workspaceId', 'namespaceId'],
  });
  const inWorkspace: Reads<DeletedArtifact, WorkspacePlace, DeletedArgs, StoredDeleted> = new Reads(deps, {
    ...deleted,
    name: 'deleted_artifacts_of_workspace',
    below: ['orgId', 'workspaceId'],
  });
  return { inNamespace, inWorkspace };
}
