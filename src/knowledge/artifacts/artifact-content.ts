import { createHash } from 'node:crypto';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import type { Artifact as ArtifactRow } from '../../generated/prisma/client.ts';
import { mimeOfText, typeOfMime } from './artifact-types.ts';

/** A file whose bytes are all in the store, as the row in `files` says. */
export interface KeptFile {
  id: string;
  fileName: string;
  /** What the bytes look like; `null` if they look like nothing known. */
  mimeType: string | null;
  sizeBytes: number | bigint;
  /** Of the bytes, in hexadecimal. */
  sha256: string | null;
}

/** How a transaction takes a file, which belongs to one artifact. */
export interface FileTaking {
  /** Locks the row of the file, before anything is written. */
  demand(tx: Tx): void;
  /** Says there that it is taken, after the artifact was written. */
  take(tx: Tx): void;
}

/** What an artifact consists of: a text, a file, or nothing yet. */
export type Body = { content: string | null; file?: undefined } | { file: KeptFile; content?: undefined };

/** What the caller says that it is. */
interface Said {
  artifactType?: string | null | undefined;
  mimeType?: string | null | undefined;
}

const PREVIEW_CHARACTERS = 500;

/** What is shown of a text where all of it is too much. */
export const previewOf = (text: string): string => startOf(text, PREVIEW_CHARACTERS);

/** The beginning of a text, without half a surrogate pair at its end. */
export function startOf(text: string, characters: number): string {
  const start = text.slice(0, characters);
  return start.isWellFormed() ? start : start.slice(0, -1);
}

type BodyColumn =
  | 'content'
  | 'contentPreview'
  | 'contentText'
  | 'fileId'
  | 'fileName'
  | 'mimeType'
  | 'sizeBytes'
  | 'sha256';

/** The columns that follow from the body. The type is inferred from the media type unless the caller says it. */
export function columnsOfBody(body: Body, said: Said) {
  const columns = body.file ? ofFile(body.file, said.mimeType) : ofText(body.content, said);
  const inferred = columns.mimeType ? typeOfMime(columns.mimeType) : null;
  const artifactType = said.artifactType ?? inferred ?? (body.file ? 'file' : 'text');
  return { ...columns, artifactType } satisfies Columns<'artifacts'>;
}

function ofFile({ id, fileName, mimeType, sizeBytes, sha256 }: KeptFile, said: string | null | undefined) {
  const known = {
    content: null,
    contentPreview: null,
    contentText: null,
    fileId: id,
    fileName,
    mimeType: mimeType ?? said ?? 'application/octet-stream',
    sizeBytes: BigInt(sizeBytes),
    sha256,
  };
  return known satisfies Pick<Columns<'artifacts'>, BodyColumn>;
}

function ofText(content: string | null, { artifactType, mimeType }: Said) {
  const known = {
    content,
    contentPreview: content === null ? null : previewOf(content),
    contentText: null,
    fileId: null,
    fileName: null,
    mimeType: mimeType ?? (content === null ? null : mimeOfText(artifactType ?? 'text')),
    sizeBytes: BigInt(content === null ? 0 : Buffer.byteLength(content)),
    sha256: content === null ? null : createHash('sha256').update(content).digest('hex'),
  };
  return known satisfies Pick<Columns<'artifacts'>, BodyColumn>;
}

/** What an old version consists of. */
export const bodyOfVersion = ({ content, fileId, fileName, mimeType, sizeBytes, sha256 }: ArtifactRow): Body =>
  fileId === null ? { content } : { file: { id: fileId, fileName: fileName ?? 'file', mimeType, sizeBytes, sha256 } };

const textual = new Set(['text', 'markdown', 'code', 'json', 'html', 'csv']);

/** What a new version is said to be: a new text is what the last one was, unless the caller says something else. */
export function saidOf(
  before: Said & { fileId: string | null; artifactType: string },
  given: Said,
  file: KeptFile | undefined,
): Said {
  const stays = !file && (before.fileId === null || textual.has(before.artifactType));
  return {
    artifactType: given.artifactType ?? (stays && !given.mimeType ? before.artifactType : null),
    mimeType: given.mimeType ?? (stays && !given.artifactType ? before.mimeType : null),
  };
}

/** Nothing of the content is indexed. */
export const unindexed = {
  isIndexed: false,
  indexedAt: null,
  indexCollection: null,
  indexError: null,
  indexAttempts: 0,
  chunkCount: 0,
  embeddingModelId: null,
} as const satisfies Columns<'artifacts'>;
