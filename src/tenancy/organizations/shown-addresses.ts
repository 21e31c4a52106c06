/** SQL: whether an organization has proven the domain of the address of a user `u`. @param user the alias of the row */
export const domainIsProven = (orgId: string, user = 'u'): string =>
  `exists (select from identity_provider_domains d where d.org_id = ${orgId} and d.state = 'proven'
    and d.domain = lower(split_part(${user}.email, '@', -1)))`;

/**
 * SQL: whether an organization shows the address of a user `u` with the row `member` of `organization_members` to its
 * other members (docs/decisions/0028). Anybody can add a user whose id they know: the address is shown once the user
 * has used the organization, or if the organization created the account or has proven the domain of the address.
 * @param user the alias of the user's row
 */
export const addressShown = (member: string, user = 'u'): string =>
  `coalesce(${member}.used_at is not null or ${user}.home_org_id = ${member}.org_id
    or ${domainIsProven(`${member}.org_id`, user)}, false)`;
