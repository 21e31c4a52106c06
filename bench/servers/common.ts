import type { FastifyInstance } from 'fastify';
import { AccessTokens } from '../../src/access/access-tokens.ts';
import { Authentication } from '../../src/access/authentication.ts';
import { OAuthTokens } from '../../src/access/oauth-tokens.ts';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { TokenUses } from '../../src/access/token-uses.ts';
import { loadConfig } from '../../src/config.ts';
import { Sql } from '../../src/data/sql.ts';
import { RootKeys } from '../../src/platform/keys/root-keys.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { type Database, openDatabase } from '../../src/platform/postgres/database.ts';

/**
 * What a hand-written server shares with the product: the database, the keys, and the same check of the access token.
 */
interface Baseline {
  database: Database;
  rootKeys: RootKeys;
  authentication: Authentication;
}

export async function openBaseline(): Promise<Baseline> {
  const config = loadConfig();
  const database = openDatabase({
    url: config.databaseUrl!,
    poolSize: config.databasePoolSize,
    logger: createLogger({ logLevel: 'error' }),
  });
  const tokens = new AccessTokens(await SigningKeys.open(config.keysDir), config.accessTokenTtlSeconds);
  const sql = new Sql(database.pool);
  const uses = new TokenUses(sql, (error) => {
    throw error;
  });
  const authentication = new Authentication(tokens, new OAuthTokens([], () => ''), uses, sql);
  return { database, rootKeys: await RootKeys.open(config, database), authentication };
}

/** Listens on a free port and prints its address. */
export async function serve(server: FastifyInstance): Promise<void> {
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  console.log(`listening ${url}`);
}

/** The body of a page, as the product answers it. `rows` may have one row more than the page. */
export function pageOf(name: string, rows: object[], limit: number, total: number, cursor: string | null): object {
  const hasMore = rows.length > limit;
  return { total, has_more: hasMore, next_cursor: cursor, [name]: hasMore ? rows.slice(0, limit) : rows };
}

/** The cursor of a page of workspaces. */
export function workspaceCursor(rows: readonly { workspace_id: string }[], limit: number): string | null {
  return rows.length > limit ? Buffer.from(rows[limit - 1]!.workspace_id).toString('base64url') : null;
}
