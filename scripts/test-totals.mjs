// Prints the totals of a test run on one line: `test-totals.mjs RESULTS.json`. Fails when the run left no results,
// or no test ran.
import { existsSync, readFileSync } from 'node:fs';

const file = process.argv[2] ?? '';
if (!existsSync(file)) {
  console.log('The tests left no results.');
  process.exit(1);
}
/**
 * The parts of the runner's JSON report that are used here.
 * @typedef {{ status: string, assertionResults: unknown[] }} TestFile
 * @typedef {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, numTodoTests: number,
 * testResults: TestFile[] }} Report
 */
const results = /** @type {Report} */ (JSON.parse(readFileSync(file, 'utf8')));
// a file that could not be loaded has no tests that could fail
const broken = results.testResults.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
).length;
const skipped = results.numPendingTests + results.numTodoTests;
const ending = skipped > 0 ? `, ${skipped} skipped` : '';
console.log(`${results.numPassedTests} passed, ${results.numFailedTests + broken} failed${ending}`);
process.exit(results.numPassedTests > 0 ? 0 : 1);
