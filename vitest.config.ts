import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Vite would take graphql's `.mjs`, packages in node_modules take its CommonJS: two copies, "another realm" errors.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // a second, which is the default, is short on a machine that does other work as well
    expect: { poll: { timeout: 8_000 } },
  },
});
