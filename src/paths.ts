import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

function rootAbove(start: string): string {
  for (let dir = start; ; dir = path.dirname(dir)) {
    if (existsSync(path.join(dir, 'package.json'))) return dir;
    if (dir === path.dirname(dir)) throw new Error(`no package.json in any folder above ${start}`);
  }
}

/** The folder of `package.json`: the same when this file runs from `src/` and from `dist/src/`. */
export const projectRoot = rootAbove(path.dirname(fileURLToPath(import.meta.url)));

/** The folder of the façade's operation documents (`*.graphql`, also in sub-folders). */
export const operationsDir = path.join(projectRoot, 'rest', 'operations');

/** The folder of the Prisma migrations (`<name>/migration.sql`), applied on start. */
export const migrationsDir = path.join(projectRoot, 'prisma', 'migrations');
