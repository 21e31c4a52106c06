/** The owner of an API token of an organization: `$1`, `$2`. */
export const TOKEN_OWNER =
  'select t.created_by_user_id as "userId" from api_tokens t where t.org_id = $1 and t.id = $2';

/** The organization that a user works in: that of the newest session, else that of the oldest membership. */
export const organizationOfUser = (userId: string): string => `coalesce((select s.org_id from sessions s
    join organization_members m on m.org_id = s.org_id and m.user_id = s.user_id
    where s.user_id = ${userId} and s.revoked_at is null and s.expires_at > now()
    order by s.id desc limit 1), (select m.org_id from organization_members m
    where m.user_id = ${userId} order by m.id limit 1))`;
