import { PassThrough, Readable } from 'node:stream';
import { runCommand } from '../../clients/cli/dist/run.js';
import type { Surroundings } from '../../clients/cli/dist/workbench.js';

/** What a command came to. */
export interface Ran {
  code: number;
  out: string;
  err: string;
}

interface Given {
  env?: Record<string, string>;
  input?: string;
  /** Somebody looks at stderr in a terminal. */
  isWatched?: boolean;
}

/**
 * Runs a command of the command line in this process: all of it but the start of a program. There is no terminal, and
 * nothing set but `env`.
 */
export async function commandLine(
  args: readonly string[],
  { env = {}, input = '', isWatched = false }: Given = {},
): Promise<Ran> {
  const [out, err] = [new Kept(), new Kept()];
  if (isWatched) Object.assign(err, { isTTY: true });
  const around = { env, stdin: Readable.from([Buffer.from(input)]), stdout: out, stderr: err };
  const code = await runCommand(args, around as unknown as Surroundings);
  return { code, out: out.text, err: err.text };
}

/** A stream that keeps what is written. */
class Kept extends PassThrough {
  text = '';

  constructor() {
    super();
    this.on('data', (part: Buffer) => (this.text += part.toString()));
  }
}
