import type pg from 'pg';

/**
 * What a person's consent at the authorization server leaves, written as the service writes it: the seed has no browser
 * to go there. The record is of a code that nobody redeems any more.
 */
export async function seedGrants(db: pg.ClientBase, ids: Record<string, string>): Promise<void> {
  const { rows } = await db.query<{ id: string }>('select id from applications where org_id = $1', [ids.org_id]);
  if (!rows[0]) throw new Error('The seed made no application.');
  ids.application_grant_id = 'gnt_01M89000000000000000000001';
  await db.query(
    `with granted as (insert into oauth_grants
      (id, org_id, application_id, user_id, scopes, workspace_ids, last_used_at)
      values ($5, $1, $2, $3, '{openid,read}', array[$4], now()) returning id)
    insert into oauth_records (kind, id_hash, grant_id, payload, expires_at)
      select 'AuthorizationCode', repeat('9b', 32), id, '\\x00', now() + interval '1 minute' from granted`,
    [ids.org_id, rows[0].id, ids.user_id, ids.workspace_id, ids.application_grant_id],
  );
}
