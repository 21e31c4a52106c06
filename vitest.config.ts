import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

/** What a test file may leave behind in its process, or what it measures of its process; or it says so itself. */
const KEEPS_ITS_PROCESS =
  /\bvi\.(mock|spyOn|stubEnv|useFakeTimers)\(|\bprocess\.(env|memoryUsage|cpuUsage|chdir)\b|in a process of its own/;

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/${name}`);
const isOwn = (file: string): boolean => KEEPS_ITS_PROCESS.test(readFileSync(file, 'utf8'));

export default defineConfig({
  // Vite would take graphql's `.mjs`, packages in node_modules take its CommonJS: two copies, "another realm" errors.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // a second, which is the default, is short on a machine that does other work as well
    expect: { poll: { timeout: 8_000 } },
    projects: [
      // loading the service is a third of the time of all tests: files that leave nothing behind share a process
      { extends: true, test: { name: 'shared', isolate: false, include: files.filter((file) => !isOwn(file)) } },
      { extends: true, test: { name: 'own', include: files.filter(isOwn) } },
    ],
  },
});
