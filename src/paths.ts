import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

function rootAbove(start: string): string {
  for (let dir = start; ; dir = path.dirname(dir)) {
    if (existsSync(path.join(dir, 'package.json'))) return dir;
    if (dir === path.dirname(dir)) throw new Error(`no package.json in any folder above ${start}`);
  }
}

/** The folder of `package.json`: the same when this file runs from `src/` and from `dist/src/`. */
export const projectRoot = rootAbove(path.dirname(fileURLToPath(import.meta.url)));

/** The version of the package. */
export const { version } = JSON.parse(readFileSync(path.join(projectRoot, 'package.json'), 'utf8')) as {
  version: string;
};

/** The folder of the façade's operation documents (`*.graphql`, also in sub-folders). */
export const operationsDir = path.join(projectRoot, 'rest', 'operations');

/** The folder of the Prisma migrations (`<name>/migration.sql`), applied on start. */
export const migrationsDir = path.join(projectRoot, 'prisma', 'migrations');

/** Whether the service runs from its sources, as in tests, instead of what was built. */
export const isFromSources = import.meta.url.endsWith('.ts');

/** Which files the build has checked (`platform/build-checks.ts`). */
export const buildChecksFile = path.join(projectRoot, 'dist', 'service', 'checks.json');

/**
 * How to start a module of `src` in a thread or process; it is an entry of the bundle.
 * @param module its path in `src`, without extension
 */
export const moduleOf = (module: string): { file: string; execArgv: string[] } =>
  isFromSources
    ? { file: path.join(projectRoot, 'src', `${module}.ts`), execArgv: ['--import', typescriptInThreads] }
    : { file: path.join(projectRoot, 'dist', 'service', `${path.basename(module)}.js`), execArgv: [] };

const typescriptInThreads = pathToFileURL(path.join(projectRoot, 'scripts', 'typescript-in-threads.mjs')).href;
