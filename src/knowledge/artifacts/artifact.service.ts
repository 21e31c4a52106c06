import type { Access } from '../../access/access.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import type { Given } from '../../data/given.ts';
import type { Words } from '../../data/paging.ts';
import { emitChange, recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, NamespacePlace } from '../../kernel/checked-place.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { StorageLimits } from '../../tenancy/storage-limits/storage-limits.ts';
import { RESTORABLE_DAYS } from '../../tenancy/workspaces/long-deleted.ts';
import { followArtifact, sourceOfArtifact } from '../sources/promotion.ts';
import { type Artifact, artifactReads, DAYS_AFTER_EXPIRY, shownArtifact } from './artifact.reads.ts';
import {
  type Body,
  bodyOfVersion,
  columnsOfBody,
  type FileTaking,
  type KeptFile,
  saidOf,
  unindexed,
} from './artifact-content.ts';
import { deleteSourcesOfExpired, expiryTask } from './artifact-expiry.ts';
import type { ArtifactIndexing } from './artifact-indexing.ts';
import { changedLifetime, lifetimeOf, lockArtifact, notLatest, snapshotOf } from './artifact-versions.ts';

type Changeable = Words<'description artifactType mimeType threadId summary keywords tags metadata language'>;
type LifetimeField = Words<'ttlSeconds isPinned'>;
type Provenance = Words<'source sourceExecutionId sourceStepId sourceTool'>;

/** What a caller says about a new artifact. */
export interface CreateArtifact extends Given<ArtifactRow, Changeable | LifetimeField | Provenance | 'content'> {
  name: string;
  /** The artifact that gets a new version. */
  rootArtifactId?: string | null;
}

/** What a caller changes. */
export type UpdateArtifact = Given<ArtifactRow, Changeable | LifetimeField | 'name' | 'content' | 'status'>;

/** What the service may also change. */
type ArtifactChanges = UpdateArtifact & Given<ArtifactRow, Provenance>;

/** What a promotion did. */
export interface Promotion {
  artifactId: string;
  orgId: string;
  promotedToSourceId: string;
}

interface ArtifactDeps extends ServiceDeps {
  access: Access;
  /** Absent where nothing is indexed. */
  indexing: ArtifactIndexing;
  storageLimits: StorageLimits;
}

/** What a snapshot cannot have of its own. */
const OF_THE_CHAIN = ['content', 'threadId', 'status', 'ttlSeconds', 'isPinned', 'language'] as const;

/**
 * Artifacts: what a namespace produces, in versions (docs/decisions/0017). The head of a chain keeps its id; a change
 * of the content moves the previous version to a row of its own, under the lock of the head. Members may change their
 * own, editors all.
 */
export class ArtifactService {
  readonly retention = [
    `delete from artifacts where deleted_at < now() - interval '${RESTORABLE_DAYS} days'`,
    `delete from artifacts where expires_at < now() - interval '${DAYS_AFTER_EXPIRY} days'
       and promoted_to_source_id is null`,
  ];
  readonly tasks;
  readonly reads: ArtifactReads['inNamespace'];
  readonly ofThread: ArtifactReads['ofThread'];
  readonly versions: ArtifactReads['versions'];
  /** Single artifacts, with all of their text. */
  readonly single: ArtifactReads['single'];
  readonly #deps: ArtifactDeps;

  constructor(deps: ArtifactDeps) {
    this.#deps = deps;
    const { inNamespace, ofThread, versions, single } = artifactReads(deps);
    this.reads = inNamespace;
    this.ofThread = ofThread;
    this.versions = versions;
    this.single = single;
    this.tasks = [expiryTask(deps.changes)];
  }

  /** Deletes the sources of what retention removes. @returns how many */
  async endElsewhere(): Promise<number> {
    return deleteSourcesOfExpired(this.#deps.changes);
  }

  /**
   * @param file what it consists of, instead of `content`
   * @param taking how the file becomes part of the artifact, in the same transaction
   * @throws RESOURCE_NOT_FOUND `thread`, or `artifact` for an unknown root; for a root also FORBIDDEN
   * `artifact:update`, RESOURCE_CONFLICT `not_latest_version`; RESOURCE_CONFLICT `storage_quota_exceeded`
   */
  async create(
    caller: Caller,
    place: Checked<NamespacePlace>,
    input: CreateArtifact,
    file?: KeptFile,
    taking?: FileTaking,
  ): Promise<Artifact> {
    const { rootArtifactId, ...given } = input;
    if (rootArtifactId) {
      await this.#demandUpdate(caller, place, rootArtifactId);
      return this.#update(caller, place, rootArtifactId, given, file, taking);
    }
    return this.#deps.storageLimits.guarded(() => this.#create(caller, place, given, file, taking));
  }

  async #create(
    caller: Caller,
    place: Checked<NamespacePlace>,
    given: Omit<CreateArtifact, 'rootArtifactId'>,
    file: KeptFile | undefined,
    taking: FileTaking | undefined,
  ): Promise<Artifact> {
    const id = newId('artifact');
    const { orgId, workspaceId, namespaceId } = place;
    const row = { id, orgId, workspaceId, namespaceId };
    const { changes, indexing, storageLimits } = this.#deps;
    const body = bodyOf(given.content, file);
    const created = await changes.run(caller, async (tx) => {
      demandPlaces(tx, place, given.threadId);
      taking?.demand(tx);
      recordChange(tx, 'create', 'artifact', row);
      const columns = columnsOfBody(body, given);
      storageLimits.demand(tx, place, bytesOfText(columns));
      const { mimeType } = columns;
      const written = tx.create('artifacts', {
        ...row,
        ...columns,
        ...(isSomething(body) && indexing.contentChanged(tx, { id, orgId: row.orgId, version: 1, mimeType })),
        rootArtifactId: id,
        threadId: given.threadId ?? null,
        name: given.name,
        description: given.description ?? null,
        summary: given.summary ?? null,
        keywords: given.keywords ?? [],
        tags: given.tags ?? [],
        metadata: given.metadata ?? {},
        language: given.language ?? null,
        source: given.source ?? (file ? 'upload' : 'api'),
        sourceExecutionId: given.sourceExecutionId ?? null,
        sourceStepId: given.sourceStepId ?? null,
        sourceTool: given.sourceTool ?? null,
        ...lifetimeOf({ ttlSeconds: given.ttlSeconds ?? null, isPinned: given.isPinned ?? false }),
        createdBy: caller.principal.userId,
      });
      taking?.take(tx);
      return written;
    });
    return shownArtifact({ ...created, sizeBytes: Number(created.sizeBytes), isExpired: false });
  }

  /**
   * Changes the given fields. Another content, or a file, is a new version.
   * @param file see {@link create}
   * @throws RESOURCE_NOT_FOUND `artifact` or `thread`; FORBIDDEN for an artifact of others; RESOURCE_CONFLICT
   * `not_latest_version` for what only the head of a chain has, and `storage_quota_exceeded`
   */
  async update(
    caller: Caller,
    place: Checked<NamespacePlace>,
    id: string,
    input: UpdateArtifact,
    file?: KeptFile,
    taking?: FileTaking,
  ): Promise<Artifact> {
    await this.reads.own(caller, place, id);
    return this.#update(caller, place, id, input, file, taking);
  }

  /**
   * Makes the content of an old version that of the next one. The old one stays; what is not content does not change.
   * @param id of any version
   * @throws RESOURCE_NOT_FOUND; invalid input for a version that is not there; FORBIDDEN for an artifact of others;
   * RESOURCE_CONFLICT `storage_quota_exceeded` for a text
   */
  async restoreVersion(
    caller: Caller,
    place: Checked<NamespacePlace>,
    id: string,
    { version }: { version: number },
  ): Promise<Artifact> {
    const { rootArtifactId } = await this.reads.get(noCache, place, id);
    await this.reads.own(caller, place, rootArtifactId);
    const work = async (tx: Tx) => {
      const head = await lockArtifact(tx, rootArtifactId);
      await tx.expectVersion({ table: 'artifacts', key: { id: rootArtifactId } });
      if (version !== head.version) {
        const old = await findRow(tx, 'artifacts', { rootArtifactId, version, deletedAt: null });
        if (!old) throw noSuchVersion();
        const body = bodyOfVersion(old);
        // both versions have the file: it must not go meanwhile
        if (body.file) tx.demand('files', { id: body.file.id, state: 'kept' }, 'key share', noSuchVersion);
        this.#change(tx, head, body, {}, columnsOfBody(body, old));
      }
      recordChange(tx, 'update', 'artifact', head, { restored_version: version });
    };
    await this.#deps.storageLimits.guarded(() => this.#deps.changes.run(caller, work));
    return this.single.get(noCache, place, rootArtifactId);
  }

  /**
   * Deletes a version; the head with all others. They are kept for 30 days, without what the search knows of them.
   * The source that it was promoted to is deleted, too, which needs `source:delete`.
   * @param onlyUnused refuses an artifact that is a source
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an artifact of others, or with `source:delete`; RESOURCE_CONFLICT
   * `in_use` with `references`
   */
  async delete(
    caller: Caller,
    place: Checked<NamespacePlace>,
    id: string,
    { onlyUnused }: { onlyUnused: boolean },
  ): Promise<Deleted<NamespacePlace>> {
    const { promotedToSourceId } = await this.reads.own(caller, place, id);
    if (!onlyUnused && promotedToSourceId)
      await this.#deps.access.requireWorkspace(caller, place.orgId, place.workspaceId, 'source:delete');
    return this.#deps.changes.run(caller, async (tx) => {
      const row = await lockArtifact(tx, id);
      await tx.expectVersion({ table: 'artifacts', key: { id } });
      const gone = { deletedAt: new Date(), deletedBy: caller.principal.userId };
      if (row.isLatest) {
        if (row.promotedToSourceId) {
          // promoted meanwhile: whether the caller may delete the source was not asked
          if (onlyUnused || row.promotedToSourceId !== promotedToSourceId) throw isSource(id, row.promotedToSourceId);
          tx.remove('sources', { id: row.promotedToSourceId });
          emitChange(tx, 'deleted', 'source', { ...place, id: row.promotedToSourceId, namespaceId: null });
        }
        tx.write(statement`delete from artifact_chunks where artifact_id = ${id}`);
        tx.update('artifacts', { rootArtifactId: id, isLatest: false, deletedAt: null }, gone);
        tx.update('artifacts', { id }, { ...gone, ...unindexed });
      } else tx.update('artifacts', { id }, gone);
      recordChange(tx, 'delete', 'artifact', { ...place, id }, { version: row.version });
      return { ...place, id };
    });
  }

  /**
   * Makes an artifact a source of its workspace. If it is one already, that is the answer.
   * @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT `not_latest_version`
   */
  async promote(
    caller: Caller,
    place: Checked<NamespacePlace>,
    id: string,
    input: { name?: string | null; description?: string | null },
  ): Promise<Promotion> {
    await this.reads.get(noCache, place, id);
    return this.#deps.changes.run(caller, async (tx) => {
      const row = await lockArtifact(tx, id);
      await tx.expectVersion({ table: 'artifacts', key: { id } });
      if (!row.isLatest) throw notLatest(row);
      const done = { artifactId: id, orgId: row.orgId };
      if (row.promotedToSourceId) return { ...done, promotedToSourceId: row.promotedToSourceId };
      const promotedToSourceId = await sourceOfArtifact(tx, caller, row, input);
      tx.update('artifacts', { id }, { promotedToSourceId });
      recordChange(tx, 'promote', 'artifact', row, { source_id: promotedToSourceId });
      return { ...done, promotedToSourceId };
    });
  }

  async #update(
    caller: Caller,
    place: Checked<NamespacePlace>,
    id: string,
    input: ArtifactChanges,
    file: KeptFile | undefined,
    taking: FileTaking | undefined,
  ): Promise<Artifact> {
    const work = async (tx: Tx) => {
      demandPlaces(tx, place, input.threadId);
      const before = await lockArtifact(tx, id);
      await tx.expectVersion({ table: 'artifacts', key: { id } });
      if (!before.isLatest && (file || OF_THE_CHAIN.some((name) => input[name] !== undefined))) throw notLatest(before);
      taking?.demand(tx);
      const { content } = input;
      const body = file || (content !== undefined && content !== before.content) ? bodyOf(content, file) : null;
      const lifetime = changedLifetime(before, input);
      const set = { ...columnsOf(input), ...lifetime };
      if (body) this.#change(tx, before, body, set, columnsOfBody(body, saidOf(before, input, file)));
      else tx.update('artifacts', { id }, { ...set, ...this.#deps.indexing.languageChanged(before, input) });
      if (lifetime) tx.update('artifacts', { rootArtifactId: id, isLatest: false }, lifetime);
      taking?.take(tx);
      recordChange(tx, 'update', 'artifact', before, { fields: [...Object.keys(input), ...(file ? ['file'] : [])] });
    };
    await this.#deps.storageLimits.guarded(() => this.#deps.changes.run(caller, work));
    return this.single.get(noCache, place, id);
  }

  /** Gives the head its next version. */
  #change(
    tx: Tx,
    before: ArtifactRow,
    body: Body,
    set: Columns<'artifacts'>,
    columns: ReturnType<typeof columnsOfBody>,
  ): void {
    const { id, orgId } = before;
    const { sizeBytes, mimeType } = columns;
    const version = before.version + 1;
    // the version before is kept: a text comes on top of it
    this.#deps.storageLimits.demand(tx, before, bytesOfText(columns));
    tx.write(snapshotOf(before));
    const index = isSomething(body) ? this.#deps.indexing.contentChanged(tx, { id, orgId, version, mimeType }) : {};
    tx.update('artifacts', { id }, { ...set, ...columns, ...unindexed, ...index, version });
    tx.write(statement`delete from artifact_chunks where artifact_id = ${id}`);
    if (before.promotedToSourceId)
      followArtifact(tx, id, {
        status: index.isIndexed ? 'ready' : 'pending',
        chunkCount: 0,
        tokenCount: 0,
        sizeBytes,
      });
    emitChange(tx, 'version_created', 'artifact', before, { version });
  }

  /** @throws RESOURCE_NOT_FOUND, FORBIDDEN unless the caller may change the artifact */
  async #demandUpdate(caller: Caller, place: Checked<NamespacePlace>, id: string): Promise<void> {
    const { orgId, workspaceId, namespaceId } = place;
    const { createdBy } = await this.reads.get(noCache, place, id);
    const permission = 'artifact:update';
    const { access } = this.#deps;
    const { grant } = await access.requireWorkspace(caller, orgId, workspaceId, permission, { namespaceId });
    access.demandCovers(caller, grant, permission, createdBy);
  }
}

const noSuchVersion = () => invalidInput(['input', 'version'], 'the artifact has no such version');

const isSource = (id: string, sourceId: string) =>
  conflict(
    'artifact',
    id,
    'in_use',
    `The artifact '${id}' is a source of its workspace. Deleting it would delete the source too.`,
    { references: [{ resource_type: 'source', resource_id: sourceId }] },
  );

type ArtifactReads = ReturnType<typeof artifactReads>;

/** @throws RESOURCE_NOT_FOUND for a namespace or thread that is gone, and for the thread of another namespace */
function demandPlaces(tx: Tx, place: NamespacePlace, threadId: string | null | undefined): void {
  const { orgId, namespaceId } = place;
  tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
  if (threadId)
    tx.demand('threads', { id: threadId, orgId, namespaceId }, 'key share', () => notFound('thread', threadId));
}

const bodyOf = (content: string | null | undefined, file: KeptFile | undefined): Body =>
  file ? { file } : { content: content ?? null };

const isSomething = (body: Body): boolean => body.file !== undefined || body.content !== null;

/** The bytes that a row itself holds: those of a file are counted with the file. */
const bytesOfText = ({ fileId, sizeBytes }: ReturnType<typeof columnsOfBody>): bigint => (fileId ? 0n : sizeBytes);

/** The columns that an update sets, apart from those of the body and the lifetime. */
const columnsOf = (input: ArtifactChanges): Columns<'artifacts'> => ({
  name: input.name ?? undefined,
  description: input.description,
  artifactType: input.artifactType ?? undefined,
  mimeType: input.mimeType ?? undefined,
  threadId: input.threadId,
  summary: input.summary,
  keywords: input.keywords ?? undefined,
  tags: input.tags ?? undefined,
  metadata: input.metadata ?? undefined,
  language: input.language,
  status: input.status ?? undefined,
  source: input.source ?? undefined,
  sourceExecutionId: input.sourceExecutionId,
  sourceStepId: input.sourceStepId,
  sourceTool: input.sourceTool,
});
