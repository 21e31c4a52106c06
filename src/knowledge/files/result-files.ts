import { addAbortSignal, Readable } from 'node:stream';
import type { Sql } from '../../data/sql.ts';
import { typeNotFound } from '../../kernel/errors.ts';
import type { Storage } from '../../platform/storage/storage.ts';
import { type ByteRange, MissingObject } from '../../platform/storage/store.ts';
import { type Download, storedDownload } from './download.service.ts';
import type { FileOwner, FileService, KeptResult } from './file.service.ts';
import { nameOfText } from './file-name.ts';

/** The result of an action that is to be kept. */
export interface ResultContent {
  content: Buffer;
  /** Of the action. */
  name: string;
  /** What the provider says that it is. */
  contentType: string | null;
  isText: boolean;
}

/** A result that is kept, as it is found again. */
export interface FoundResult extends Omit<FileOwner, 'userId'> {
  toolInstanceId: string;
  download: Download;
}

interface ResultRow extends Omit<FoundResult, 'download'> {
  storageKey: string;
  fileName: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
}

const FIND = `select f.org_id as "orgId", f.workspace_id as "workspaceId", f.namespace_id as "namespaceId",
    f.tool_instance_id as "toolInstanceId", f.storage_key as "storageKey", f.file_name as "fileName",
    f.mime_type as "mimeType", f.size_bytes::float8 as "sizeBytes", f.sha256
  from files f where f.id = $1 and f.tool_instance_id is not null and f.state = 'receiving'
    and f.size_bytes is not null and f.expires_at > now()`;

const PIECE_BYTES = 256 * 1024;
/**
 * One after the other: a large result is hashed and checked while others are served. Each is a copy: a store that
 * stands still holds no more than a few of them.
 */
function* piecesOf(content: Buffer): Generator<Buffer, void, void> {
  for (let at = 0; at < content.length; at += PIECE_BYTES) yield Buffer.from(content.subarray(at, at + PIECE_BYTES));
}

/**
 * Files that have the whole of a result of an action, for a while: files that no artifact uses, which are removed when
 * they expire. They count as what the artifacts of their workspace hold (docs/decisions/0098).
 */
export class ResultFiles {
  readonly #deps: { sql: Sql; storage: Storage; files: FileService };

  constructor(deps: { sql: Sql; storage: Storage; files: FileService }) {
    this.#deps = deps;
  }

  /**
   * Stores a result.
   * @param signal ends it
   * @throws PAYLOAD_TOO_LARGE; RESOURCE_CONFLICT `storage_quota_exceeded`; faults of the store; an error with the
   * reason of the signal as its cause. Nothing is left then
   */
  async keep(
    owner: FileOwner,
    result: KeptResult,
    { content, name, contentType, isText }: ResultContent,
    signal: AbortSignal,
  ): Promise<{ id: string; fileName: string; mimeType: string }> {
    const length = { atLeast: content.length, atMost: content.length };
    const fileName = isText ? nameOfText(name, contentType) : name;
    const pieces = addAbortSignal(signal, Readable.from(piecesOf(content)));
    return this.#deps.files.receiveResult(owner, { content: pieces, fileName, contentType, length }, result);
  }

  /** Removes a result. */
  discard(id: string): Promise<void> {
    return this.#deps.files.discard(id);
  }

  /** A result, until it expires. Its bytes may be gone before: then `read` fails with RESOURCE_NOT_FOUND. */
  async find(id: string): Promise<FoundResult | null> {
    const { sql, storage } = this.#deps;
    const [row] = await sql.read<ResultRow>(FIND, [id]);
    if (!row) return null;
    const { orgId, workspaceId, namespaceId, toolInstanceId, mimeType: contentType, ...file } = row;
    const stored = storedDownload(storage, { ...file, contentType });
    // no backup has the bytes of results: after a restore, their rows are all that is left for the rest of the day
    const read = (range?: ByteRange) =>
      stored.read(range).catch((error: unknown) => {
        throw error instanceof MissingObject ? typeNotFound('tool_result', id) : error;
      });
    const download = { ...stored, read };
    return { orgId, workspaceId, namespaceId, toolInstanceId, download };
  }
}
