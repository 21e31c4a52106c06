import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import type { NamespacePlace } from '../../kernel/checked-place.ts';

/** Texts up to this size, in bytes, are part of lists and of references (docs/decisions/0017). */
export const LISTED_TEXT_BYTES = 8 * 1024;
/** How long an artifact can be read after its expiry. Then it is removed. */
export const DAYS_AFTER_EXPIRY = 7;

const plain = columnsOf(
  words(
    'id orgId workspaceId namespaceId threadId name description artifactType version rootArtifactId isLatest',
    'replacedByVersion contentPreview fileId fileName mimeType sha256 summary keywords tags metadata source',
    'sourceExecutionId sourceStepId sourceTool status ttlSeconds expiresAt isPinned isIndexed indexedAt',
    'indexCollection indexError indexAttempts chunkCount embeddingModelId promotedToSourceId createdBy createdAt',
    'updatedAt resourceVersion language indexLanguage',
  ),
);
const shared = {
  ...plain,
  sizeBytes: 't.size_bytes::float8',
  isExpired: 'coalesce(t.expires_at <= now(), false)',
};

// the length of a text is known without reading the text
const short = (column: string) => `case when octet_length(${column}) <= ${LISTED_TEXT_BYTES} then ${column} end`;
const bounded = { ...shared, content: short('t.content'), contentText: short('t.content_text') };
const whole = { ...shared, content: 't.content', contentText: 't.content_text' };

/** The columns of an artifact, as they are read. */
export type StoredArtifact = Pick<ArtifactRow, keyof typeof plain | 'content' | 'contentText'> & {
  sizeBytes: number;
  isExpired: boolean;
};

/** An artifact as callers see it. */
export interface Artifact extends StoredArtifact {
  hasFile: boolean;
  /** `thread`, `namespace` or `workspace`. */
  scope: string;
}

/** What follows from the columns. */
export function shownArtifact(row: StoredArtifact): Artifact {
  return Object.assign(row, {
    hasFile: row.fileId !== null,
    scope: row.promotedToSourceId !== null ? 'workspace' : row.threadId !== null ? 'thread' : 'namespace',
    status: row.isLatest ? (row.isExpired ? 'expired' : row.status) : 'superseded',
  });
}

/** Filters of a list of artifacts. */
export interface ArtifactFilters {
  /** Only these; empty for all. */
  artifactTypes?: readonly string[] | null;
  /** Also artifacts that expired in the last seven days. */
  includeExpired?: boolean | null;
}

/** The place of the artifacts of a thread. */
export type ThreadPlace = NamespacePlace & { threadId: string };
/** The place of the versions of an artifact. */
export type ChainPlace = NamespacePlace & { rootArtifactId: string };

/** The condition on an artifact `t` that it is not yet to be removed for its expiry. */
export const KEPT_AFTER_EXPIRY = `(t.expires_at is null
  or t.expires_at > now() - interval '${DAYS_AFTER_EXPIRY} days')`;

const LIVING = ['t.deleted_at is null', KEPT_AFTER_EXPIRY];

const artifacts = {
  kind: 'artifact',
  from: 'artifacts',
  columns: bounded,
  complete: async (_context: unknown, rows: readonly StoredArtifact[]) => rows.map(shownArtifact),
  always: LIVING,
} as const;

const heads = {
  ...artifacts,
  listed: ['t.is_latest'],
  filters: ({ artifactTypes, includeExpired }: ArtifactFilters) => ({
    't.artifact_type = any(?)': artifactTypes?.length ? artifactTypes : undefined,
    '(t.expires_at is null or t.expires_at > now()) = ?': includeExpired ? undefined : true,
  }),
};

type Listed<Place> = Reads<Artifact, Place & object, PageArgs & ArtifactFilters, StoredArtifact>;

/** The reads of artifacts. */
export function artifactReads(deps: ServiceDeps) {
  const inNamespace: Listed<NamespacePlace> = new Reads(deps, {
    ...heads,
    below: ['orgId', 'workspaceId', 'namespaceId'],
  });
  const ofThread: Listed<ThreadPlace> = new Reads(deps, {
    ...heads,
    name: 'artifacts_of_thread',
    below: ['orgId', 'workspaceId', 'namespaceId', 'threadId'],
  });
  const versions: Reads<Artifact, ChainPlace, PageArgs, StoredArtifact> = new Reads(deps, {
    ...artifacts,
    name: 'versions_of_artifact',
    below: ['orgId', 'workspaceId', 'namespaceId', 'rootArtifactId'],
    // that of the unique constraint
    index: { key: 't.version', keyOf: ({ version }) => String(version), order: 'asc' },
  });
  const single: Reads<Artifact, NamespacePlace, PageArgs, StoredArtifact> = new Reads(deps, {
    ...artifacts,
    name: 'whole_artifacts',
    columns: whole,
    below: ['orgId', 'workspaceId', 'namespaceId'],
  });
  return { inNamespace, ofThread, versions, single };
}
