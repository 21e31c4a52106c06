import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { builtEntry, isBuilt } from '../../scripts/build.mjs';
import { projectRoot } from '../../src/paths.ts';

/** The service in a process of its own. */
export interface Service {
  readonly child: ChildProcess;
  /** Everything that it printed so far, both outputs. */
  output(): string;
  /** Base URL, as soon as it prints it. @throws Error with the output when it ends before. */
  url(): Promise<string>;
  /** Exit code, when it has ended; `null` when a signal killed it. */
  exited(): Promise<number | null>;
}

export interface ServiceOptions {
  /** Another checkout: it runs from its sources. */
  root?: string;
  /** With a `root`: it runs as it was built there. */
  isBuilt?: boolean;
  /** Another Node. */
  node?: string;
  /** An open file in place of a pipe: the service tells its address there, and nothing here knows it. */
  stdout?: number;
  /** Of its command line. */
  args?: readonly string[];
}

/**
 * Starts the service with these variables and nothing of the test's own but PATH, as it was built: that is what people
 * run.
 */
export function startService(
  env: Record<string, string>,
  {
    root = projectRoot,
    isBuilt: wasBuiltThere = false,
    node = process.execPath,
    stdout,
    args = [],
  }: ServiceOptions = {},
): Service {
  const elsewhere = wasBuiltThere
    ? [path.join(root, 'dist', 'service', 'main.js')]
    : ['--import', 'tsx', path.join(root, 'src', 'main.ts')];
  const main = root === projectRoot ? [currentEntry('main')] : elsewhere;
  const child = spawn(node, ['--', ...main, ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, PORT: '0', NODE_ENV: 'test', ...env },
    stdio: ['ignore', stdout ?? 'pipe', 'pipe'],
  });
  let output = '';
  const ended = once(child, 'close').then(() => child.exitCode);
  const ready = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
        const url = /REST +(\S+)\/v1/.exec(output)?.[1];
        if (url) resolve(url);
      });
    }
  });
  return {
    child,
    output: () => output,
    url: () => {
      const failed = ended.then((code) => {
        throw new Error(`the service ended with ${code}:\n${output}`);
      });
      return Promise.race([ready, failed]);
    },
    exited: () => ended,
  };
}

let wasBuilt = false;

/** The file of an entry of the bundle. @throws Error when the sources have changed since it was built */
export function currentEntry(name: string): string {
  wasBuilt ||= isBuilt(); // once for a process: it reads all sources
  if (!wasBuilt)
    throw new Error('dist is not what the sources say. Run `npm run build`, or all tests with `npm test`.');
  return builtEntry(name);
}
