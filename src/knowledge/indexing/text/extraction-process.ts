// Runs in a process of its own, for one file after another. Parsers are loaded when the first file of their kind comes.
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { moduleOf } from '../../../paths.ts';
import { ExtractionError, type ExtractionFailure } from './extraction-error.ts';
import {
  cpuMicros,
  EXPANDS_EXIT,
  type ExtractedText,
  type ExtractionAnswer,
  type ExtractionTask,
  GIVES_WAY,
  type Guarded,
} from './extraction-messages.ts';
import { KeptText } from './kept-text.ts';
import { limits } from './text-limits.ts';

async function extracted(task: ExtractionTask): Promise<ExtractedText> {
  const read = await readerOf(task);
  setPriority(GIVES_WAY);
  most.set([process.memoryUsage.rss() + task.growthBytes, cpuMicros() + task.timeMs * 1_000]);
  tell('reading');
  const text = (await read()).toString();
  most.set(UNLIMITED);
  tell('read');
  const [{ chunksOf }, { gramsOf }, { languageOf }] = await Promise.all([
    import('./chunks.ts'),
    import('./grams.ts'),
    import('./language.ts'),
  ]);
  const chunks = chunksOf(text).map((chunk) => ({
    ...chunk,
    grams: `{${gramsOf(text.slice(chunk.start, chunk.end)).join()}}`,
  }));
  return { text, language: languageOf(text), chunks };
}

/** Loads the parser, before it meets the file. */
async function readerOf({ kind, bytes, isWhole }: ExtractionTask): Promise<() => KeptText | Promise<KeptText>> {
  if (kind === 'pdf') {
    const { pdfText } = await import('./pdf-text.ts');
    unpackable = bytes.length * limits.ratio;
    return () => pdfText(bytes);
  }
  if (kind === 'docx') {
    const { docxText } = await import('./docx-text.ts');
    return () => docxText(bytes);
  }
  const { decodeText } = await import('./plain-text.ts');
  if (kind === 'html') {
    const { htmlText } = await import('./html-text.ts');
    return () => htmlText(decodeText(bytes, isWhole));
  }
  if (kind === 'json') {
    const { jsonText } = await import('./json-text.ts');
    return () => jsonText(decodeText(bytes, isWhole));
  }
  return () => {
    const text = new KeptText();
    text.add(decodeText(bytes, isWhole));
    return text;
  };
}

const tell = (answer: ExtractionAnswer) => process.send!(answer);

const UNLIMITED = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
const most = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT));
most.set(UNLIMITED);
const guarded: Guarded = { parent: process.ppid, most };
const guard = moduleOf('knowledge/indexing/text/extraction-guard');
new Worker(guard.file, { execArgv: guard.execArgv, workerData: guarded }).unref();

/** Bytes that may still be unpacked of the file that is read. */
let unpackable = 0;

/**
 * The parser of PDF unpacks by such streams. Past the limit this process ends at once: the parser would begin again,
 * with its own unpacking.
 */
class BoundedDecompression extends DecompressionStream {
  override readonly readable: ReadableStream;

  constructor(format: ConstructorParameters<typeof DecompressionStream>[0]) {
    super(format);
    const count = new TransformStream<Uint8Array, Uint8Array>({
      transform: (part, controller) => {
        unpackable -= part.length;
        if (unpackable < 0) process.exit(EXPANDS_EXIT);
        controller.enqueue(part);
      },
    });
    this.readable = super.readable.pipeThrough(count);
  }
}
Object.assign(globalThis, { DecompressionStream: BoundedDecompression });

/** What a parser throws is about the file, and may contain parts of it. */
function failureOf(error: unknown): ExtractionFailure {
  if (error instanceof ExtractionError) return error.reason;
  if (error instanceof RangeError && /allocation|Invalid (array|typed array|string) length/.test(error.message))
    return 'memory';
  return 'unreadable';
}

process.on('disconnect', () => process.exit());
process.on('message', (task: ExtractionTask) => {
  extracted(task).then(
    (result) => tell({ result }),
    (error: unknown) => tell({ failure: failureOf(error) }),
  );
});
