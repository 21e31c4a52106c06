import type { MailBudgets } from '../../access/mail-budgets.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import { findRow, type QueryRunner } from '../../data/find-row.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf, words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Invitation as InvitationRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, forbidden, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Permit } from '../../kernel/permit.ts';
import type { Permission } from '../../kernel/resources.ts';
import { asRole, atLeast, type Role } from '../../kernel/roles.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { acceptInvitation, deadInvitation, findPendingInvitation } from './invitation-token.ts';
import { lockOrganization } from './membership.ts';
import { addressShown, domainIsProven } from './shown-addresses.ts';

/** An invitation as its organization sees it: without the token, which is only in the mail. */
export type Invitation = Omit<InvitationRow, 'tokenHash' | 'emailKey'>;

export interface CreateInvitation {
  email: string;
  role?: Role | null;
  workspaceId?: string | null;
  workspaceRole?: Role | null;
}

export interface InvitationDeps extends ServiceDeps {
  mail: AccountMail;
  mailBudgets: MailBudgets;
}

const LIFETIME_DAYS = 7;
const expiry = () => new Date(Date.now() + LIFETIME_DAYS * 86_400_000);

const STATUS = `case when t.status = 'pending' and t.expires_at <= now() then 'expired' else t.status end`;
const SHOWN_MEMBER = `select u.id from organization_members m join users u on u.id = m.user_id
  where m.org_id = $1 and (u.email_key = $2 or u.email_key is null and lower(u.email) = $2 and u.home_org_id = m.org_id)
    and u.deactivated_at is null and ${addressShown('m')} limit 1`;
const SPEAKING_LINK = `select 1 from identity_links l join users u on u.id = l.user_id
  where l.user_id = $1 and l.org_id <> $2 and l.ended_at is null and not ${domainIsProven('l.org_id')} limit 1`;
const columns = columnsOf(
  words(
    'id orgId email role workspaceId workspaceRole invitedBy createdAt updatedAt resourceVersion expiresAt acceptedAt',
    'acceptedBy',
  ),
);

/** Invites people to organizations by e-mail. */
export class InvitationService {
  /** The invitations of an organization, newest first. */
  readonly reads: Reads<Invitation, OrganizationPlace, PageArgs & { status?: string | null }>;
  readonly #deps: InvitationDeps;
  // Whoever invites, an address is not flooded with mails. Administrators see the refusal, as they know the address
  // anyway. Counted per organization: the mails of one tenant must neither block another tenant nor reveal anything to
  // it.
  readonly #mailsByAddress: Budget;

  constructor(deps: InvitationDeps) {
    this.#deps = deps;
    this.#mailsByAddress = deps.budgets.of('invitation_mails', 3, 3_600);
    this.reads = new Reads(deps, {
      kind: 'invitation',
      from: 'invitations',
      columns: { ...columns, status: STATUS },
      below: ['orgId'],
      filters: ({ status }) => ({ [`${STATUS} = ?`]: status }),
      index: { order: 'asc' },
    });
  }

  /**
   * Mails a link that works once, for seven days.
   * @throws RESOURCE_ALREADY_EXISTS for a member and for an address with a pending invitation; FORBIDDEN for who has
   * not proven an address; RATE_LIMIT_EXCEEDED
   */
  async create(caller: Caller, place: Checked<OrganizationPlace>, input: CreateInvitation): Promise<Invitation> {
    const { orgId } = place;
    const role = input.role ?? 'member';
    const workspaceRole = input.workspaceId ? (input.workspaceRole ?? 'member') : null;
    if (input.workspaceRole && !input.workspaceId)
      throw invalidInput(['input', 'workspaceRole'], 'it is a role in a workspace, but no workspace is given');
    demandProven(caller, 'invitation:create');
    demandRole(place.asked, role);
    if (input.workspaceId) await this.#mayInviteInto(caller, orgId, input.workspaceId, workspaceRole!);
    await refuseKnown(this.#deps.sql, orgId, input.email);
    await this.#mayMail(caller, orgId, input.email);
    const id = newId('invitation');
    await this.#deps.changes.run(caller, async (tx) => {
      const { name } = await lockOrganization(tx, orgId, 'no key update');
      await refuseKnown(tx, orgId, input.email);
      const token = randomToken();
      tx.insert('invitations', {
        id,
        orgId,
        email: input.email,
        emailKey: input.email.toLowerCase(),
        role,
        workspaceId: input.workspaceId ?? null,
        workspaceRole,
        tokenHash: tokenHash(token),
        invitedBy: caller.principal.userId,
        expiresAt: expiry(),
      });
      recordChange(tx, 'create', 'invitation', { id, orgId }, { role });
      this.#deps.mail.invitation(tx, input.email, name, caller.principal.username, token);
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Mails a new link, which works for seven days. The old link stops working.
   * @throws RESOURCE_CONFLICT unless it is pending; FORBIDDEN for who has not proven an address; RATE_LIMIT_EXCEEDED
   */
  async resend(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Invitation> {
    const { orgId } = place;
    demandProven(caller, 'invitation:update');
    const known = await this.#pending(place, id);
    await this.#mayMail(caller, orgId, known.email);
    await this.#deps.changes.run(caller, async (tx) => {
      const token = randomToken();
      await this.#whilePending(tx, orgId, id, { tokenHash: tokenHash(token), expiresAt: expiry() });
      recordChange(tx, 'update', 'invitation', { id, orgId }, { resent: true });
      const organization = await findRow(tx, 'organizations', { id: orgId });
      this.#deps.mail.invitation(tx, known.email, organization!.name, caller.principal.username, token);
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Revokes an invitation. Its link stops working at once.
   * @returns it as it is then
   * @throws RESOURCE_CONFLICT unless it is pending
   */
  async revoke(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Invitation> {
    const { orgId } = place;
    await this.#pending(place, id);
    await this.#deps.changes.run(caller, async (tx) => {
      await this.#whilePending(tx, orgId, id, { status: 'revoked' });
      recordChange(tx, 'revoke', 'invitation', { id, orgId });
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Joins the organization that sent the link. The link was mailed to an address: only the account with that address
   * may use it.
   * @returns the organization
   * @throws InputError for a link that no longer works or is for somebody else
   */
  async accept(caller: Caller, token: string): Promise<string> {
    const path = ['input', 'token'];
    const { sql, changes, access } = this.#deps;
    const { userId } = caller.principal;
    const invitation = await findPendingInvitation(sql, tokenHash(token));
    if (!invitation) throw deadInvitation(path);
    const user = await findRow(sql, 'users', { id: userId });
    if (user?.email.toLowerCase() !== invitation.emailKey)
      throw invalidInput(path, 'the invitation was sent to another address: sign in with the account of that address');
    if (await isSpokenFor(sql, userId, invitation.orgId))
      throw invalidInput(
        path,
        'an identity provider that has not proven the domain of your address signs in to your account, and would ' +
          'reach the organization through it: register an account of your own, or ask for the proof of the domain',
      );
    return changes.run(caller, (tx) => acceptInvitation(tx, access, invitation, user, deadInvitation(path)));
  }

  /** @throws RATE_LIMIT_EXCEEDED */
  async #mayMail(caller: Caller, orgId: string, email: string): Promise<void> {
    await this.#mailsByAddress.demand(`${orgId} ${email.toLowerCase()}`);
    await this.#deps.mailBudgets.demand(caller, { to: email, orgId });
  }

  async #mayInviteInto(caller: Caller, orgId: string, workspaceId: string, role: Role): Promise<void> {
    const { access } = this.#deps;
    demandRole(await access.requireWorkspace(caller, orgId, workspaceId, 'workspace_member:create'), role);
  }

  /** An invitation that can still be accepted and whose role is not above the caller's. */
  async #pending(place: Checked<OrganizationPlace>, id: string): Promise<Invitation> {
    const invitation = await this.reads.get(noCache, place, id);
    demandRole(place.asked, asRole(invitation.role));
    if (invitation.status !== 'pending') throw notPending(invitation);
    return invitation;
  }

  /** If a change, an acceptance and a revocation happen at the same time, one of them wins. */
  async #whilePending(tx: Tx, orgId: string, id: string, set: Columns<'invitations'>): Promise<void> {
    await tx.expectVersion({ table: 'invitations', key: { id, orgId } });
    const invitation = await tx.lock('invitations', { id, orgId }, 'no key update', () => notFound('invitation', id));
    if (invitation.status !== 'pending') throw notPending(invitation);
    tx.update('invitations', { id }, set);
  }
}

/**
 * Whether a provider of another organization signs in to an account without a proof that the address is its to speak
 * for: the provider would reach whatever the account joins (docs/decisions/0023).
 */
async function isSpokenFor(db: QueryRunner, userId: string, orgId: string): Promise<boolean> {
  return (await db.query({ text: SPEAKING_LINK, values: [userId, orgId] })).length > 0;
}

/** Whoever writes to strangers can be written to. */
function demandProven({ principal }: Caller, permission: Permission): void {
  if (!principal.isVerified)
    throw forbidden(permission, 'Confirm the e-mail address of your account before you invite others.');
}

const endings: Record<string, { reason: string; message: string }> = {
  accepted: { reason: 'already_accepted', message: 'The invitation was accepted already.' },
  revoked: { reason: 'already_revoked', message: 'The invitation was revoked: create a new one.' },
  expired: { reason: 'expired', message: 'The invitation has expired: create a new one.' },
};

/** Nobody invites to a role above their own. @throws FORBIDDEN with the permission */
function demandRole({ permission, role: own }: Permit, role: Role): void {
  if (!atLeast(own, role)) throw forbidden(permission, `You cannot invite as '${role}': it is above your own role.`);
}

function notPending({ id, status }: Pick<Invitation, 'id' | 'status'>) {
  const ending = endings[status];
  if (!ending) throw new Error(`The invitation '${id}' is '${status}', which is no ending.`);
  return conflict('invitation', id, ending.reason, ending.message);
}

/**
 * A member whose address the organization does not see is no known one: the refusal would confirm the address.
 * @throws RESOURCE_ALREADY_EXISTS for members and for addresses that are already invited
 */
async function refuseKnown(db: QueryRunner, orgId: string, email: string): Promise<void> {
  const emailKey = email.toLowerCase();
  const [member] = await db.query<{ id: string }>({ text: SHOWN_MEMBER, values: [orgId, emailKey] });
  if (member) throw alreadyExists('organization_member', 'email', email, member.id);
  const [pending] = await db.query<{ id: string }>(statement`
    select id from invitations
    where org_id = ${orgId} and email_key = ${emailKey} and status = 'pending' and expires_at > ${new Date()} limit 1`);
  if (pending) throw alreadyExists('invitation', 'email', email, pending.id);
}
