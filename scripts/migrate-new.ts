// Writes the next migration: the difference between the migrations and prisma/schema. `npm run migrate:new NAME`
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { diffToSchema, readSchema } from './schema-engine.ts';
import { withScratchDatabase } from './scratch-database.ts';

const name = process.argv[2] ?? '';
if (!/^[a-z][a-z0-9_]*$/.test(name)) {
  console.error(
    'Give the migration a name of lower case letters, digits and underscores: npm run migrate:new add_apps',
  );
  process.exit(1);
}

const sql = await withScratchDatabase(async (url) => {
  await migrate(url, migrationsDir);
  return diffToSchema(url, readSchema(path.join(projectRoot, 'prisma', 'schema')));
});

if (sql === '') {
  console.error('Nothing to do: the migrations already give what prisma/schema says.');
  process.exit(1);
}
const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
const file = path.join(migrationsDir, `${stamp}_${name}`, 'migration.sql');
mkdirSync(path.dirname(file), { recursive: true });
writeFileSync(file, `${sql}\n`);
console.log(
  `Wrote ${path.relative(projectRoot, file)}. Read it, and complete it by hand ` +
    'where Prisma cannot express what you mean.',
);
