import type { Access } from '../../access/access.ts';
import { isVouchedFor } from '../../access/sso-demand.ts';
import type { Sql } from '../../data/sql.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';

interface Signer {
  userId: string;
  tokenId: string | null;
  /** The session without a token; absent for addresses that outlive it. */
  sessionId?: string | null | undefined;
}

// a refreshed token was replaced, not taken away
const LIVES = `select u.username, ${isVouchedFor('$3', 'u.id')} as "isVouchedFor" from users u
  where u.id = $1 and u.is_active
  and ($4::text is null or exists (select 1 from sessions s
    where s.id = $4 and s.user_id = u.id and s.revoked_at is null and s.expires_at > now()))
  and ($2::text is null
  or exists (select 1 from api_tokens t where t.id = $2 and t.suspended_at is null
    and (t.expires_at is null or t.expires_at > now())
    and (t.revoked_at is null or t.revoked_at > now() or t.revoked_reason = 'rotated'))
  or exists (select 1 from oauth_grants g left join sessions s on s.id = g.session_id
    where g.id = $2 and g.revoked_at is null
      and (g.session_id is null or s.revoked_at is null and s.expires_at > now())))`;

/**
 * Lets a signed address act for the user who asked for it, as long as the user may do so: whoever is deactivated or
 * loses the permission takes all addresses along, as does a revoked token, or the end of a session that they name.
 */
export class LinkCaller {
  readonly #sql: Sql;
  readonly #access: Access;

  constructor(deps: { sql: Sql; access: Access }) {
    this.#sql = deps.sql;
    this.#access = deps.access;
  }

  /** @throws FORBIDDEN, RESOURCE_NOT_FOUND `workspace` */
  async demand(
    { request }: AnyCaller,
    { userId, tokenId, sessionId }: Signer,
    permission: Permission,
    place: { orgId: string; workspaceId: string; namespaceId: string | null },
  ): Promise<Caller> {
    const [user] = await this.#sql.read<{ username: string; isVouchedFor: boolean }>(LIVES, [
      userId,
      tokenId,
      place.orgId,
      sessionId ?? null,
    ]);
    if (!user) throw forbidden(permission, 'The link is no longer valid.');
    const caller: Caller = {
      request,
      principal: {
        type: 'user',
        userId,
        username: user.username,
        isPlatformAdmin: false,
        isVerified: true,
        // the link was made by a caller that was admitted: it lasts as an API token does
        vouchedBy: user.isVouchedFor ? place.orgId : null,
        provesFactor: true,
        sessionId: '',
        orgId: place.orgId,
        token: null,
      },
    };
    const { orgId, workspaceId, namespaceId } = place;
    await this.#access.requireWorkspace(caller, orgId, workspaceId, permission, { namespaceId });
    return caller;
  }
}
