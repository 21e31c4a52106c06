// Fails when a line of our own files is wider than 120 columns, and prints where: `file:line`.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './stamp.mjs';

const WIDEST = 120;

/** Files that are generated, recorded or frozen once they are merged. */
const EXEMPT = [
  /^package-lock\.json$/,
  /^schema\.graphql$/,
  /(^|\/)generated\//,
  /^prisma\/(?:migrations\/|functions\.sql$)/,
  /^test\/upgrade\/dumps\//,
  /^rest\/operations\/answers\.json$/,
  /\.svg$/,
  // queries, bodies and addresses, which JSON cannot break
  /^docs\/operate\/grafana\.json$/,
  /^(?:src|test)\/tools\/tools\/built-in\/[a-z-]+\.json$/,
];

/**
 * Lines that cannot be broken: one URL, the path of a route, a relation of Prisma, a row of a Markdown table, or a
 * line in a code fence of Markdown.
 * @param {string} line
 * @param {boolean} isMarkdown
 * @param {boolean} isFenced
 */
const isUnbreakable = (line, isMarkdown, isFenced) =>
  /^(?:\W*https?:\/\/\S+|\s*path: "\S+"|\s+\w+ +\w+ @relation\(.*\))$/.test(line) ||
  (isMarkdown && (isFenced || line.startsWith('|')));

/**
 * @param {string} file
 * @returns {string[]} `file:line` of each line that is too wide
 */
function wideLines(file) {
  const text = readFileSync(path.join(root, file), 'utf8');
  if (text.includes('\0')) return []; // binary
  const isMarkdown = file.endsWith('.md');
  let isFenced = false;
  return text.split('\n').flatMap((line, index) => {
    if (isMarkdown && line.trimStart().startsWith('```')) isFenced = !isFenced;
    const isWide = [...line].length > WIDEST && !isUnbreakable(line, isMarkdown, isFenced);
    return isWide ? [`${file}:${index + 1}`] : [];
  });
}

const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter((file) => file !== '' && !EXEMPT.some((pattern) => pattern.test(file)));
if (files.length === 0) throw new Error('git names no files to check.');
const wide = files.flatMap(wideLines);
for (const place of wide) console.error(place);
console.log(`${files.length} files, ${wide.length} lines wider than ${WIDEST} columns.`);
process.exit(wide.length === 0 ? 0 : 1);
