import { readFileSync } from 'node:fs';

/**
 * Whether the first lines of a test file have a word: `// own process: <reason>`, or another that the README of this
 * folder has.
 */
export const isMarked = (file: string, word: string): boolean =>
  new RegExp(`^// ${word}: \\S`, 'm').test(readFileSync(file, 'utf8').slice(0, 1_000));
