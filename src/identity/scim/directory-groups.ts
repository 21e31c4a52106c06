import type { QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { mappingsOf } from '../identity-providers/identity-provider.reads.ts';

/**
 * What a directory says of the groups of users, by name and by external identifier, if one of its groups is mapped by
 * the provider. Users whom the directory does not know are missing.
 */
export async function directoryGroups(
  db: QueryRunner,
  provider: Pick<ProviderRow, 'orgId' | 'groupMappings'>,
  userIds: readonly string[],
): Promise<Map<string, string[]>> {
  const names = mappingsOf(provider).map(({ group }) => group);
  if (names.length === 0) return new Map();
  const rows = await db.query<{ userId: string; groups: string[] }>(statement`
    select s.user_id as "userId", coalesce(array_agg(n.name) filter (where n.name is not null), '{}') as groups
    from scim_users s left join scim_group_members m on m.scim_user_id = s.id
    left join scim_groups g on g.id = m.group_id
    left join lateral (values (g.display_name), (g.external_id)) n(name) on true
    where s.org_id = ${provider.orgId} and s.user_id = any(${userIds}::text[]) and exists (
      select from scim_groups x where x.org_id = s.org_id
        and (x.display_name = any(${names}::text[]) or x.external_id = any(${names}::text[])))
    group by s.user_id`);
  return new Map(rows.map(({ userId, groups }) => [userId, groups]));
}
