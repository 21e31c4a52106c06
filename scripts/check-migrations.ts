// Fails when the migrations do not produce the schema in prisma/schema. Writes prisma/functions.sql, the functions and
// triggers that they end with; with --check it writes nothing and fails when that file is stale.
import path from 'node:path';
import pg from 'pg';
import { migrationsDir, projectRoot } from '../src/paths.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { diffToSchema, readSchema } from './schema-engine.ts';
import { withScratchDatabase } from './scratch-database.ts';
import { writeOrCheck } from './write-or-check.ts';

// not those of an extension, and of a partitioned table not those of its partitions
const FUNCTIONS = `select pg_get_functiondef(p.oid) as text from pg_proc p
  where p.pronamespace = 'public'::regnamespace and p.prokind in ('f', 'p')
    and not exists (select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  order by p.proname, pg_get_function_identity_arguments(p.oid)`;
const TRIGGERS = `select pg_get_triggerdef(t.oid) as text from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where c.relnamespace = 'public'::regnamespace and not t.tgisinternal and t.tgparentid = 0
  order by c.relname, t.tgname`;

const HEAD = `-- Written by \`npm run generate\`: the functions and triggers of the database after all migrations.
-- To change one, add a migration.
`;

async function functionsAndTriggers(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const texts: string[] = [];
    for (const sql of [FUNCTIONS, TRIGGERS]) {
      const { rows } = await client.query<{ text: string }>(sql);
      texts.push(...rows.map(({ text }) => `${text.trimEnd()};\n`));
    }
    return `${HEAD}\n${texts.join('\n')}`;
  } finally {
    await client.end();
  }
}

const { drift, functions } = await withScratchDatabase(async (url) => {
  await migrate(url, migrationsDir);
  return {
    drift: await diffToSchema(url, readSchema(path.join(projectRoot, 'prisma', 'schema'))),
    functions: await functionsAndTriggers(url),
  };
});

if (drift === '') console.log('The migrations give what prisma/schema says.');
else {
  console.error(
    `The migrations do not give what prisma/schema says. Run \`npm run migrate:new NAME\`. Missing:\n\n${drift}`,
  );
  process.exitCode = 1;
}
writeOrCheck(path.join(projectRoot, 'prisma', 'functions.sql'), functions);
