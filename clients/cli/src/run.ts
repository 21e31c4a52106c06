import { CommanderError } from 'commander';
import { Ended, exitCodeOf, exitCodes, messageOf, objectOf } from './failures.ts';
import { programOf } from './program.ts';
import { visible } from './visible.ts';
import type { Surroundings } from './workbench.ts';

/** Runs a command line, without the name of the program. @returns its exit code */
export async function runCommand(args: readonly string[], around: Surroundings): Promise<number> {
  const end = args.indexOf('--');
  const isJson = (end < 0 ? args : args.slice(0, end)).includes('--json');
  const say = (text: string) => void around.stderr.write(`${text}\n`);
  try {
    await programOf(around, () => isJson).parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof Ended) return error.exitCode;
    if (error instanceof CommanderError) {
      // it has been said already, unless it is for a program; help is no failure
      if (error.exitCode !== 0 && isJson) say(JSON.stringify({ error: 'USAGE', message: error.message }));
      return error.exitCode === 0 ? 0 : exitCodes.usage;
    }
    say(isJson ? JSON.stringify(objectOf(error)) : visible(messageOf(error)));
    return exitCodeOf(error);
  }
}
