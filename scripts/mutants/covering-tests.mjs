import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The schema of the service, which all of the service has in common. */
const SERVICE = 'src/graphql/builder.ts';
const DATABASE = 'test/support/database.ts';

/**
 * A module of the project: what it loads, and whether it starts processes.
 * @typedef {{ imports: readonly string[], startsProcesses: boolean }} Module
 */

/** @type {Map<string, Module>} */
const known = new Map();

/**
 * Imports of types alone load nothing.
 * @param {string} file
 * @returns {Module}
 */
function moduleOf(file) {
  let found = known.get(file);
  if (!found) {
    const text = readFileSync(file, 'utf8');
    const imports = text.matchAll(/^(?:import|export) (?!type\b)[^;]*?'(\.[^']+\.m?ts)'|\bimport\('(\.[^']+)'\)/gm);
    found = {
      imports: [...imports].map(([, fixed, dynamic]) => path.join(path.dirname(file), fixed ?? dynamic ?? '')),
      startsProcesses: text.includes("'node:child_process'"),
    };
    known.set(file, found);
  }
  return found;
}

/**
 * A module with all modules that it loads.
 * @param {string} file
 * @returns {Set<string>}
 */
function closureOf(file) {
  const closure = new Set([file]);
  for (const each of closure) {
    // generated modules load nothing of ours, and may not exist yet
    if (!each.includes('/generated/')) for (const imported of moduleOf(each).imports) closure.add(imported);
  }
  return closure;
}

/** @returns {string[]} */
const allTests = () =>
  readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name.replaceAll(path.sep, '/')}`)
    .toSorted();

/**
 * The tests that a source file is judged by.
 * - `light`: tests that do not start the service. They are in the folder that mirrors the file's, or they import the
 *   file and need no database.
 * - `whole`: tests of that folder that start the service. They are slow, and only asked about what the light ones did
 *   not notice.
 * @param {string} source
 * @returns {{ light: string[], whole: string[] }}
 */
export function coveringTests(source) {
  const folder = `test/${source.replace(/^src\//, '').split('/')[0] ?? ''}/`;
  /** @type {{ light: string[], whole: string[] }} */
  const covering = { light: [], whole: [] };
  for (const test of allTests()) {
    const closure = closureOf(test);
    if (!closure.has(source)) continue;
    const own = [...closure].filter((file) => file.startsWith('test/'));
    if (own.some((file) => moduleOf(file).startsProcesses)) continue;
    const isOfFolder = test.startsWith(folder);
    if (closure.has(SERVICE)) {
      if (isOfFolder) covering.whole.push(test);
    } else if (isOfFolder || (moduleOf(test).imports.includes(source) && !closure.has(DATABASE)))
      covering.light.push(test);
  }
  return covering;
}

/**
 * Whether one of the tests needs PostgreSQL.
 * @param {readonly string[]} tests
 */
export const needDatabase = (tests) => tests.some((test) => closureOf(test).has(DATABASE));

/**
 * The files of the tests and of their helpers: what decides, with the source, how a mutant ends.
 * @param {readonly string[]} tests
 */
export const filesOf = (tests) =>
  [...new Set(tests.flatMap((test) => [...closureOf(test)]))].filter((file) => file.startsWith('test/')).toSorted();
