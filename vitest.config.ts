import { readdirSync } from 'node:fs';
import path from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongFirst } from './test/support/long-first.ts';
import { isMarked } from './test/support/marks.ts';
import { slowness, WORKERS } from './test/support/slowness.ts';

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/${name}`);

const marked = (word: string): string[] => files.filter((file) => isMarked(file, word));

const fromSources = marked('from sources');
/** What sets up a session, which a pooler would give to somebody else. */
const direct = process.env.TEST_POOLER ? marked('direct connection') : [];
const elsewhere = new Set([...fromSources, ...direct]);
const ownProcess = marked('own process').filter((file) => !elsewhere.has(file));
const shared = files.filter((file) => !elsewhere.has(file) && !ownProcess.includes(file));

// Vite would take graphql's `.mjs`, packages in node_modules take its CommonJS: two copies, "another realm" errors.
const oneGraphQL = { find: /^graphql$/, replacement: 'graphql/index.js' };
/** What the build compiled: nothing has to be transformed, and the build has checked the documents. */
const built = {
  find: /^(?:\.\.?\/)+(src|rest)\/(?!generated\/)(.*)\.ts$/,
  replacement: path.join(import.meta.dirname, 'dist', '$1', '$2.js'),
};

// measured before the tests make the machine busy, and told to their processes
const factor = slowness();
process.env.TEST_SLOWNESS = String(factor);
// databases are copies of one that was made in this month
process.env.TEST_MONTH ??= new Date().toISOString().slice(0, 7);

// requests leave much behind that is dead at once: with room for it, it is swept less often, a tenth of the processor
// (functions that rest for some collections would be compiled again by a later file). What stays of all files is a
// quarter of a gigabyte: with a first heap above that, the whole heap is seldom collected
const ROOM = [
  '--max-semi-space-size=128',
  '--min-semi-space-size=64',
  '--initial-old-space-size=800',
  '--no-flush-bytecode',
];

/** A process of one file runs most of its code too seldom to win what optimizing it takes. Node 26 lacks the flag. */
const SELDOM_OPTIMIZED = process.versions.node.startsWith('20.') ? ['--interrupt-budget=1000000'] : [];

const common = {
  maxWorkers: WORKERS,
  // they end what hangs: a machine may become busy after it was measured
  testTimeout: 300_000 * factor,
  hookTimeout: 300_000 * factor,
  server: { deps: { external: [/\/dist\/(?:src|rest)\//] } },
} satisfies TestProjectInlineConfiguration['test'] & { maxWorkers: number };

const project = (
  name: string,
  include: string[],
  {
    isBuilt = true,
    isolate = true,
    env = {},
  }: { isBuilt?: boolean; isolate?: boolean; env?: Record<string, string> } = {},
): TestProjectInlineConfiguration => ({
  resolve: { alias: isBuilt && !process.env.TEST_SOURCES ? [oneGraphQL, built] : [oneGraphQL] },
  test: {
    ...common,
    pool: 'forks',
    execArgv: isolate ? [...ROOM, ...SELDOM_OPTIMIZED] : ROOM,
    setupFiles: ['test/support/setup.ts', ...(isolate ? [] : ['test/support/shared-setup.ts'])],
    name,
    include,
    isolate,
    env,
  },
});

export default defineConfig({
  test: {
    ...common,
    // once for the run: a project that inherits it would start a PostgreSQL of its own
    globalSetup: ['test/support/global-setup.ts'],
    reporters: ['default', './test/support/times-reporter.ts'],
    sequence: { sequencer: LongFirst },
    projects: [
      // loading the service takes seconds: files that leave nothing behind share a process, its app and its database
      project('shared', shared, { isolate: false }),
      project('own process', ownProcess),
      ...(direct.length > 0 ? [project('direct connection', direct, { env: { TEST_DIRECT: '1' } })] : []),
      // what replaces modules of packages by mocks
      project('from sources', fromSources, { isBuilt: false }),
    ],
  },
});
