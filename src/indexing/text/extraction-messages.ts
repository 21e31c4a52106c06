import type { Chunk } from './chunks.ts';
import type { ExtractionFailure } from './extraction-error.ts';
import type { TextKind } from './text-kinds.ts';

/** What the worker is asked. */
export interface ExtractionTask {
  kind: TextKind;
  bytes: Uint8Array;
  /** Whether these are all bytes of the content, and not only its start. */
  isWhole: boolean;
}

/** The text of content, and how it is cut. */
export interface ExtractedText {
  text: string;
  chunks: Chunk[];
}

/** How the work ended. */
export type ExtractionEnd = { result: ExtractedText } | { failure: ExtractionFailure };

/** What the worker says: its parser begins, and has finished; then the end. Between the two its memory is watched. */
export type ExtractionAnswer = 'reading' | 'read' | ExtractionEnd;
