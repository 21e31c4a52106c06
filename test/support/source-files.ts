import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/paths.ts';

const src = path.join(projectRoot, 'src');

/** How often each file of the service writes something that the pattern finds. */
export const writtenIn = (pattern: RegExp): Record<string, number> =>
  Object.fromEntries(
    filesOf(src).flatMap((file) => {
      const count = [...readFileSync(path.join(src, file), 'utf8').matchAll(pattern)].length;
      return count > 0 ? [[file, count]] : [];
    }),
  );

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('generated'))
    .map((file) => file.split(path.sep).join('/'))
    .sort();
}
