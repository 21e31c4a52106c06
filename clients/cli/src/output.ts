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

/** Reads all of stdin, without its last line break. */
export async function readStdin(bench: Workbench): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of bench.around.stdin) parts.push(Buffer.from(part as Uint8Array));
  return Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}
