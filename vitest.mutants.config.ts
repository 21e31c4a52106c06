import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

/**
 * The tests that a source file is judged by, as `scripts/test-mutants.mjs` chose them: in one project, because each
 * mutant needs an environment of its own, and with a database only if one of them asks for it.
 */
const tests = (process.env.MUTANT_TESTS ?? '').split(',').filter(Boolean);
const { projects: _projects, globalSetup, ...options } = base.test ?? {};

export default defineConfig({
  ...base,
  test: { ...options, include: tests, globalSetup: process.env.MUTANT_DATABASE === 'true' ? globalSetup : [] },
});
