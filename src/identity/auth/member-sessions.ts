import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { findRow } from '../../data/find-row.ts';
import type { PageArgs } from '../../data/page.ts';
import { Reads } from '../../data/reads.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import type { Role } from '../../kernel/roles.ts';
import { lockOrganization } from '../../tenancy/organizations/membership.ts';
import { demandRankOver } from './member-rank.ts';

/** An open session of a member, as administrators of the organization see it. */
export interface MemberSession extends OrganizationPlace {
  id: string;
  userId: string;
  role: Role;
  /** `password`, `passkey`, `saml` or `oidc`. */
  method: string;
  /** The provider that signed the member in, if it is one of the organization. */
  identityProviderId: string | null;
  /** From where it was opened; `null` for sessions that earlier versions opened. */
  address: string | null;
  userAgent: string | null;
  createdAt: Date;
  lastUsedAt: Date | null;
  expiresAt: Date;
}

/** Arguments of the list of members' sessions. */
export interface MemberSessionArgs extends PageArgs {
  userId?: string | null;
}

/** Which sessions of a member are ended: one, or all. */
export interface EndMemberSessions {
  userId: string;
  sessionId?: string | null | undefined;
}

/** The sessions of a member that were ended. */
export interface EndedMemberSessions extends OrganizationPlace {
  userId: string;
  endedCount: number;
}

const SOURCE = `sessions t join organization_members m on m.user_id = t.user_id
  join users u on u.id = t.user_id and u.is_active
  left join identity_providers ip on ip.id = t.identity_provider_id and ip.org_id = m.org_id`;

/** An account that the organization manages, and no other one has as a member: as for changes of the account itself. */
const IS_WHOLE = `u.home_org_id = m.org_id and not u.is_platform_admin and not exists (
  select from organization_members e join organizations o on o.id = e.org_id and o.deleted_at is null
  where e.user_id = u.id and e.org_id <> m.org_id)`;

/**
 * Whose business a session is (docs/decisions/0099): all of an account that is the organization's alone; of others what
 * its own providers signed in, and what works in it without a provider of somebody else.
 */
const CONCERNS = `(ip.id is not null or t.org_id = m.org_id and t.identity_provider_id is null or ${IS_WHOLE})`;
const IS_OPEN = 't.revoked_at is null and t.expires_at > now()';

/**
 * Whether anything can go on with an open session: the cookie of a browser, a code that waits for its exchange, a
 * refresh token before its idle end, or what was granted to an application until the sign-out. The rest only waits for
 * its absolute end.
 */
const IS_USABLE = `(t.cookie_hash is not null or t.code_hash is not null and t.code_used_at is null
  or exists (select from refresh_tokens r
    where r.session_id = t.id and r.replaced_at is null and r.expires_at > now())
  or exists (select from oauth_grants g where g.session_id = t.id and g.revoked_at is null))`;

/** The open sessions of members, for those who may remove them. */
export class MemberSessions {
  readonly reads: Reads<MemberSession, OrganizationPlace, MemberSessionArgs>;
  readonly #deps: ServiceDeps & { authentication: Authentication };

  constructor(deps: ServiceDeps & { authentication: Authentication }) {
    this.#deps = deps;
    this.reads = new Reads<MemberSession, OrganizationPlace, MemberSessionArgs>(deps, {
      kind: 'session',
      name: 'member_sessions',
      from: SOURCE,
      columns: {
        id: 't.id',
        orgId: 'm.org_id',
        userId: 't.user_id',
        role: 'm.role',
        method: 't.method',
        identityProviderId: 'ip.id',
        address: 't.address',
        userAgent: 't.user_agent',
        createdAt: 't.created_at',
        lastUsedAt: 't.last_used_at',
        expiresAt: 't.expires_at',
      },
      below: { orgId: 'm.org_id' },
      always: [IS_OPEN, IS_USABLE, CONCERNS],
      filters: ({ userId }) => ({ 't.user_id = ?': userId }),
    });
  }

  /**
   * Ends a session of a member, or all of them but the one that asks. What was granted to applications until the user
   * signs out ends with them.
   * @throws RESOURCE_NOT_FOUND `user`, `session`; FORBIDDEN for members with a higher role
   */
  async end(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    { userId, sessionId }: EndMemberSessions,
  ): Promise<EndedMemberSessions> {
    const { changes, authentication } = this.#deps;
    return changes.run(caller, async (tx) => {
      await lockOrganization(tx, orgId, 'share');
      const member = await findRow(tx, 'organization_members', { orgId, userId });
      if (!member) throw notFound('user', userId);
      await demandRankOver(tx, caller, member, 'organization_member:delete');
      const asking = caller.principal.token ? null : caller.principal.sessionId;
      const ended = sessionId ? await endOne(tx, orgId, userId, sessionId) : await endAll(tx, orgId, userId, asking);
      if (sessionId && ended === 0) throw notFound('session', sessionId);
      tx.audit({
        action: 'update',
        resourceType: 'organization_member',
        resourceId: userId,
        orgId,
        metadata: { sessions_ended: ended, ...(sessionId && { session_id: sessionId }) },
      });
      tx.afterCommit(() => authentication.sessionsChanged());
      return { orgId, userId, endedCount: ended };
    });
  }
}

const OF_MEMBER = `select t.id from ${SOURCE} where m.org_id = $1 and m.user_id = $2 and ${IS_OPEN} and ${CONCERNS}`;
const END = `update sessions s set revoked_at = now(), revoked_reason = 'administrator'
  where s.revoked_at is null and s.id in (${OF_MEMBER})`;

async function endOne(tx: Tx, orgId: string, userId: string, id: string): Promise<number> {
  return (await tx.query({ text: `${END} and s.id = $3 returning s.id`, values: [orgId, userId, id] })).length;
}

/** Also the codes of sign-ins at its providers that wait for their exchange: a session would come of them. */
async function endAll(tx: Tx, orgId: string, userId: string, asking: string | null): Promise<number> {
  tx.write(statement`update sso_codes set used_at = now() where user_id = ${userId} and used_at is null
    and org_id = ${orgId}`);
  const values = [orgId, userId, asking];
  return (await tx.query({ text: `${END} and s.id is distinct from $3 returning s.id`, values })).length;
}
