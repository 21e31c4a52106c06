import type { Chunk } from './chunks.ts';
import type { ExtractionFailure } from './extraction-error.ts';
import type { TextKind } from './text-kinds.ts';

/** What the process is asked. */
export interface ExtractionTask {
  kind: TextKind;
  bytes: Uint8Array;
  /** Whether these are all bytes of the content, and not only its start. */
  isWhole: boolean;
  /** The process may grow by so many bytes while its parser reads. */
  growthBytes: number;
  /** And may take so much time of a processor. */
  timeMs: number;
}

/** A chunk as it is indexed. */
export interface IndexedChunk extends Chunk {
  /** What its exact parts are found by, as an array of the database. */
  grams: string;
}

/** The text of content, and how it is cut. */
export interface ExtractedText {
  text: string;
  /** ISO 639-1; `null` if it cannot be told. */
  language: string | null;
  chunks: IndexedChunk[];
}

/** How the work ended. */
export type ExtractionEnd = { result: ExtractedText } | { failure: ExtractionFailure };

/** What the process says: its parser begins, and has finished; then the end. */
export type ExtractionAnswer = 'reading' | 'read' | ExtractionEnd;

/** The process ends with this code when a file unpacks to more than the limit. */
export const EXPANDS_EXIT = 3;

/** What the guard of the process watches. */
export interface Guarded {
  /** The process that it serves. */
  parent: number;
  /** The most bytes that may be resident, and the most microseconds of processors that the process may have taken. */
  most: Float64Array<SharedArrayBuffer>;
}

/** The priority at which files are read: requests go first. */
export const GIVES_WAY = 10;

/** The signal that ends a process whose parser takes too long. */
export const TIMEOUT_SIGNAL = 'SIGTERM';

/** Microseconds of processors that this process has taken, in all of its threads. */
export function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
