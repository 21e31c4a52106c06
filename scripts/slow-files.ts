// Fails when a test file takes longer than a minute on its own, times how much slower this machine is than the one of
// `slowness.ts`: run after the tests. In that run, files share the processors: one that took longer than its share
// allows is run again alone.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { projectRoot } from '../src/paths.ts';
import { slownessNow, WORKERS } from '../test/support/slowness.ts';
import { type FileTimes, timesFile } from '../test/support/times-reporter.ts';

const LIMIT_MS = 60_000;
/** How many processes of the tests there are for each processor. */
const SHARING = Math.max(1, WORKERS / os.availableParallelism());

/** The files above the limit, by what they took in milliseconds. */
function slowFiles(limitMs: number): Map<string, number> {
  const times = JSON.parse(readFileSync(timesFile, 'utf8')) as FileTimes[];
  const taken = times.map(({ file, load, database, app, tests }) => [file, load + database + app + tests] as const);
  return new Map(taken.filter(([, total]) => total > limitMs));
}

const inSeconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

const limitAlone = (): number => LIMIT_MS * slownessNow();

function isSlowAlone(file: string): boolean {
  const limitMs = limitAlone();
  console.log(`${file} is run again alone, for which it has ${inSeconds(limitMs)}.`);
  const vitest = path.join(projectRoot, 'node_modules', 'vitest', 'vitest.mjs');
  spawnSync(process.execPath, [vitest, 'run', file], { cwd: projectRoot, stdio: 'inherit' });
  const taken = slowFiles(limitMs).get(file);
  if (taken !== undefined) console.error(`${file} took ${inSeconds(taken)} on its own: split or mend it.`);
  return taken !== undefined;
}

// on a busy machine, one that took less than it would have alone need not show that again
const slow = [...slowFiles(Math.max(LIMIT_MS * SHARING, limitAlone())).keys()].filter(isSlowAlone);
if (slow.length > 0) process.exitCode = 1;
