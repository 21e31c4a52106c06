/*
 * An organization can demand a second factor of its members, some days after they joined or it was turned on. What was
 * not signed in with one does not reach into it from then on (docs/decisions/0072).
 */

/** SQL: whether a user has a second factor. Recovery codes alone are none. @param userId an expression */
export const hasFactor = (userId: string): string =>
  `(exists (select from totp_factors fdt where fdt.user_id = ${userId} and fdt.confirmed_at is not null)
    or exists (select from passkeys fdp where fdp.user_id = ${userId}))`;

/**
 * SQL: since when an organization demands a factor of a member; null for one that does not.
 * @param organization alias of its row
 * @param member alias of the row of the membership
 */
export const factorDemandedSince = (organization: string, member: string): string =>
  `case when ${organization}.factor_required_at is not null
    then greatest(${organization}.factor_required_at, ${member}.created_at) end`;

/** SQL: until when a member may be without; null for an organization that does not demand it. */
export const factorGraceEnds = (organization: string, member: string): string =>
  `(${factorDemandedSince(organization, member)} + make_interval(days => ${organization}.factor_grace_days))`;

/** SQL: whether an organization demands a factor of a member now. */
export const demandsFactor = (organization: string, member: string): string =>
  `(${organization}.factor_required_at is not null and ${factorGraceEnds(organization, member)} <= now())`;

/** What an organization demands of a member: nothing, the factor that they have, or one that they lack. */
export type FactorDemand = '-' | 'held' | 'lacking';

/** SQL: the same, of a member. */
export const factorDemand = (organization: string, member: string): string =>
  `case when not ${demandsFactor(organization, member)} then '-'
    when ${hasFactor(`${member}.user_id`)} then 'held' else 'lacking' end`;
