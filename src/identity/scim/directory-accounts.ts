import type { Access } from '../../access/access.ts';
import type { Authentication } from '../../access/authentication.ts';
import { TryAgain } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';
import { joinOrganization } from '../../tenancy/organizations/membership.ts';
import { addressShown } from '../../tenancy/organizations/shown-addresses.ts';
import { isActiveAccount } from '../../tenancy/views.ts';
import { holdAddress, settleAddress } from '../auth/held-addresses.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';
import { domainOfEmail } from '../identity-providers/domain-name.ts';
import { freeUsername } from '../identity-providers/profile.ts';
import { type Directory, demandAuthority } from './directory.ts';
import { badRequest, ScimError } from './scim-error.ts';
import { isAddress, type UserFields } from './scim-fields.ts';

interface AccountDeps {
  access: Access;
  sessions: Sessions;
  authentication: Authentication;
  factorEnds: FactorEnds;
}

/** The account that somebody in the directory is. */
export interface DirectoryAccount {
  userId: string;
  accountEmail: string;
}

interface Known {
  id: string;
  email: string;
  isActive: boolean;
  isVerified: boolean;
  hasPassword: boolean;
  isHolder: boolean;
  isPlatformAdmin: boolean;
  /** `null` for who is no member, and for a member whose address the organization does not see. */
  role: Role | null;
  /** Whether the organization manages the account, which belongs to no other one. */
  isManaged: boolean;
  isInDirectory: boolean;
}

const account = (condition: string) => `select u.id, u.email, ${isActiveAccount('u')} as "isActive",
    u.is_verified as "isVerified", u.password_hash is not null as "hasPassword", u.email_key is not null as "isHolder",
    u.is_platform_admin as "isPlatformAdmin", case when ${addressShown('m')} then m.role end as role,
    u.home_org_id is not distinct from $1 and not exists (
      select from organization_members x join organizations o on o.id = x.org_id and o.deleted_at is null
      where x.user_id = u.id and x.org_id <> $1) as "isManaged",
    exists (select from scim_users s where s.org_id = $1 and s.user_id = u.id) as "isInDirectory"
  from users u left join organization_members m on m.org_id = $1 and m.user_id = u.id where ${condition}`;
const HOLDER = account('u.email_key = $2');
/** Of the accounts with an address that they do not hold, that of the organization. */
const OWN = `${account('u.email_key is null and lower(u.email) = $2 and u.home_org_id = $1')}
  and m.role is not null and u.deactivated_at is null order by u.id limit 1`;

/**
 * Finds or makes the account of somebody new in the directory, who becomes a member (docs/decisions/0068): a member
 * whose address the organization sees stays who they are, and a new account is made in a proven domain only.
 * @throws ScimError for an address that is somebody else's; FORBIDDEN for who is above the maker of the token
 */
export async function accountFor(
  tx: Tx,
  deps: AccountDeps,
  directory: Directory,
  fields: UserFields,
): Promise<DirectoryAccount> {
  const email = fields.email ?? (isAddress(fields.userName) ? fields.userName : null);
  const domain = email === null ? null : domainOfEmail(email);
  if (email === null || domain === null)
    throw badRequest('invalidValue', "A user needs an e-mail address, in 'emails' or as 'userName'.");
  const { orgId } = directory.token;
  const claim = await findRow(tx, 'identity_provider_domains', { domain, orgId, state: 'proven' });
  const isProven = claim !== null;
  const member = await memberWith(tx, orgId, email, isProven);
  if (member) {
    await adopt(tx, deps, directory, member, { isProven, email });
    return { userId: member.id, accountEmail: member.email };
  }
  if (!isProven)
    throw badRequest(
      'invalidValue',
      `The organization has not proven the domain '${domain}': prove it, or invite the person, who is added then.`,
    );
  return { userId: await create(tx, deps, orgId, { email, fields }), accountEmail: email };
}

/** A member with an address, whose account is surely that person's or the organization's. */
async function memberWith(tx: Tx, orgId: string, email: string, isProven: boolean): Promise<Known | null> {
  const values = [orgId, email.toLowerCase()];
  const [holder] = await tx.query<Known>({ text: HOLDER, values });
  // one that never proved the address may be anybody's, unless this proves it
  if (holder && holder.role !== null && (holder.isVerified || isProven || holder.isManaged)) return holder;
  if (holder?.isVerified && isProven) throw taken();
  const [own] = await tx.query<Known>({ text: OWN, values });
  return own ?? null;
}

async function adopt(
  tx: Tx,
  deps: AccountDeps,
  directory: Directory,
  member: Known,
  { isProven, email }: { isProven: boolean; email: string },
): Promise<void> {
  const { orgId } = directory.token;
  await tx.lock('users', { id: member.id }, 'no key update', () => new TryAgain(`'${member.id}' is gone`));
  const again = await memberWith(tx, orgId, email, isProven);
  if (again?.id !== member.id) throw new TryAgain(`the account of '${member.id}' has just changed`);
  if (again.isInDirectory)
    throw new ScimError(409, 'Another user of the directory is the member with this address.', 'uniqueness');
  if (again.isPlatformAdmin || !again.isActive) throw taken();
  demandAuthority(directory, again.role);
  // as at a first sign-in in a proven domain: whoever made an account without a proof may be somebody else
  if (isProven && !again.isVerified) await settleAddress(tx, deps, again, { isProven, isNew: true, orgId });
}

/** One answer, whatever kind of account it is. It is only given where the organization has proven the domain. */
const taken = () =>
  new ScimError(
    409,
    'An account that the directory may not manage has this address: invite the person, who is added then.',
    'uniqueness',
  );

/** Makes an account in a proven domain. Another one that never proved the address loses it. */
async function create(
  tx: Tx,
  { access }: AccountDeps,
  orgId: string,
  { email, fields }: { email: string; fields: UserFields },
): Promise<string> {
  const username = await freeUsername(tx, { username: fields.userName }, email);
  const id = newId('user');
  tx.insert('users', {
    id,
    email,
    emailKey: null,
    username,
    usernameKey: username.toLowerCase(),
    authProvider: 'scim',
    homeOrgId: orgId,
    isVerified: true,
    fullName: fullNameOf(fields),
  });
  await joinOrganization(tx, access, { orgId, userId: id, role: 'member', addedBy: null, isUnasked: true });
  await holdAddress(tx, id, email);
  tx.audit({ action: 'create', resourceType: 'user', resourceId: id, orgId });
  return id;
}

/** What the profile of an account shows. */
export const fullNameOf = ({ displayName, formattedName, givenName, familyName }: UserFields): string | null =>
  displayName ?? formattedName ?? ([givenName, familyName].filter((part) => part !== null).join(' ') || null);
