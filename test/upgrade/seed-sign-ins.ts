import type pg from 'pg';

/**
 * What a sign-in at a foreign provider leaves, written as the service writes it: the seed has no provider to go to.
 * @param ids of the seed; the identity provider is the one that it made
 */
export async function seedSignIns(db: pg.ClientBase, ids: Readonly<Record<string, string>>): Promise<void> {
  const { rows } = await db.query<{ id: string }>('select id from identity_providers where org_id = $1', [ids.org_id]);
  if (!rows[0]) throw new Error('The seed made no identity provider.');
  const values = [ids.org_id, rows[0].id, ids.member_user_id];
  // the parameters are of one type everywhere
  const given = `with given as (select $1::text as org, $2::text as provider, $3::text as person)`;
  const statements = [
    `insert into identity_links (id, org_id, identity_provider_id, subject, user_id, reason, last_sign_in_at)
      select 'idl_01M89000000000000000000001', org, provider, 'bob-at-the-provider', person, 'managed_account', now()
      from given`,
    `insert into identity_grants (identity_provider_id, user_id, place_id, org_id, role, own_role)
      select provider, person, org, org, 'admin', 'member' from given`,
    `insert into identity_provider_tests (id, org_id, identity_provider_id, started_by, status, failure, finished_at,
        expires_at)
      select 'idt_01M89000000000000000000001', org, provider, person, 'failed', 'The provider did not answer.', now(),
        now() + interval '1 day' from given`,
    `insert into sso_states (hash, org_id, identity_provider_id, nonce, expires_at)
      select repeat('5a', 32), org, provider, 'a nonce', now() + interval '10 minutes' from given where person <> ''`,
    `insert into sso_assertions (identity_provider_id, assertion_id, expires_at)
      select provider, '_assertion-of-old', now() + interval '10 minutes' from given where org <> '' and person <> ''`,
    `insert into sso_codes (hash, org_id, identity_provider_id, user_id, subject, expires_at, used_at)
      select repeat('c0', 32), org, provider, person, 'bob-at-the-provider', now() + interval '1 minute', now()
      from given`,
  ];
  for (const statement of statements) await db.query(`${given} ${statement}`, values);
}
