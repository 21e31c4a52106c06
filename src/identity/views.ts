import { hasFactor } from '../access/factor-demand.ts';

/** The owner of an API token of an organization: `$1`, `$2`. */
export const TOKEN_OWNER =
  'select t.created_by_user_id as "userId" from api_tokens t where t.org_id = $1 and t.id = $2';

/** The organization that a user works in: that of the newest session, else that of the oldest membership. */
export const organizationOfUser = (userId: string): string => `coalesce((select s.org_id from sessions s
    join organization_members m on m.org_id = s.org_id and m.user_id = s.user_id
    where s.user_id = ${userId} and s.revoked_at is null and s.expires_at > now()
    order by s.id desc limit 1), (select m.org_id from organization_members m
    where m.user_id = ${userId} order by m.id limit 1))`;

/** The `user_id` of the members of an organization whose accounts have no second factor. */
export const membersWithoutFactor = (orgId: string): string =>
  `select m.user_id from organization_members m where m.org_id = ${orgId} and not ${hasFactor('m.user_id')}`;

/** Whether a token expires at this moment, and was neither refreshed nor revoked. */
export const tokenExpires = (id: string, at: string): string =>
  `exists (select from api_tokens k where k.id = ${id} and k.expires_at = ${at} and k.rotated_at is null
    and k.revoked_at is null)`;

/** Whether the last certificate of an identity provider that is in use ends at this moment. */
export const certificateEnds = (id: string, at: string): string =>
  `exists (select from identity_providers p where p.id = ${id} and p.is_active and p.certificate_ends_at = ${at})`;
