import type pg from 'pg';

/**
 * Second factors of somebody who does not sign in afterwards, written as the service writes them: the seed has no
 * authenticator. An app that was only begun is made through the front door before.
 */
export async function seedFactors(db: pg.ClientBase, ids: Readonly<Record<string, string>>): Promise<void> {
  const statements = [
    `insert into passkeys (id, user_id, name, credential_id, public_key, sign_count, is_synced, transports)
      values ('pky_01M89000000000000000000001', $1, 'Phone', 'a-credential', '\\x00', 3, true, '{internal}')`,
    `insert into recovery_codes (hash, user_id) values (repeat('3e', 32), $1)`,
    `insert into used_challenges (hash, expires_at)
      select repeat('7d', 32), now() + interval '5 minutes' where $1::text <> ''`,
  ];
  for (const statement of statements) await db.query(statement, [ids.member_user_id]);
}
