import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { projectRoot } from '../../src/paths.ts';

/** Where the times of the last run are. */
export const timesFile = path.join(projectRoot, 'node_modules', '.cache', 'test-times.json');

/** Milliseconds of a test file, by what they were spent on. */
export interface FileTimes {
  file: string;
  /** Starting the process and loading modules. */
  load: number;
  database: number;
  app: number;
  tests: number;
  /** What the process used of a processor for all of the above: the rest was waited for, or done elsewhere. */
  processor: number;
}

const SLOWEST = 25;

/** Tells which test files take the most time, and what they spend it on. */
export default class TimesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map(timesOf).toSorted((a, b) => total(b) - total(a));
    mkdirSync(path.dirname(timesFile), { recursive: true });
    writeFileSync(timesFile, JSON.stringify(files, null, 1));
    const sum = (kind: Exclude<keyof FileTimes, 'file'>) => files.reduce((all, file) => all + file[kind], 0);
    const whole: FileTimes = {
      file: `all ${files.length} files`,
      load: sum('load'),
      database: sum('database'),
      app: sum('app'),
      tests: sum('tests'),
      processor: sum('processor'),
    };
    console.log(`\nThe ${SLOWEST} slowest test files, in seconds:`);
    console.log([HEAD, ...[...files.slice(0, SLOWEST), whole].map(line)].join('\n'));
  }
}

function timesOf(module: TestModule): FileTimes {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } = module.diagnostic();
  const { database = 0, app = 0, processor = 0 } = module.meta().times ?? {};
  return {
    file: path.relative(projectRoot, module.moduleId),
    load: environmentSetupDuration + prepareDuration + collectDuration + setupDuration,
    database,
    app,
    tests: Math.max(0, duration - database - app),
    processor,
  };
}

const total = ({ load, database, app, tests }: FileTimes): number => load + database + app + tests;

const cells = (...texts: string[]): string => texts.map((text) => text.padStart(9)).join('');
const HEAD = cells('total', 'load', 'database', 'app', 'tests', 'cpu');
const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
const line = (times: FileTimes): string => {
  const { load, database, app, tests, processor, file } = times;
  return `${cells(...[total(times), load, database, app, tests, processor].map(seconds))}  ${file}`;
};
