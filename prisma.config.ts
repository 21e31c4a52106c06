import path from 'node:path';
import { defineConfig } from 'prisma/config';

// No datasource: migrations are written and applied by scripts/ and src/platform/postgres/migrate.ts, never by the CLI.
export default defineConfig({
  schema: path.join('prisma', 'schema'),
  migrations: { path: path.join('prisma', 'migrations') },
});
