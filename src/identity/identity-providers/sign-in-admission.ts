import { findRow, type QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import { checkConstraints } from '../../kernel/constraints.ts';
import { asRole, atLeast, type Role } from '../../kernel/roles.ts';
import { addressShown } from '../../tenancy/organizations/shown-addresses.ts';
import { isActiveAccount } from '../../tenancy/views.ts';
import type { VerifiedIdentity } from '../sso/verified-identity.ts';
import { domainOfEmail } from './domain-name.ts';
import type { RefusalReason } from './refusals.ts';
import type { LinkReason } from './sign-in-admission.words.ts';

/** An account, as far as it decides whether somebody is signed in to it. */
export interface KnownAccount {
  id: string;
  email: string;
  username: string;
  fullName: string | null;
  avatarUrl: string | null;
  locale: string | null;
  homeOrgId: string | null;
  isActive: boolean;
  isVerified: boolean;
  hasPassword: boolean;
  /** Whether the account holds its address (docs/decisions/0027). */
  isHolder: boolean;
  isPlatformAdmin: boolean;
  /** The role in the organization of the provider; `null` for somebody who is no member. */
  role: Role | null;
  /** What the provider knows the account by, if it is linked. */
  subject: string | null;
  /** Whether the link has ended: the account had left, or its organization was deleted. */
  isEnded: boolean;
}

/**
 * What becomes of somebody whom a provider vouches for. `isProven`: the organization has proven the domain of the
 * account's address, so that this sign-in proves the address.
 */
export type SignInAdmission =
  | { kind: 'refused'; reason: RefusalReason; account: KnownAccount | null }
  | { kind: 'linked'; account: KnownAccount; isProven: boolean }
  | { kind: 'link'; account: KnownAccount; why: LinkReason; isProven: boolean }
  | { kind: 'create'; email: string; isProven: boolean };

const account = (condition: string, role = 'm.role') => `select u.id, u.email, u.username, u.full_name as "fullName",
    u.avatar_url as "avatarUrl", u.locale, u.home_org_id as "homeOrgId",
    ${isActiveAccount('u')} as "isActive", u.is_verified as "isVerified",
    u.password_hash is not null as "hasPassword",
    u.email_key is not null as "isHolder",
    u.is_platform_admin as "isPlatformAdmin", ${role} as role,
    case when l.ended_at is null then l.subject end as subject, l.ended_at is not null as "isEnded"
  from users u left join identity_links l on l.identity_provider_id = $1 and l.user_id = u.id
  left join organization_members m on m.org_id = $2 and m.user_id = u.id where ${condition}`;
const BY_SUBJECT = account(
  'u.id = (select l.user_id from identity_links l where l.identity_provider_id = $1 and l.subject = $3)',
);
/** Of a member whose address the organization does not see, it learns nothing by an address. */
const BY_EMAIL = account('u.email_key = $3', `case when ${addressShown('m')} then m.role end`);
/** Of the accounts with an address that they do not hold, that of the organization. */
const OWN_BY_EMAIL = `${account('u.email_key is null and lower(u.email) = $3 and u.home_org_id = $2')}
  and m.role is not null and u.deactivated_at is null order by u.id limit 1`;
export const ACCOUNT_BY_ID = account('u.id = $3');

/**
 * Decides whom a verified identity is (docs/decisions/0023). It only reads.
 * @param provider as it is now
 */
export async function admissionOf(
  db: QueryRunner,
  provider: ProviderRow,
  identity: VerifiedIdentity,
): Promise<SignInAdmission> {
  const { id, orgId } = provider;
  if (!provider.isActive) return refused('provider_disabled');
  const { email } = identity;
  const domain = email !== null && isAddress(email) ? domainOfEmail(email) : null;
  const claim = domain === null ? null : await findRow(db, 'identity_provider_domains', { domain, orgId });
  const isProven = claim?.state === 'proven';
  const [linked] = await db.query<KnownAccount>({ text: BY_SUBJECT, values: [id, orgId, identity.subject] });
  // who left and was added again is a member like others
  if (linked && (linked.role === null || !linked.isEnded)) {
    const isSame = email?.toLowerCase() === linked.email.toLowerCase();
    return refusalOf(provider, linked) ?? { kind: 'linked', account: linked, isProven: isProven && isSame };
  }
  if (email === null || domain === null) return refused('email_missing');
  const isClaimed = claim?.identityProviderId === id;
  const known = await accountOf(db, provider, { email, isProven });
  if (known) return admissionAs(db, provider, identity, known, { isClaimed, isProven });
  if (!provider.autoCreateUsers) return refused('account_not_linked');
  return isClaimed ? { kind: 'create', email, isProven } : refused('domain_not_claimed');
}

/**
 * The account that an address stands for at a provider: the one that holds the address, or one of the organization that
 * has the address without holding it. A holder that never proved the address stands for somebody only if it is a member
 * and the domain is proven, or if the organization manages it. Any other neither blocks the sign-in, nor gets it.
 */
async function accountOf(
  db: QueryRunner,
  provider: ProviderRow,
  { email, isProven }: { email: string; isProven: boolean },
): Promise<KnownAccount | null> {
  const { id, orgId } = provider;
  const values = [id, orgId, email.toLowerCase()];
  const [holder] = await db.query<KnownAccount>({ text: BY_EMAIL, values });
  if (holder?.isVerified) return holder;
  if (holder && holder.role !== null && (isProven || holder.homeOrgId === orgId)) return holder;
  const [own] = await db.query<KnownAccount>({ text: OWN_BY_EMAIL, values });
  return own ?? null;
}

async function admissionAs(
  db: QueryRunner,
  provider: ProviderRow,
  identity: VerifiedIdentity,
  known: KnownAccount,
  { isClaimed, isProven }: { isClaimed: boolean; isProven: boolean },
): Promise<SignInAdmission> {
  const { orgId } = provider;
  const refusal = refusalOf(provider, known);
  if (refusal) return refusal;
  // another sign-in of the same identity has linked it since the look for its subject
  if (known.subject === identity.subject) return { kind: 'linked', account: known, isProven };
  if (known.subject !== null) return refused('already_linked', known);
  const link = (why: LinkReason): SignInAdmission => ({ kind: 'link', account: known, why, isProven });
  if (isProven) return link('proven_domain');
  if (isClaimed && !known.isVerified && (await isManaged(db, known, orgId))) return link('managed_account');
  const isVerified = isClaimed && identity.emailVerified && known.isVerified;
  if (isVerified && !(await belongsElsewhere(db, known, orgId))) return link('verified_email');
  return refused('proof_required', known);
}

/** Whether an account is an organization's alone: it manages the account, which belongs to no other organization. */
const isManaged = async (db: QueryRunner, account: KnownAccount, orgId: string): Promise<boolean> =>
  account.homeOrgId === orgId && !(await belongsElsewhere(db, account, orgId));

const refused = (reason: RefusalReason, of: KnownAccount | null = null): SignInAdmission => ({
  kind: 'refused',
  reason,
  account: of,
});

/** Why a provider never signs in to an account, linked or not. Of what is not its organization's it says one thing. */
function refusalOf({ authority }: ProviderRow, of: KnownAccount): SignInAdmission | null {
  if (of.role === null || of.isPlatformAdmin) return refused('account_not_linked', of);
  if (!of.isActive) return refused('account_inactive', of);
  return atLeast(asRole(authority), of.role) ? null : refused('role_above_provider', of);
}

/** Whether an account is another organization's too: a member there, or managed by it. */
export async function belongsElsewhere(
  db: QueryRunner,
  { id, homeOrgId }: Pick<KnownAccount, 'id' | 'homeOrgId'>,
  orgId: string,
): Promise<boolean> {
  if (homeOrgId !== null && homeOrgId !== orgId) return true;
  const others = await db.query(statement`
    select 1 from organization_members m join organizations o on o.id = m.org_id
    where m.user_id = ${id} and m.org_id <> ${orgId} and o.deleted_at is null limit 1`);
  return others.length > 0;
}

const isAddress = (email: string): boolean => checkConstraints(email, { format: 'email', maxLength: 320 }).length === 0;
