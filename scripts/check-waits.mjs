// Fails when a test waits for a time instead of a condition, and prints where: `file:line what`. Tests wait with
// `waitFor` and `waitUntil` of test/support/wait.ts, whose limits grow with the load of the machine.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from './stamp.mjs';

/** @type {[what: string, pattern: RegExp][]} */
const FORBIDDEN = [
  ['vi.waitFor', /\bvi\s*\.\s*waitFor\(/g],
  ['vi.waitUntil', /\bvi\s*\.\s*waitUntil\(/g],
  ['expect.poll', /\bexpect\s*\.\s*poll\(/g],
  ['a pause', /\bsetTimeout\b[^;]*['"](?:node:)?timers\/promises['"]|\bpg_sleep\(|\bsetTimeout\(|\bsleep\(/g],
  [
    'a limit of its own, which a busy machine exceeds',
    /\bsetConfig\(\{[^}]*Timeout\b|^\s*\}, \d[\d_]*_000\);$|\btimeout: \d[\d_]*_000 \}/gm,
  ],
  ['the memory or time of a process', /\bprocess\.(?:memoryUsage|cpuUsage|resourceUsage)\b/g],
];

/**
 * Where a pause is what is tested, not what is waited for.
 * @type {Record<string, string>}
 */
const ALLOWED = {
  'test/support/wait.ts': 'waits for conditions',
  'test/support/times.ts': 'what a file used of the processor is told, and nothing depends on it',
  'test/support/late-writers.ts': 'transactions of random length, which commit in another order than they began',
  'test/suites/outbox-resume.test.ts': 'readers are away for a random time',
  'test/insight/activity/sums.test.ts': 'transactions of random length, which commit in another order than they began',
  'test/crash/killed-tail.test.ts': 'writers take a rest, so that no reader is ever too far behind to resume',
  'test/deploy/rolling.test.ts': 'clients pause between requests, so that some connections are idle when a node ends',
  'test/platform/postgres/database.test.ts': 'statements that run until a limit ends them',
  'test/platform/postgres/migrate.test.ts': 'a migration that takes a while, beside another node',
  'test/support/hostile-answers.ts': 'the limit of a request that may never be answered',
  'test/upgrade/record.ts': 'makes dumps, and is no test',
};

const files = readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
  .map((name) => `test/${name.split(path.sep).join('/')}`);
if (files.length === 0) throw new Error('There are no tests to check.');

/**
 * @param {string} file
 * @returns {string[]}
 */
function waitsOf(file) {
  const text = readFileSync(path.join(root, file), 'utf8');
  return FORBIDDEN.flatMap(([what, pattern]) =>
    [...text.matchAll(pattern)].map(({ index }) => `${file}:${text.slice(0, index).split('\n').length} ${what}`),
  );
}

const found = files.filter((file) => !(file in ALLOWED)).flatMap(waitsOf);
const needless = Object.keys(ALLOWED).filter((file) => !files.includes(file) || waitsOf(file).length === 0);
for (const place of found) console.error(place);
for (const file of needless) console.error(`${file} needs no exception`);
console.log(`${files.length} files of tests, ${found.length} that wait for a time.`);
process.exit(found.length + needless.length === 0 ? 0 : 1);
