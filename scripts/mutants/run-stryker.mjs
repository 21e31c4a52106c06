import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { filesOf, needDatabase } from './covering-tests.mjs';

/** Where the results are: a file per source file and stage. */
const RESULTS = 'node_modules/.cache/mutants';

/**
 * @typedef {'light' | 'whole'} Stage
 * @typedef {{ line: number, column: number }} Position
 * @typedef {{ start: Position, end: Position, mutator: string, replacement: string, status: string, by?: string,
 * reason?: string }} Mutant
 * @typedef {{ hash: string, mutants: Mutant[] }} Result
 * @typedef {{ source: string, stage: Stage, tests: readonly string[] }} Trial
 */

/** @param {Trial} trial */
const fileOf = ({ source, stage }) => path.join(RESULTS, `${source}.${stage}.json`);

/** @param {Trial} trial */
function hashOf({ source, tests }) {
  const hash = createHash('sha256').update(tests.join());
  for (const file of [source, ...filesOf(tests)]) hash.update('\0').update(readFileSync(file));
  return hash.digest('hex');
}

/**
 * The stored result of a trial, and whether it is that of the present source and tests.
 * @param {Trial} trial
 * @returns {{ mutants: Mutant[], isCurrent: boolean } | null}
 */
export function storedResult(trial) {
  if (!existsSync(fileOf(trial))) return null;
  const { hash, mutants } = /** @type {Result} */ (JSON.parse(readFileSync(fileOf(trial), 'utf8')));
  return { mutants, isCurrent: hash === hashOf(trial) };
}

/**
 * Tries the mutants of some source files on their tests, and stores what became of them.
 * @param {readonly Trial[]} trials of one stage
 * @param {readonly string[]} ranges the source files, or parts of them as `path:line:column-line:column`
 */
export async function tryMutants(trials, ranges) {
  const hashes = trials.map(hashOf);
  const found = await runStryker(trials, ranges);
  for (const [at, trial] of trials.entries()) {
    const mutants = found
      .filter(({ fileName }) => path.relative(process.cwd(), fileName) === trial.source)
      .map(({ location: { start, end }, mutatorName: mutator, replacement, status, killedBy, statusReason }) => ({
        start,
        end,
        mutator,
        replacement,
        status,
        by: killedBy?.[0],
        reason: statusReason?.slice(0, 200),
      }));
    mkdirSync(path.dirname(fileOf(trial)), { recursive: true });
    writeFileSync(fileOf(trial), JSON.stringify({ hash: hashes[at], mutants }));
  }
}

/**
 * Stryker keeps the result of a mutant until a test that covers it changes. Of code that runs while a module is loaded
 * it knows no such tests, and would keep for ever that they missed it.
 * @param {string} incrementalFile
 */
function forgetMissedStatic(incrementalFile) {
  if (!existsSync(incrementalFile)) return;
  const known = /** @type {{ files: Record<string, { mutants: { static?: boolean, status: string }[] }> }} */ (
    JSON.parse(readFileSync(incrementalFile, 'utf8'))
  );
  for (const file of Object.values(known.files))
    file.mutants = file.mutants.filter((mutant) => !mutant.static || mutant.status === 'Killed');
  writeFileSync(incrementalFile, JSON.stringify(known));
}

/**
 * @param {readonly Trial[]} trials
 * @param {readonly string[]} ranges
 */
function runStryker(trials, ranges) {
  const tests = [...new Set(trials.flatMap((trial) => trial.tests))];
  const stage = trials[0]?.stage ?? 'light';
  const incrementalFile = path.join(RESULTS, `${stage}.incremental.json`);
  forgetMissedStatic(incrementalFile);
  process.env.MUTANT_STAGE = stage;
  process.env.MUTANT_TESTS = tests.join();
  process.env.MUTANT_DATABASE = String(needDatabase(tests));
  process.env.TEST_SOURCES = '1'; // compiled code has no mutants
  const plugin = (/** @type {string} */ name) => path.resolve(`scripts/mutants/${name}.mjs`);
  return new Stryker({
    mutate: [...ranges],
    testRunner: 'hot',
    plugins: [plugin('hot-runner'), plugin('ignored-words')],
    ignorers: ['words'],
    coverageAnalysis: 'perTest',
    // what the whole service does while it is loaded cannot be tried without a new process for each mutant
    ignoreStatic: stage === 'whole',
    incremental: true,
    incrementalFile,
    concurrency: 1,
    timeoutMS: 30_000,
    timeoutFactor: 3,
    disableTypeChecks: false,
    tsconfigFile: 'none', // TypeScript 7 has no function that could rewrite it, and nothing in a copy reads it
    ignorePatterns: ['dist', '.data', 'bench', 'coverage', 'test/upgrade/dumps'],
    allowEmpty: true,
    reporters: process.stdout.isTTY ? ['progress'] : [],
    logLevel: /** @type {never} */ ('error'),
    warnings: { slow: false, unknownOptions: true, preprocessorErrors: true, unserializableOptions: true },
  }).runMutationTest();
}
