import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { projectRoot } from '../../src/paths.ts';
import { currentEntry } from './service.ts';

/** How a command has ended. */
export interface Run {
  code: number | null;
  /** Everything that it printed, both outputs. */
  output: string;
}

type CommandProcess = ChildProcessByStdio<null, Readable, Readable>;

/** Starts a command of `src/commands` as it was built, with these variables and nothing of the test's own but PATH. */
export const startCommand = (name: string, args: readonly string[], env: Record<string, string>): CommandProcess =>
  startNode([currentEntry(name), ...args], env);

/** {@link startCommand}, to its end. */
export const runCommand = (name: string, args: readonly string[], env: Record<string, string>): Promise<Run> =>
  toEnd(startCommand(name, args, env));

/** What `npm run NAME -- ARGUMENTS` starts, to its end. */
export function runScript(name: string, args: readonly string[], env: Record<string, string>): Promise<Run> {
  const { scripts } = JSON.parse(readFileSync(path.join(projectRoot, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const [command, ...words] = scripts[name]!.split(' ');
  if (command !== 'node') throw new Error(`npm run ${name} starts ${command}.`);
  return toEnd(startNode([...words, ...args], env));
}

const startNode = (args: readonly string[], env: Record<string, string>): CommandProcess =>
  spawn(process.execPath, args, {
    cwd: projectRoot,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });

async function toEnd(child: CommandProcess): Promise<Run> {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  await once(child, 'close');
  return { code: child.exitCode, output };
}
