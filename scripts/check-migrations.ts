// Fails when the migrations do not produce the schema in prisma/schema.
import path from 'node:path';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { diffToSchema, readSchema } from './schema-engine.ts';
import { withScratchDatabase } from './scratch-database.ts';

const drift = await withScratchDatabase(async (url) => {
  await migrate(url, migrationsDir);
  return diffToSchema(url, readSchema(path.join(projectRoot, 'prisma', 'schema')));
});

if (drift !== '') {
  console.error(
    `The migrations do not give what prisma/schema says. Run \`npm run migrate:new NAME\`. Missing:\n\n${drift}`,
  );
  process.exit(1);
}
console.log('The migrations give what prisma/schema says.');
