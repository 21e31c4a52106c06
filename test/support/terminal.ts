import { spawn, spawnSync } from 'node:child_process';
import { waitUntil } from './wait.ts';

export const ENTER = '\r';
export const DOWN = '\u001B[B';
export const INTERRUPT = '\u0003';

/** What makes a pseudo-terminal: Debian has it everywhere, other systems have one with other options. */
export const hasTerminal =
  spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux') ?? false;

interface Given {
  env: Record<string, string | undefined>;
  cwd?: string;
}

/** A program that runs in a terminal. */
export interface Terminal {
  /** All that was to be read so far. */
  readonly text: string;
  /** The exit code, once it has ended. */
  readonly code: number | undefined;
  /** Waits for a text behind what was waited for before. @throws Error if the program ends without it */
  sees: (wanted: string) => Promise<void>;
  types: (keys: string) => void;
  /** Waits for the end. @returns the exit code */
  ended: () => Promise<number>;
  close: () => void;
}

/** Starts a program in a terminal of 120 columns. */
export function openTerminal(words: readonly string[], { env, cwd }: Given): Terminal {
  // a new terminal has no width, in which no question can be read
  const quoted = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
  const command = `stty cols 120 rows 40; exec ${quoted.join(' ')}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    ...(cwd !== undefined && { cwd }),
  });
  let text = '';
  let code: number | undefined;
  let seen = 0;
  child.stdout.on('data', (part: Buffer) => (text += part.toString()));
  child.once('close', (ended) => (code = ended ?? -1));
  return {
    get text() {
      return text;
    },
    get code() {
      return code;
    },
    async sees(wanted) {
      seen = await waitUntil(
        () => {
          const found = text.indexOf(wanted, seen);
          if (found < 0 && code !== undefined) throw new Error(`It has ended with ${code}.`);
          return found < 0 ? 0 : found + wanted.length;
        },
        { what: () => `${JSON.stringify(wanted)} in ${JSON.stringify(text)}` },
      );
    },
    types: (keys) => void child.stdin.write(keys),
    async ended() {
      await waitUntil(() => code !== undefined, { what: () => `the end of ${text}` });
      return code!;
    },
    close: () => void child.kill(),
  };
}

/** Runs a program in a terminal. Each answer is typed when its question is seen. */
export async function inTerminal(
  words: readonly string[],
  given: Given,
  answers: readonly (readonly [question: string, typed: string])[] = [],
): Promise<{ code: number; text: string }> {
  const terminal = openTerminal(words, given);
  try {
    for (const [question, typed] of answers) {
      await terminal.sees(question);
      terminal.types(typed);
    }
    return { code: await terminal.ended(), text: terminal.text };
  } finally {
    terminal.close();
  }
}
