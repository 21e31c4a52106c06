// Phrases that readers stumbled over: in the descriptions of `schema.graphql`, which the REST reference repeats, in the
// documentation, and in the texts of the code. The changelog is written once, and stays as it is.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from '@swc/core';
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

const documents = ['README.md', 'SECURITY.md', 'schema.graphql', 'docs']
  .flatMap((start) => filesBelow(path.join(root, start)))
  .filter((file) => /\.(?:md|graphql)$/.test(file));
const modules = ['src', 'rest']
  .flatMap((start) => filesBelow(path.join(root, start)))
  .filter((file) => file.endsWith('.ts') && !file.includes(`${path.sep}generated${path.sep}`));

/**
 * The texts of a module, without its comments. An interpolation counts as `$`.
 * @param {string} code
 * @returns {string[]}
 */
function textsOf(code) {
  /** @type {string[]} */
  const texts = [];
  /** @param {unknown} value */
  const visit = (value) => {
    if (value === null || typeof value !== 'object') return;
    if ('type' in value) {
      const node = /** @type {import('@swc/core').StringLiteral | import('@swc/core').TemplateLiteral} */ (value);
      if (node.type === 'StringLiteral') texts.push(node.value);
      if (node.type === 'TemplateLiteral') texts.push(node.quasis.map(({ cooked }) => cooked ?? '').join('$'));
    }
    for (const child of Object.values(value)) visit(child);
  };
  visit(parseSync(code, { syntax: 'typescript', target: 'es2022' }).body);
  return texts;
}

let count = 0;
/** @param {string} where @param {string} text */
function check(where, text) {
  for (const [phrase, instead] of PHRASES) {
    const found = /** @type {RegExp} */ (phrase).exec(text)?.[0];
    if (found === undefined) continue;
    count += 1;
    console.error(`${where}: '${found}': ${instead}`);
  }
}

for (const file of documents)
  for (const [at, line] of readFileSync(file, 'utf8').split('\n').entries())
    check(`${path.relative(root, file)}:${at + 1}`, line);
for (const file of modules)
  for (const text of textsOf(readFileSync(file, 'utf8'))) check(`${path.relative(root, file)}: "${text}"`, text);
console.log(`${documents.length + modules.length} files of words, ${count} phrases to read twice.`);
if (count > 0) process.exitCode = 1;
