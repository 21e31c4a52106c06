// Prints the totals of a test run, alone on a line: `test-totals.mjs RESULTS.json`. Fails when the run left no results,
// or no test ran.
import { existsSync, readFileSync } from 'node:fs';

const file = process.argv[2] ?? '';
if (!existsSync(file)) {
  console.log('The tests left no results.');
  process.exit(1);
}
/**
 * What is used of the runner's JSON report.
 * @typedef {{ status: string, assertionResults: unknown[] }} TestFile
 * @typedef {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, numTodoTests: number,
 * testResults: TestFile[] }} Report
 */
const results = /** @type {Report} */ (JSON.parse(readFileSync(file, 'utf8')));
// a file that could not even be loaded has no test to fail
const broken = results.testResults.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
).length;
const skipped = results.numPendingTests + results.numTodoTests;
console.log(
  `${results.numPassedTests} passed, ${results.numFailedTests + broken} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
);
process.exit(results.numPassedTests > 0 ? 0 : 1);
