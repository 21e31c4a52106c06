// Prints what failed in a test run, and its totals on the last line: `test-totals.mjs RESULTS.json`. Fails when the run
// left no results, or no test ran.
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const file = process.argv[2] ?? '';
if (!existsSync(file)) {
  console.log('The tests left no results.');
  process.exit(1);
}
/**
 * The parts of the runner's JSON report that are used here.
 * @typedef {{ status: string, fullName: string, failureMessages?: string[] }} Test
 * @typedef {{ name: string, status: string, message: string, assertionResults: Test[] }} TestFile
 * @typedef {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, numTodoTests: number,
 * testResults: TestFile[] }} Report
 */
const results = /** @type {Report} */ (JSON.parse(readFileSync(file, 'utf8')));
// a file that could not be loaded has no tests that could fail
const broken = results.testResults.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
);
/**
 * What went wrong, short enough for the end of a long log.
 * @param {string} title
 * @param {string[]} messages
 */
const tell = (title, messages) => {
  const lines = messages.join('\n').split('\n').slice(0, 12);
  console.log([`✗ ${title}`, ...lines.map((line) => `    ${line.slice(0, 300)}`)].join('\n'));
};
for (const { name, assertionResults } of results.testResults) {
  for (const test of assertionResults.filter(({ status }) => status === 'failed')) {
    tell(`${relative('.', name)}: ${test.fullName}`, test.failureMessages ?? []);
  }
}
for (const { name, message } of broken) tell(relative('.', name), [message]);
const skipped = results.numPendingTests + results.numTodoTests;
const ending = skipped > 0 ? `, ${skipped} skipped` : '';
console.log(`${results.numPassedTests} passed, ${results.numFailedTests + broken.length} failed${ending}`);
process.exit(results.numPassedTests > 0 ? 0 : 1);
