import { createHash } from 'node:crypto';
import { migrationsDir } from '../../src/paths.ts';
import { readMigrations } from '../../src/platform/postgres/migrate.ts';

// apart from `cluster.ts`, which starts processes: what only needs a copy of the template starts none

/** Name of the migrated database that tests copy; another set of migrations has another. */
export const templateOf = (): string => `test_template_${digestOfTemplate().slice(0, 16)}`;

const month = (): string => process.env.TEST_MONTH ?? new Date().toISOString().slice(0, 7);

let known: string | undefined;
/**
 * Of the migrations, of the program that made the files, and of the month: migrations make partitions for it and the
 * next ones. A run has one month, also if another one begins meanwhile.
 */
export function digestOfTemplate(): string {
  known ??= createHash('sha256')
    .update(`1 ${process.platform} ${process.arch} ${process.versions.node} ${month()}\0`)
    .update(
      readMigrations(migrationsDir)
        .map(({ name, checksum }) => `${name} ${checksum}`)
        .join('\n'),
    )
    .digest('hex');
  return known;
}
