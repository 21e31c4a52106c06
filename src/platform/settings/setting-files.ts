import { readFileSync, statSync } from 'node:fs';

/** What a variable is called whose value is the path of a file that holds the setting. */
export const fileVariable = (variable: string): string => `${variable}_FILE`;

const LARGEST_BYTES = 64 * 1024;

/** Words for what happens to people; any other code is shown as it is. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a folder',
};

/**
 * The values of `NAME_FILE`, as secrets are given by Docker and Kubernetes: the text of the file without the line feeds
 * at its end.
 * @returns the environment with them, and one sentence for each that cannot be taken
 */
export function withSettingFiles(
  env: NodeJS.ProcessEnv,
  variables: readonly string[],
): { env: NodeJS.ProcessEnv; problems: string[] } {
  const filled: NodeJS.ProcessEnv = { ...env };
  const problems: string[] = [];
  for (const variable of variables) {
    const file = env[fileVariable(variable)];
    if (!file) continue;
    if (env[variable]) {
      problems.push(`${variable} and ${fileVariable(variable)} are both set. Set one of them.`);
      continue;
    }
    const { text, problem } = read(file);
    if (problem) problems.push(`${fileVariable(variable)} names '${file}', but ${problem}.`);
    else filled[variable] = text;
  }
  return { env: filled, problems };
}

function read(file: string): { text?: string; problem?: string } {
  try {
    if (statSync(file).size > LARGEST_BYTES) return { problem: 'it is larger than 64 KiB' };
    const text = readFileSync(file, 'utf8').replace(/[\r\n]+$/, '');
    return text === '' ? { problem: 'it is empty' } : { text };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return { problem: REASONS[code] ?? `it cannot be read: ${code}` };
  }
}
