import {
  characterUnits,
  delimitedParts,
  paragraphUnits,
  sentenceUnits,
  type TextUnit,
  tokenUnits,
} from './text-units.ts';
import type { Chunking } from './transform-action.ts';
import type { TransformBudget } from './transform-budget.ts';

/** The chunks of a text, in order. @throws TransformFault */
export function chunkedText(text: string, chunking: Chunking, budget: TransformBudget): unknown[] {
  const chunks = chunksOf(text, chunking, budget).map(({ start, end, size }, index) => {
    const part = text.slice(start, end);
    return chunking.include_metadata ? { index, text: part, start, end, size } : part;
  });
  budget.items(chunks.length);
  return chunks;
}

function chunksOf(text: string, chunking: Chunking, budget: TransformBudget): TextUnit[] {
  switch (chunking.strategy) {
    case 'tokens':
      return windows(tokenUnits(text, budget), chunking, budget);
    case 'characters':
      return windows(characterUnits(text), chunking, budget);
    case 'sentences':
      return windows(sentenceUnits(text, budget), chunking, budget);
    case 'paragraphs':
      return windows(paragraphUnits(text), chunking, budget);
    case 'delimiter':
      // each part is a chunk; one with too many tokens is several
      return delimitedParts(text, chunking.delimiter ?? '', budget).flatMap(({ start, end }) =>
        windows(tokenUnits(text.slice(start, end), budget), chunking, budget).map((chunk) => ({
          ...chunk,
          start: start + chunk.start,
          end: start + chunk.end,
        })),
      );
  }
}

/** As many units as fit, again and again; each chunk but the first repeats what fits into the overlap. */
function windows(
  units: readonly TextUnit[],
  { chunk_size, chunk_overlap }: Chunking,
  budget: TransformBudget,
): TextUnit[] {
  const chunks: TextUnit[] = [];
  for (let first = 0; first < units.length; ) {
    let [after, size] = [first, 0];
    // one that is larger than a chunk is a chunk of its own
    while (after < units.length && (after === first || size + units[after]!.size <= chunk_size))
      size += units[after++]!.size;
    const [start, end] = [units[first]!.start, units[after - 1]!.end];
    chunks.push({ start, end, size });
    budget.write(end - start + 50);
    budget.items(chunks.length);
    if (after === units.length) break;
    let next = after;
    for (let repeated = 0; next - 1 > first; next--) {
      repeated += units[next - 1]!.size;
      // a chunk that only repeats would say nothing new
      if (repeated > chunk_overlap || repeated + units[after]!.size > chunk_size) break;
    }
    first = next;
  }
  return chunks;
}
