import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { fileVariable } from './setting-files.ts';

const OPTION = '--env-file';
const SUFFIX = fileVariable('');

/**
 * Adds to the environment what the file of `--env-file PATH` says. What the environment has wins, also when one of the
 * two says `NAME` and the other `NAME_FILE`.
 * @param args of the command line
 * @returns the other arguments
 * @throws Error when the option names no file that can be read
 */
export function takeEnvFile(args: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const rest: string[] = [];
  const given: NodeJS.ProcessEnv = { ...env };
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (arg !== OPTION && !arg.startsWith(`${OPTION}=`)) {
      rest.push(arg);
      continue;
    }
    const file = arg === OPTION ? args[++at] : arg.slice(OPTION.length + 1);
    if (!file) throw new Error(`${OPTION} needs the path of a file.`);
    for (const [name, value] of Object.entries(valuesOf(file))) if (!isGiven(name, given)) env[name] = value;
  }
  return rest;
}

const isGiven = (name: string, env: NodeJS.ProcessEnv): boolean =>
  [name, fileVariable(name), name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : name].some(
    (other) => !!env[other], // an empty one counts as unset
  );

function valuesOf(file: string): Record<string, string | undefined> {
  try {
    return parseEnv(readFileSync(file, 'utf8')) as Record<string, string | undefined>;
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new Error(`The file '${file}' of ${OPTION} cannot be read: ${reason}.`, { cause });
  }
}
