import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Artifact } from '../../generated/prisma/client.ts';
import type { Owner } from '../../kernel/owner.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { type Attempt, GiveUp, scheduled, type Task } from '../../kernel/tasks.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import { previewOf } from '../artifacts/artifact-content.ts';
import type { ArtifactIndexing, ChangedContent, IndexColumns } from '../artifacts/artifact-indexing.ts';
import { followArtifact } from '../sources/promotion.ts';
import { lockHead } from './artifact-head.ts';
import { languageSettingTask, languageTask } from './search-languages.ts';
import { ExtractionError } from './text/extraction-error.ts';
import type { ExtractedText } from './text/extraction-messages.ts';
import type { TextExtraction } from './text/text-extraction.ts';
import { isContainer, type TextKind, textKindOf } from './text/text-kinds.ts';
import { limits } from './text/text-limits.ts';
import type { ArtifactEmbedder } from './vectors/artifact-embedder.ts';
import { forgettingTask, holdVocabulary, vocabularyOf } from './vocabulary.ts';

/** Attempts at one content (defaults §5); their waits add up to two minutes. */
const TRIES = 5;
/** A file that exceeds a limit is tried twice: the first time the machine may have been busy. */
const TRIES_AT_LIMITS = 2;
/** A node reads one file at a time, and the next one from the store meanwhile. */
const AT_ONCE = 2;
/** Of a text whose language cannot be told. */
const DEFAULT_LANGUAGE = 'en';
const COLLECTION = 'full_text';
const PLAIN = 'text/plain';
/** What `index_error` says where the file is not at fault. */
const UNREAD = 'The content could not be read.';

/** What the columns of the index say of the way in which it is made now. */
const INDEX_VERSION = 1;
/** Of what is to be indexed again, whatever way it was indexed in. */
const OUTDATED_VERSION = 0;
const OUTDATED = `index_version < ${INDEX_VERSION} and is_latest and deleted_at is null`;
/** Artifacts of an older index that are looked up together, and how long one run indexes them. */
const PAGE = 20;
const AGAIN_MS = 10_000;

/** The content of one version. */
interface IndexJob {
  artifactId: string;
  version: number;
  /** It is indexed, in an older way: that changes nothing that callers see. */
  isAgain?: boolean;
}

interface IndexerDeps {
  sql: Sql;
  changes: Changes;
  storage: Pick<Storage, 'read'>;
  extraction: TextExtraction;
  /** The language of what says none, nor does its workspace. */
  language?: string | null | undefined;
  /** Whoever embeds what was indexed. */
  vectors: Pick<ArtifactEmbedder, 'follow'>;
}

const CLAIMED = `a.content, a.mime_type as "mimeType", f.storage_key as "storageKey",
  a.size_bytes::float8 as "sizeBytes",
  (select w.embedding_model_id is not null from workspaces w where w.id = a.workspace_id) as "isEmbedded"`;

/** What is read of an artifact before its content is. */
interface Claimed {
  content: string | null;
  mimeType: string | null;
  storageKey: string | null;
  sizeBytes: number;
  /** Whether the workspace has an embedding model. */
  isEmbedded: boolean;
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
      abandoned: async (job, { number }) => job.isAgain || this.#fail(job, number, UNREAD, true),
    };
    const again = scheduled(
      'index_again',
      { everySeconds: 1, ifAny: `select 1 from artifacts where ${OUTDATED}` },
      ({ signal }) => this.#indexAgain(signal),
    );
    this.tasks = [this.#task as Task, again, forgettingTask(deps), languageTask(deps), languageSettingTask(deps)];
  }

  contentChanged(tx: Tx, { id: artifactId, orgId, version, mimeType }: ChangedContent): IndexColumns {
    if (textKindOf(mimeType ?? PLAIN) === null)
      return { isIndexed: true, indexedAt: new Date(), indexCollection: COLLECTION };
    tx.enqueue(this.#task, { artifactId, version }, { key: `index ${artifactId}`, turnOf: orgId });
    return {};
  }

  languageChanged(
    before: { language: string | null },
    { language }: { language?: string | null | undefined },
  ): Pick<Columns<'artifacts'>, 'indexVersion'> {
    return language === undefined || language === before.language ? {} : { indexVersion: OUTDATED_VERSION };
  }

  /** Indexes artifacts of an older index one by one. What fails is left to a job, with its tries. */
  async #indexAgain(signal: AbortSignal): Promise<void> {
    const until = performance.now() + AGAIN_MS;
    let page: IndexJob[];
    do {
      page = await this.#deps.sql.read<IndexJob>(
        `select id as "artifactId", version from artifacts where ${OUTDATED} order by id limit ${PAGE}`,
        [],
      );
      for (const job of page) {
        if (signal.aborted || performance.now() > until) return;
        await this.#again(job).catch(() =>
          this.#change(job, async (tx, { id, orgId }) => {
            tx.write(statement`update artifacts set index_version = ${INDEX_VERSION} where id = ${id}`);
            tx.enqueue(this.#task, { ...job, isAgain: true }, { key: `index ${id}`, turnOf: orgId });
          }),
        );
      }
    } while (page.length > 0);
  }

  async #again(job: IndexJob): Promise<void> {
    const [claimed] = await this.#deps.sql.read<Claimed & { isIndexed: boolean }>(
      `select ${CLAIMED}, a.is_indexed as "isIndexed" from artifacts a left join files f on f.id = a.file_id
        where a.id = $1`,
      [job.artifactId],
    );
    if (!claimed) return;
    // what has a job is indexed by that
    const hasText = claimed.isIndexed && textKindOf(claimed.mimeType ?? PLAIN) !== null;
    const found = hasText ? await this.#textOf(claimed) : null;
    await this.#change(job, async (tx, artifact) => {
      const { id } = artifact;
      if (found) this.#writeChunks(tx, artifact, claimed, found);
      // the labels, too, by their trigger
      tx.write(statement`update artifacts set index_version = ${INDEX_VERSION},
          index_language = coalesce(${found && languageOf(found)}, index_language),
          chunk_count = ${found?.chunks.length ?? artifact.chunkCount},
          embedding_model_id = ${found ? null : artifact.embeddingModelId}
        where id = ${id}`);
      if (found && found.chunks.length !== artifact.chunkCount) followArtifact(tx, id, sizeOf(found));
    });
  }

  async #run(job: IndexJob, { number }: Attempt): Promise<void> {
    if (job.isAgain) return this.#again(job);
    const claimed = await this.#claim(job, number);
    if (!claimed) return;
    try {
      await this.#store(job, claimed, await this.#textOf(claimed));
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
    const [row] = await this.#deps.sql.change<Claimed>(
      `update artifacts a set index_attempts = $1 from artifacts b left join files f on f.id = b.file_id
        where a.id = $2 and b.id = a.id and a.version = $3 and a.is_latest and a.deleted_at is null
        returning ${CLAIMED}`,
      [number, artifactId, version],
    );
    return row ?? null;
  }

  /** @throws ExtractionError */
  async #textOf(claimed: Claimed): Promise<ExtractedText> {
    const kind = textKindOf(claimed.mimeType ?? PLAIN);
    return kind ? this.#deps.extraction.extract(await this.#contentOf(claimed, kind)) : NOTHING;
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

  async #store(job: IndexJob, claimed: Claimed, found: ExtractedText): Promise<void> {
    const isFile = claimed.storageKey !== null;
    const { text, chunks } = found;
    await this.#change(job, async (tx, artifact) => {
      const { id } = artifact;
      this.#writeChunks(tx, artifact, claimed, found);
      tx.update(
        'artifacts',
        { id },
        {
          ...(isFile && { contentPreview: text === '' ? null : previewOf(text), contentText: text }),
          isIndexed: true,
          indexedAt: new Date(),
          indexCollection: COLLECTION,
          indexError: null,
          indexLanguage: languageOf(found),
          indexVersion: INDEX_VERSION,
          chunkCount: chunks.length,
          embeddingModelId: null,
        },
      );
      followArtifact(tx, id, { status: 'ready', ...sizeOf(found) });
      emitChange(tx, 'indexed', 'artifact', artifact, { chunk_count: chunks.length });
    });
  }

  /**
   * Writes the chunks of an artifact in place of those that it has, and the words in them. The vectors of those that it
   * has go with them: it is embedded again.
   */
  #writeChunks(tx: Tx, artifact: Artifact, { isEmbedded }: Claimed, found: ExtractedText): void {
    const { text, chunks } = found;
    const { id, orgId, workspaceId, namespaceId, language } = artifact;
    tx.write(statement`delete from artifact_chunks where artifact_id = ${id}`);
    const detected = languageOf(found);
    const contents = chunks.map(({ start, end }) => text.slice(start, end).trim());
    const tokens = chunks.map((chunk) => chunk.tokens);
    const grams = chunks.map((chunk) => chunk.grams);
    if (chunks.length > 0)
      tx.write(statement`insert into artifact_chunks
          (artifact_id, org_id, workspace_id, namespace_id, position, content, token_count, config, words, grams)
        select ${id}, ${orgId}, ${workspaceId}, ${namespaceId}, c.position - 1, c.content, c.tokens, l.config,
          to_tsvector(l.config::regconfig, cut_search_text(c.content, false)), c.grams::int[]
        from unnest(${contents}::text[], ${tokens}::int[], ${grams}::text[])
          with ordinality c(content, tokens, grams, position),
          search_config(artifact_language(${language}, ${workspaceId}, ${detected})) l(config)`);
    tx.write(holdVocabulary(namespaceId));
    tx.write(vocabularyOf(artifact, contents));
    // one that was embedded after this job read its workspace shows that there is a model by now
    if (chunks.length > 0 && (isEmbedded || artifact.embeddingModelId !== null))
      this.#deps.vectors.follow(tx, artifact);
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
  async #change(job: IndexJob, work: (tx: Tx, artifact: Artifact) => Promise<void>): Promise<void> {
    await this.#deps.changes.run(systemCaller(this.#task.name), async (tx) => {
      const artifact = await lockHead(tx, job);
      if (artifact) await work(tx, artifact);
    });
  }
}

/** The language that a text is indexed in, if nobody said another. */
const languageOf = ({ language }: ExtractedText): string => language ?? DEFAULT_LANGUAGE;

/** What a source says of its text. */
const sizeOf = ({ chunks }: ExtractedText) => ({
  chunkCount: chunks.length,
  tokenCount: chunks.reduce((sum, { tokens }) => sum + tokens, 0),
});

const NOTHING: ExtractedText = { text: '', language: null, chunks: [] };
