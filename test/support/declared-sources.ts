import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { PageSource } from '../../src/data/pages.ts';
import { projectRoot } from '../../src/paths.ts';

declare global {
  /** Where a suite collects the lists that the modules declare, by `file name`. */
  var declaredSources: Map<string, PageSource<object>> | undefined;
}

const src = path.join(projectRoot, 'src');
const DECLARATION = /^(?:export )?const (\w+): (?:PageSource<.*>|typeof \w+) = (?:\{|\w+\()/gm;

/** Names of the lists that a module declares. A constant typed like another one counts, because lists are made from each other so. */
const namesIn = (code: string): string[] =>
  code.includes('PageSource<') ? [...code.matchAll(DECLARATION)].map(([, name]) => name!) : [];

/** Every list that is written by hand anywhere in the service, as `file name`. */
export const writtenSources: readonly string[] = filesOf(src).flatMap((file) =>
  namesIn(readFileSync(path.join(src, file), 'utf8')).map((name) => `${file} ${name}`),
);

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

/** Lets modules hand over the lists that they declare, to the suite that asks for them. They are nobody's to import. */
export function collectSources() {
  return {
    name: 'collect-sources',
    enforce: 'pre' as const,
    transform(code: string, id: string) {
      const file = path.relative(src, id).split(path.sep).join('/');
      if (file.startsWith('..') || !file.endsWith('.ts')) return null;
      const calls = namesIn(code).map(
        (name) => `globalThis.declaredSources?.set(${JSON.stringify(`${file} ${name}`)}, ${name});`,
      );
      return calls.length > 0 ? { code: `${code}\n${calls.join('\n')}\n`, map: null } : null;
    },
  };
}
