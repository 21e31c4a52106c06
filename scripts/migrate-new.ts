// Writes the next migration: the difference between the migrations and prisma/schema. `npm run migrate:new NAME`
import path from 'node:path';
import { projectRoot } from '../src/paths.ts';
import { nextMigration, writeMigration } from './next-migration.ts';

const name = process.argv[2] ?? '';
if (!/^[a-z][a-z0-9_]*$/.test(name)) {
  console.error(
    'Give the migration a name of lower case letters, digits and underscores: npm run migrate:new add_apps',
  );
  process.exit(1);
}

const sql = await nextMigration();
if (sql === '') {
  console.error('Nothing to do: the migrations already give what prisma/schema says.');
  process.exit(1);
}
const file = writeMigration(name, `${sql}\n`);
console.log(
  `Wrote ${path.relative(projectRoot, file)}. Read it, and complete it by hand ` +
    'where Prisma cannot express what you mean.',
);
