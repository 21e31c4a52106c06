// Mutation tests of the folders that must never be wrong: changes their sources, one small fault at a time, and looks
// whether a test notices. See docs/contribute/mutants.md.
//   test-mutants.mjs [PATH …]   tries the source files, or those below the folders, that have no current result
//   --light                     only on the tests that do not start the service
//   --report                    prints the scores of the stored results and tries nothing
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { coveringTests } from './mutants/covering-tests.mjs';
import { storedResult, tryMutants } from './mutants/run-stryker.mjs';

/**
 * @typedef {import('./mutants/run-stryker.mjs').Mutant} Mutant
 * @typedef {import('./mutants/run-stryker.mjs').Trial} Trial
 */

const FOLDERS = ['src/kernel', 'src/engine/execution', 'src/engine/live', 'src/access', 'src/data', 'rest'];
const GENERATED = 'rest/generated/';
/** Source files of one run of Stryker. Its results are kept when it is done. */
const AT_ONCE = 6;

const flags = process.argv.slice(2).filter((arg) => arg.startsWith('--'));
const paths = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));
const isLight = flags.includes('--light');

/** @param {string} given a source file or a folder */
const sourcesIn = (given) =>
  statSync(given).isFile()
    ? [given]
    : readdirSync(given, { recursive: true, encoding: 'utf8' })
        .map((name) => path.join(given, name))
        .filter((name) => name.endsWith('.ts') && !name.startsWith(GENERATED))
        .toSorted();

const isNoticed = (/** @type {Mutant} */ { status }) => status === 'Killed' || status === 'Timeout';
const isMissed = (/** @type {Mutant} */ { status }) => status === 'Survived' || status === 'NoCoverage';
/** Ranges count columns from 0, results from 1. */
const rangeOf = (/** @type {Mutant} */ { start, end }) =>
  `${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`;
const identityOf = (/** @type {Mutant} */ mutant) => `${rangeOf(mutant)} ${mutant.mutator} ${mutant.replacement}`;

/**
 * The mutants with what became of them in the end: what light tests missed, tests of the whole service may notice.
 * @param {Mutant[]} light
 * @param {Mutant[]} whole
 */
function merged(light, whole) {
  const later = new Map(whole.map((mutant) => [identityOf(mutant), mutant]));
  return light.map((mutant) => {
    const again = isMissed(mutant) ? later.get(identityOf(mutant)) : undefined;
    return again && again.status !== 'Ignored' && again.status !== 'NoCoverage' ? again : mutant;
  });
}

/**
 * The stored result of a file; `null` if it was never tried.
 * @param {string} source
 */
function resultOf(source) {
  const { light, whole } = coveringTests(source);
  const first = storedResult({ source, stage: 'light', tests: light });
  const second = storedResult({ source, stage: 'whole', tests: whole });
  if (!first) return null;
  return {
    mutants: merged(first.mutants, second?.mutants ?? []),
    isCurrent: first.isCurrent && second?.isCurrent !== false,
  };
}

/** @param {Mutant[]} mutants */
function scoreOf(mutants) {
  const count = (/** @type {string} */ status) => mutants.filter((mutant) => mutant.status === status).length;
  const noticed = mutants.filter(isNoticed).length;
  const tried = noticed + mutants.filter(isMissed).length;
  const score = tried === 0 ? '-' : `${((100 * noticed) / tried).toFixed(1)} %`;
  return [tried, count('Killed'), count('Timeout'), count('Survived'), count('NoCoverage'), score];
}

/** @param {readonly (string | number)[]} cells */
const row = ([name = '', ...cells]) =>
  console.log(String(name).padEnd(46) + cells.map((cell) => String(cell).padStart(12)).join(''));

function report() {
  row(['', 'mutants', 'killed', 'timeout', 'survived', 'no coverage', 'score']);
  for (const folder of paths.length > 0 ? paths : FOLDERS) {
    const sources = sourcesIn(folder).map((source) => ({ source, result: resultOf(source) }));
    row([folder, ...scoreOf(sources.flatMap(({ result }) => result?.mutants ?? []))]);
    for (const { source, result } of sources) {
      if (!result) row([`  ${source}`, 'not tried']);
      else row([`  ${source}${result.isCurrent ? '' : ' (outdated)'}`, ...scoreOf(result.mutants)]);
    }
  }
}

/**
 * @param {string} source
 * @param {Mutant[]} mutants
 */
function printMissed(source, mutants) {
  const lines = readFileSync(source, 'utf8').split('\n');
  for (const { start, end, mutator, replacement, status } of mutants.filter(isMissed)) {
    const rest = (lines[start.line - 1] ?? '').slice(start.column - 1, start.line === end.line ? end.column - 1 : 999);
    const change = `${rest.trim()} -> ${replacement.replaceAll(/\s+/g, ' ')}`;
    console.log(`  ${source}:${start.line}:${start.column} ${status} ${mutator}: ${change.slice(0, 160)}`);
  }
}

/**
 * Tries the mutants of some source files: of all of them on their light tests, then the ones that those missed on the
 * tests of the whole service.
 * @param {readonly string[]} sources
 */
async function judge(sources) {
  /** @type {Trial[]} */
  const light = sources.map((source) => ({ source, stage: 'light', tests: coveringTests(source).light }));
  const outdated = light.filter((trial) => !storedResult(trial)?.isCurrent);
  if (outdated.length > 0)
    await tryMutants(
      outdated,
      outdated.map(({ source }) => source),
    );
  if (isLight) return;
  for (const trial of light) {
    const { source } = trial;
    const whole = /** @type {Trial} */ ({ source, stage: 'whole', tests: coveringTests(source).whole });
    const missed = storedResult(trial)?.mutants.filter(isMissed) ?? [];
    if (missed.length === 0 || whole.tests.length === 0 || storedResult(whole)?.isCurrent) continue;
    await tryMutants(
      [whole],
      missed.map((mutant) => `${source}:${rangeOf(mutant)}`),
    );
  }
}

async function run() {
  const sources = (paths.length > 0 ? paths : FOLDERS).flatMap(sourcesIn);
  for (let at = 0; at < sources.length; at += AT_ONCE) {
    const some = sources.slice(at, at + AT_ONCE);
    await judge(some);
    for (const source of some) {
      const { mutants } = resultOf(source) ?? { mutants: [] };
      row([source, ...scoreOf(mutants)]);
      printMissed(source, mutants);
    }
  }
}

if (flags.includes('--report')) report();
else await run();
