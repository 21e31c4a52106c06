// Phrases that readers stumbled over: in the descriptions of `schema.graphql`, which the REST reference repeats, and in
// the documentation. Decisions and the changelog are written once, and stay as they are.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { filesBelow, root } from './stamp.mjs';

/** A phrase, and what to write instead. */
const PHRASES = [
  [/\bwhat (?:it|they) says?\b/i, 'name the thing: its content, its text'],
  [/\b(?:is|are|was|were) told\b/i, 'gets a notification, receives the event'],
  [/\bthose of\b/i, 'repeat the noun'],
  [/\bones\b/i, 'repeat the noun'],
  [/\bas of\b/i, 'from … on, at the time of'],
  [/\bwhoever\b/i, 'users who, callers who'],
  [/\bof before\b/i, 'earlier, older, previous'],
  [/\bany ?more\b/i, 'no longer'],
];

const files = ['README.md', 'SECURITY.md', 'schema.graphql', 'docs']
  .flatMap((start) => filesBelow(path.join(root, start)))
  .filter((file) => /\.(?:md|graphql)$/.test(file) && !file.includes(`${path.sep}decisions${path.sep}`));

let count = 0;
for (const file of files) {
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    for (const [phrase, instead] of PHRASES) {
      const found = /** @type {RegExp} */ (phrase).exec(line)?.[0];
      if (found === undefined) continue;
      count += 1;
      console.error(`${path.relative(root, file)}:${at + 1}: '${found}': ${instead}`);
    }
  }
}
console.log(`${files.length} files of words, ${count} phrases to read twice.`);
if (count > 0) process.exitCode = 1;
