import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { demandsSso } from '../../access/sso-demand.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden, invalidInput, unauthenticated } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { ownersOf } from '../../tenancy/organizations/people-in-charge.ts';
import type { CurrentPassword } from '../auth/current-password.ts';
import { demandFreshFactor } from '../factors/fresh-factor.ts';

/** How long an owner is in. */
const MINUTES = 60;

/** An organization that its owner has opened. */
export interface BrokenGlass {
  orgId: string;
  until: Date;
}

const MAY_BREAK = `select 1 from organization_members m join organizations o on o.id = m.org_id and o.deleted_at is null
  where m.org_id = $1 and m.user_id = $2 and m.role = 'owner' and o.sso_break_glass
    and ${demandsSso('o', 'm.user_id')}`;

/**
 * The way in for owners when the identity provider of an organization fails: their password opens the organization to
 * the session that asks, for an hour. It is recorded with its reason, and every owner is told (docs/decisions/0066).
 */
export class BreakGlass {
  readonly #deps: ServiceDeps & { authentication: Authentication; currentPassword: CurrentPassword };

  constructor(deps: ServiceDeps & { authentication: Authentication; currentPassword: CurrentPassword }) {
    this.#deps = deps;
  }

  /**
   * @throws FORBIDDEN `organization:access`, the same for who is no owner, for an organization that does not allow it
   * and for an unknown one; FORBIDDEN `fresh_factor` for an owner with a second factor; InputError for a wrong
   * password; RATE_LIMIT_EXCEEDED while the account is locked
   */
  async open(
    caller: Caller,
    { orgId, password, reason }: { orgId: string; password: string; reason: string },
  ): Promise<BrokenGlass> {
    const { sql, changes, currentPassword, authentication } = this.#deps;
    const { userId, sessionId } = sessionOf(caller, 'organization:access');
    if ((await sql.read(MAY_BREAK, [orgId, userId])).length === 0) throw refused();
    await demandFreshFactor(sql, caller);
    await currentPassword.check(userId, password, () =>
      invalidInput(['input', 'password'], 'this is not your password'),
    );
    const until = new Date(Date.now() + MINUTES * 60_000);
    await changes.run(caller, async (tx) => {
      // whoever changes the policy or the role waits, and then closes what was opened
      tx.demand('organizations', { id: orgId, deletedAt: null, ssoBreakGlass: true }, 'share', refused);
      tx.demand('organization_members', { orgId, userId, role: 'owner' }, 'share', refused);
      const opened = await tx.query(statement`update sessions
        set break_glass_org_id = ${orgId}, break_glass_until = ${until}
        where id = ${sessionId} and user_id = ${userId} and revoked_at is null returning id`);
      if (opened.length === 0) throw unauthenticated();
      tx.audit({
        action: 'update',
        resourceType: 'organization',
        resourceId: orgId,
        orgId,
        metadata: { break_glass: reason, until: until.toISOString() },
      });
      tx.announce({
        type: 'organization.glass_broken',
        orgId,
        resourceType: 'organization',
        resourceId: orgId,
        facts: { userIds: await ownersOf(tx, orgId), namedUserId: userId, reason, expiresAt: until },
      });
      tx.afterCommit(() => authentication.sessionChanged(sessionId));
    });
    return { orgId, until };
  }
}

const refused = () => forbidden('organization:access');
