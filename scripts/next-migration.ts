import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { diffToSchema, readSchema } from './schema-engine.ts';
import { withScratchDatabase } from './scratch-database.ts';

/** The SQL from what the migrations give to what prisma/schema says; empty when that is the same. */
export const nextMigration = (): Promise<string> =>
  withScratchDatabase(async (url) => {
    await migrate(url, migrationsDir);
    return diffToSchema(url, readSchema(path.join(projectRoot, 'prisma', 'schema')));
  });

/** Writes a migration that is the newest. @returns its file */
export function writeMigration(name: string, sql: string): string {
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const file = path.join(migrationsDir, `${stamp}_${name}`, 'migration.sql');
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, sql);
  return file;
}
