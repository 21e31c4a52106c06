import type { FastifyInstance } from 'fastify';
import { AccessTokens } from '../../src/access/access-tokens.ts';
import { Authentication } from '../../src/access/authentication.ts';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { loadConfig } from '../../src/config.ts';
import { type Database, openDatabase } from '../../src/infra/database.ts';
import { createLogger } from '../../src/infra/logger.ts';
import { Sql } from '../../src/infra/sql.ts';

/** What both hand-written servers share with the product: the database, and the very same check of the access token. */
export async function openBaseline(): Promise<{ database: Database; authentication: Authentication }> {
  const config = loadConfig();
  const database = openDatabase({
    url: config.databaseUrl!,
    poolSize: config.databasePoolSize,
    logger: createLogger({ logLevel: 'error' }),
  });
  const tokens = new AccessTokens(await SigningKeys.open(config.keysDir), config.accessTokenTtlSeconds);
  return { database, authentication: new Authentication(tokens, new Sql(database.pool)) };
}

/** Listens on a free port and says which. */
export async function serve(server: FastifyInstance): Promise<void> {
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  console.log(`listening ${url}`);
}

/** The body of a page, as the product answers it. */
export function pageOf(rows: object[], limit: number, total: number, cursorOf: (row: object) => string): object {
  const hasMore = rows.length > limit;
  const workspaces = hasMore ? rows.slice(0, limit) : rows;
  return { total, has_more: hasMore, next_cursor: hasMore ? cursorOf(workspaces.at(-1)!) : null, workspaces };
}
