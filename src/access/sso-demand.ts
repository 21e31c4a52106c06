/*
 * An organization can demand that its members sign in at one of its identity providers. What is not vouched for by such
 * a provider does not reach into it, however it has signed in (docs/decisions/0066).
 */

/**
 * SQL: whether an organization demands single sign-on of a user: of everybody, or of who has an address in a domain.
 * @param organization alias of its row
 * @param userId an expression
 */
export const demandsSso = (organization: string, userId: string): string =>
  `(${organization}.sso_required or ${isInDemandedDomain(organization, userId)})`;

/** SQL: whether the address of a user is in a domain of which an organization demands single sign-on. */
export const isInDemandedDomain = (organization: string, userId: string): string =>
  `(${organization}.sso_required_domains <> '{}' and exists (select from users ssu where ssu.id = ${userId}
    and ${isDemandedDomain(organization, 'ssu.email')}))`;

/** SQL: whether an address, an expression, is in such a domain. It is compared letter by letter. */
export const isDemandedDomain = (organization: string, email: string): string =>
  `lower(split_part(${email}, '@', -1)) = any(${organization}.sso_required_domains)`;

/** SQL: whether a provider is one of an organization, and switched on. Both are expressions. */
export const vouchesFor = (providerId: string, orgId: string): string =>
  `exists (select from identity_providers ssp
    where ssp.id = ${providerId} and ssp.org_id = ${orgId} and ssp.is_active)`;

/** SQL: whether a user has an identity at a provider of an organization that is switched on. Both are expressions. */
export const isVouchedFor = (orgId: string, userId: string): string =>
  `exists (select from identity_links ssl join identity_providers ssp on ssp.id = ssl.identity_provider_id
    where ssl.org_id = ${orgId} and ssl.user_id = ${userId} and ssl.ended_at is null and ssp.is_active)`;

/** What an organization demands: nothing, single sign-on, or single sign-on with a way in for owners. */
export type SsoDemand = '-' | 'sso' | 'glass';

/** SQL: the same, of a user. */
export const ssoDemand = (organization: string, userId: string): string =>
  `case when not ${demandsSso(organization, userId)} then '-'
    when ${organization}.sso_break_glass then 'glass' else 'sso' end`;
