import { visible } from './visible.ts';
import type { Workbench } from './workbench.ts';

type Cell = string | number | boolean | null | undefined;

/** Writes what a command found: as JSON for programs, otherwise as `human` says. */
export function show(bench: Workbench, value: unknown, human: () => string): void {
  const text = bench.isJson ? JSON.stringify(value) : human();
  if (text !== '') bench.around.stdout.write(`${shownOn(bench.around.stdout, text)}\n`);
}

/** Writes a line beside what the command found. */
export const tell = ({ around: { stderr } }: Workbench, text: string): void =>
  void stderr.write(`${shownOn(stderr, text)}\n`);

/** Much of a text is of other people: it does not steer a terminal. Programs get it as it is. */
export const shownOn = (stream: { isTTY?: boolean }, text: string): string =>
  stream.isTTY === true ? visible(text) : text;

/** A table with aligned columns. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [
    head,
    ...rows.map((row) =>
      row.map((cell) => (cell === null || cell === undefined ? '-' : visible(String(cell)).replaceAll('\n', ' '))),
    ),
  ];
  const widths = head.map((_, at) => Math.max(...lines.map((line) => (line[at] ?? '').length)));
  return lines
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const BAR = 30;
const CLEAR_LINE = '\r\u001B[K';
const SECOND_MS = 1_000;
/** What is done before it is over does not flicker. */
const PATIENCE_MS = 400;
const UNITS = ['B', 'kB', 'MB', 'GB'] as const;

const isWatched = ({ isJson, around: { stderr } }: Workbench): boolean => (stderr.isTTY ?? false) && !isJson;

/** Draws how far it is, in a terminal; nothing elsewhere. Without a known end, it counts bytes. */
export function progressOf(bench: Workbench, what: string): (done: number, total: number | null) => void {
  const { stderr } = bench.around;
  if (!isWatched(bench)) return () => undefined;
  const name = visible(what);
  return (done, total) => {
    if (total === null) return void stderr.write(`${CLEAR_LINE}${name} ${sizeOf(done)}`);
    const filled = Math.round((BAR * done) / Math.max(total, 1));
    const bar = '#'.repeat(filled).padEnd(BAR, '.');
    stderr.write(`\r${name} [${bar}] ${Math.round((100 * done) / Math.max(total, 1))}%${done >= total ? '\n' : ''}`);
  };
}

/** A number of bytes for people. */
function sizeOf(bytes: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  return `${(bytes / 1_000 ** power).toFixed(power === 0 ? 0 : 1)} ${UNITS[power]}`;
}

/** Says in a terminal what is being done and for how many seconds, while that takes time. */
export async function working<Value>(
  bench: Workbench,
  what: string,
  work: () => Promise<Value>,
  patienceMs = PATIENCE_MS,
): Promise<Value> {
  if (!isWatched(bench)) return work();
  const { stderr } = bench.around;
  const begunAt = Date.now();
  let isShown = false;
  const draw = () => {
    isShown = true;
    stderr.write(`${CLEAR_LINE}${visible(what)} … ${Math.floor((Date.now() - begunAt) / SECOND_MS)} s`);
  };
  let timer: NodeJS.Timeout;
  const again = () => {
    draw();
    timer = setTimeout(again, SECOND_MS);
  };
  if (patienceMs === 0) draw();
  timer = setTimeout(again, patienceMs || SECOND_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
    if (isShown) stderr.write(CLEAR_LINE);
  }
}

/** Reads all of stdin, without its last line break. */
export async function readStdin(bench: Workbench): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of bench.around.stdin) parts.push(Buffer.from(part as Uint8Array));
  return Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}
