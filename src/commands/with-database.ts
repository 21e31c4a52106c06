import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { createLogger } from '../platform/logger.ts';
import { type Database, openDatabase } from '../platform/postgres/database.ts';
import { isPooled } from '../platform/postgres/pooler.ts';
import { runningPostgresUrl, startEmbeddedPostgres } from '../platform/postgres/postgres-embedded.ts';

const logger = createLogger({ logLevel: 'error' });

/** Connects to the service's database: the configured one, or the embedded one, which is started if needed. */
export async function withDatabase<T>(
  config: Config,
  applicationName: string,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const dir = path.join(config.dataDir, 'postgres');
  const known = config.databaseDirectUrl ?? config.databaseUrl ?? runningPostgresUrl(dir);
  if (!known && !existsSync(dir))
    throw new Error(
      `There is no database in ${dir}: start the service once, or set DATABASE_URL or DATA_DIR as for the service.`,
    );
  const server = known ? null : await startEmbeddedPostgres({ dir, logger });
  const url = known ?? server!.url;
  // the limits of sessions are then those of the role, which the service gives it
  const pooled = known && config.databaseUrl && (await isPooled(url)) ? { directUrl: url } : undefined;
  const database = openDatabase({ url, pooled, poolSize: 2, logger, applicationName });
  try {
    return await work(database);
  } finally {
    await database.close();
    await server?.stop();
  }
}
