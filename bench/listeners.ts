import { randomBytes } from 'node:crypto';
import path from 'node:path';
import pg from 'pg';
import { AccessTokens } from '../src/access/access-tokens.ts';
import { SigningKeys } from '../src/access/signing-keys.ts';
import type { Account } from './api.ts';

/** A signed-in user, and the workspace that they may read. */
export interface Listener {
  token: string;
  workspaceId: string;
}

const MAKE = `with made as (
    select n, 'usr_' || $1 || lpad(n::text, 12, '0') as user_id from generate_series(1, $2::int) n),
  people as (insert into users (id, email, email_key, username, username_key, is_verified)
    select user_id, user_id || '@example.test', user_id, user_id, user_id, true from made),
  signed as (insert into sessions (id, user_id, org_id, expires_at)
    select 'ses_' || $1 || lpad(n::text, 12, '0'), user_id, $3, now() + interval '1 day' from made),
  members as (insert into organization_members (id, org_id, user_id, role)
    select 'om_' || $1 || lpad(n::text, 12, '0'), $3, user_id, 'viewer' from made)
  insert into workspace_members (id, org_id, workspace_id, user_id, role)
    select 'wm_' || $1 || lpad(n::text, 12, '0'), $3, ($4::text[])[1 + n % array_length($4::text[], 1)], user_id,
      'viewer' from made
    returning user_id as "userId", workspace_id as "workspaceId"`;

/** People of the account's organization, each a viewer of one of the workspaces. */
export async function makeListeners(
  databaseUrl: string,
  dataDir: string,
  { orgId }: Account,
  workspaceIds: readonly string[],
  count: number,
): Promise<Listener[]> {
  const mark = randomBytes(4).toString('hex');
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ userId: string; workspaceId: string }>(MAKE, [
      mark,
      count,
      orgId,
      workspaceIds,
    ]);
    const tokens = new AccessTokens(await SigningKeys.open(path.join(dataDir, 'keys')), 7_200);
    return await Promise.all(
      rows.map(async ({ userId, workspaceId }) => ({
        workspaceId,
        token: await tokens.issue({ userId, orgId, sessionId: `ses_${userId.slice(4)}` }),
      })),
    );
  } finally {
    await client.end();
  }
}
