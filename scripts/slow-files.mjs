// Fails when a test file takes longer than a minute on its own: `slow-files.mjs`, after a run of the tests. A file that
// took longer in that run, beside others, is run again alone.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './stamp.mjs';

const LIMIT_MS = 60_000;
const timesFile = path.join(root, 'node_modules', '.cache', 'test-times.json');

/** @returns {string[]} */
const slowFiles = () => {
  const times = /** @type {{ file: string, load: number, database: number, app: number, tests: number }[]} */ (
    JSON.parse(readFileSync(timesFile, 'utf8'))
  );
  return times
    .filter(({ load, database, app, tests }) => load + database + app + tests > LIMIT_MS)
    .map(({ file }) => file);
};

const isSlowAlone = (/** @type {string} */ file) => {
  console.log(`${file} took longer than ${LIMIT_MS / 1_000} s: it is run again alone.`);
  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  spawnSync(process.execPath, [vitest, 'run', file], { cwd: root, stdio: 'inherit' });
  return slowFiles().includes(file);
};

const slow = slowFiles().filter(isSlowAlone);
for (const file of slow) console.error(`${file} takes longer than ${LIMIT_MS / 1_000} s on its own: split or mend it.`);
if (slow.length > 0) process.exitCode = 1;
