import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Artifact } from '../../generated/prisma/client.ts';
import type { Owner } from '../../kernel/owner.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { type Attempt, GiveUp, type Task } from '../../kernel/tasks.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import { previewOf } from '../artifacts/artifact-content.ts';
import type { ArtifactIndexing, ChangedContent, IndexColumns } from '../artifacts/artifact-indexing.ts';
import { followArtifact } from '../sources/promotion.ts';
import { ExtractionError } from './text/extraction-error.ts';
import type { ExtractedText } from './text/extraction-messages.ts';
import type { TextExtraction } from './text/text-extraction.ts';
import { isContainer, type TextKind, textKindOf } from './text/text-kinds.ts';
import { limits } from './text/text-limits.ts';
import { forgettingTask, holdVocabulary, vocabularyOf } from './vocabulary.ts';

/** Attempts at one content (defaults §5); their waits add up to two minutes. */
const TRIES = 5;
/** A file that exceeds a limit is tried twice: the first time the machine may have been busy. */
const TRIES_AT_LIMITS = 2;
/** A node reads one file at a time, and the next one from the store meanwhile. */
const AT_ONCE = 2;
const COLLECTION = 'full_text';
const PLAIN = 'text/plain';
/** What `index_error` says where the file is not at fault. */
const UNREAD = 'The content could not be read.';

/** The content of one version. */
interface IndexJob {
  artifactId: string;
  version: number;
}

interface IndexerDeps {
  sql: Sql;
  changes: Changes;
  storage: Pick<Storage, 'read'>;
  extraction: TextExtraction;
}

/** What is read of an artifact before its content is. */
interface Claimed {
  content: string | null;
  mimeType: string | null;
  storageKey: string | null;
  sizeBytes: number;
}

/**
 * Makes the content of artifacts searchable, in jobs: the text is taken out of it, cut into chunks and stored with the
 * index columns in one transaction. Only heads of chains have chunks. A job is about one version: if there is a newer
 * one, it does nothing.
 */
export class ArtifactIndexer implements ArtifactIndexing, Owner {
  readonly tasks: readonly Task[];
  readonly #task: Task<IndexJob>;
  readonly #deps: IndexerDeps;

  constructor(deps: IndexerDeps) {
    this.#deps = deps;
    this.#task = {
      name: 'index_artifact',
      tries: TRIES,
      atOnce: AT_ONCE,
      run: (job, attempt) => this.#run(job, attempt),
      abandoned: (job, { number }) => this.#fail(job, number, UNREAD, true),
    };
    this.tasks = [this.#task as Task, forgettingTask(deps)];
  }

  contentChanged(tx: Tx, { id: artifactId, orgId, version, mimeType }: ChangedContent): IndexColumns {
    if (textKindOf(mimeType ?? PLAIN) === null)
      return { isIndexed: true, indexedAt: new Date(), indexCollection: COLLECTION };
    tx.enqueue(this.#task, { artifactId, version }, { key: `index ${artifactId}`, turnOf: orgId });
    return {};
  }

  async #run(job: IndexJob, { number }: Attempt): Promise<void> {
    const claimed = await this.#claim(job, number);
    if (!claimed) return;
    try {
      const kind = textKindOf(claimed.mimeType ?? PLAIN);
      const found = kind ? await this.#deps.extraction.extract(await this.#contentOf(claimed, kind)) : NOTHING;
      await this.#store(job, claimed, found);
    } catch (error) {
      const isExtraction = error instanceof ExtractionError;
      const most = isExtraction && !error.isFinal ? TRIES_AT_LIMITS : TRIES;
      const isOver = (isExtraction && error.isFinal) || number >= most;
      await this.#fail(job, number, isExtraction ? error.message : UNREAD, isOver);
      // what a file is like is no fault of the service
      if (isExtraction && isOver) return;
      throw isOver ? new GiveUp(error) : error;
    }
  }

  /** Counts the attempt. `null`: this version is not the latest any more, or the artifact was deleted. */
  async #claim({ artifactId, version }: IndexJob, number: number): Promise<Claimed | null> {
    const { text, values } = statement`update artifacts a set index_attempts = ${number}
      from artifacts b left join files f on f.id = b.file_id
      where a.id = ${artifactId} and b.id = a.id and a.version = ${version} and a.is_latest and a.deleted_at is null
      returning a.content, a.mime_type as "mimeType", f.storage_key as "storageKey",
        a.size_bytes::float8 as "sizeBytes"`;
    const [row] = await this.#deps.sql.change<Claimed>(text, values);
    return row ?? null;
  }

  /** The bytes, or as many as the limits take. @throws ExtractionError */
  async #contentOf({ content, storageKey, sizeBytes }: Claimed, kind: TextKind) {
    if (storageKey === null) return { kind, bytes: Uint8Array.from(Buffer.from(content ?? '')), isWhole: true };
    if (isContainer(kind) && sizeBytes > limits.sourceBytes) throw new ExtractionError('too_large');
    const bytes = new Uint8Array(Math.min(sizeBytes, isContainer(kind) ? sizeBytes : limits.plainSourceBytes));
    let at = 0;
    const range = { start: 0, end: Math.max(0, bytes.length - 1) };
    for await (const part of bytes.length > 0 ? await this.#deps.storage.read(storageKey, range) : []) {
      bytes.set(part as Uint8Array, at);
      at += (part as Uint8Array).length;
    }
    return { kind, bytes, isWhole: bytes.length === sizeBytes };
  }

  async #store(job: IndexJob, claimed: Claimed, { text, chunks }: ExtractedText): Promise<void> {
    const isFile = claimed.storageKey !== null;
    await this.#change(job, async (tx, artifact) => {
      const { id, orgId, workspaceId, namespaceId } = artifact;
      tx.write(statement`delete from artifact_chunks where artifact_id = ${id}`);
      const contents = chunks.map(({ start, end }) => text.slice(start, end).trim());
      const tokens = chunks.map((chunk) => chunk.tokens);
      if (chunks.length > 0)
        tx.write(statement`insert into artifact_chunks
            (artifact_id, org_id, workspace_id, namespace_id, position, content, token_count)
          select ${id}, ${orgId}, ${workspaceId}, ${namespaceId}, c.position - 1, c.content, c.tokens
          from unnest(${contents}::text[], ${tokens}::int[]) with ordinality c(content, tokens, position)`);
      tx.write(holdVocabulary(namespaceId));
      tx.write(vocabularyOf(artifact, contents));
      tx.update(
        'artifacts',
        { id },
        {
          ...(isFile && { contentPreview: text === '' ? null : previewOf(text), contentText: text }),
          isIndexed: true,
          indexedAt: new Date(),
          indexCollection: COLLECTION,
          indexError: null,
          chunkCount: chunks.length,
        },
      );
      const tokenCount = tokens.reduce((sum, count) => sum + count, 0);
      followArtifact(tx, id, { status: 'ready', chunkCount: chunks.length, tokenCount });
      emitChange(tx, 'indexed', 'artifact', artifact, { chunk_count: chunks.length });
    });
  }

  /** @param isOver no attempt follows */
  async #fail(job: IndexJob, indexAttempts: number, indexError: string, isOver: boolean): Promise<void> {
    await this.#change(job, async (tx, artifact) => {
      tx.update('artifacts', { id: artifact.id }, { indexAttempts, indexError });
      if (!isOver) return;
      followArtifact(tx, artifact.id, { status: 'failed' });
      emitChange(tx, 'index_failed', 'artifact', artifact);
    });
  }

  /** Changes a head under its lock, unless it has a newer version or was deleted meanwhile. */
  async #change({ artifactId, version }: IndexJob, work: (tx: Tx, artifact: Artifact) => Promise<void>): Promise<void> {
    await this.#deps.changes.run(systemCaller(this.#task.name), async (tx) => {
      const artifact = await tx.lock('artifacts', { id: artifactId }, 'no key update');
      if (artifact && artifact.version === version && artifact.isLatest && !artifact.deletedAt)
        await work(tx, artifact);
    });
  }
}

const NOTHING: ExtractedText = { text: '', chunks: [] };
