export interface Line {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** The most lines that differ: the way through more of them takes too long. */
const MOST_CHANGES = 2_000;

/**
 * The lines of two texts with the fewest changes between them, as Myers describes it: how far one gets with each number
 * of changes, on each diagonal. `null` if there are too many.
 */
export function difference(before: string, after: string): Line[] | null {
  const [old, now] = [before.split('\n'), after.split('\n')];
  const trace: Int32Array[] = [];
  const most = Math.min(old.length + now.length, MOST_CHANGES);
  const reached = new Int32Array(2 * most + 3);
  for (let changes = 0; changes <= most; changes += 1) {
    // what this step reads again on the way back, and no more: else the square of the texts would be kept
    trace.push(reached.slice(most - changes, most + changes + 3));
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const at = diagonal + most + 1;
      const isDown = diagonal === -changes || (diagonal !== changes && reached[at - 1]! < reached[at + 1]!);
      let x = isDown ? reached[at + 1]! : reached[at - 1]! + 1;
      while (x < old.length && x - diagonal < now.length && old[x] === now[x - diagonal]) x += 1;
      reached[at] = x;
      if (x >= old.length && x - diagonal >= now.length) return wayBack(trace, old, now);
    }
  }
  return null;
}

function wayBack(trace: readonly Int32Array[], old: readonly string[], now: readonly string[]): Line[] {
  const lines: Line[] = [];
  let [x, y] = [old.length, now.length];
  const back = (kind: Line['kind']) => {
    if (kind !== 'added') x -= 1;
    if (kind !== 'removed') y -= 1;
    lines.push({ kind, text: kind === 'added' ? now[y]! : old[x]! });
  };
  for (let changes = trace.length - 1; changes > 0; changes -= 1) {
    const reached = trace[changes]!;
    const at = x - y + changes + 1;
    const isDown = x - y === -changes || (x - y !== changes && reached[at - 1]! < reached[at + 1]!);
    const from = isDown ? reached[at + 1]! : reached[at - 1]! + 1;
    while (x > from) back('same');
    back(isDown ? 'added' : 'removed');
  }
  while (x > 0) back('same');
  return lines.reverse();
}
