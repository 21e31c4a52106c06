import type pg from 'pg';

/** What a directory keeps by SCIM, written as the service writes it: a user who is off, in a group. */
export async function seedDirectory(db: pg.ClientBase, ids: Readonly<Record<string, string>>): Promise<void> {
  await db.query(
    `with person as (insert into scim_users (id, org_id, user_name, user_name_key, external_id, display_name, email)
        values ('scu_01M89000000000000000000001', $1, 'Eve@example.com', 'eve@example.com', '00u1', 'Eve',
          'eve@example.com') returning id),
      team as (insert into scim_groups (id, org_id, display_name, display_key, external_id)
        values ('scg_01M89000000000000000000001', $1, 'Team', 'team', 'g1') returning id)
    insert into scim_group_members (group_id, scim_user_id) select team.id, person.id from team, person`,
    [ids.org_id],
  );
}
