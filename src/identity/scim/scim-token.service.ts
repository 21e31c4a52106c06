import { rolesWith } from '../../access/permissions.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { isBehindBrokenGlass, ssoRequired } from '../../access/sso-admission.ts';
import type { BucketState, RateLine } from '../../access/throttle.ts';
import type { CallerBuckets } from '../../access/token-buckets.ts';
import type { Config } from '../../config.ts';
import { columnsOf } from '../../data/paging.ts';
import { createRow, deleteRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { Prisma, type ScimToken as ScimTokenRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, invalidInput } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';
import { lockOrganization } from '../../tenancy/organizations/membership.ts';
import type { ContentOwner, RemovedMember } from '../../tenancy/removals.ts';

/** A token of a directory as administrators see it: without its hash. */
export type ScimToken = Omit<ScimTokenRow, 'tokenHash'>;

/** A token, its plaintext and where it works: the only time that the plaintext is shown. */
export interface IssuedScimToken {
  scimToken: ScimToken;
  plaintextToken: string;
  baseUrl: string;
}

/** Whom a living token lets in. */
export interface LivingScimToken {
  id: string;
  orgId: string;
  makerId: string;
  /** The role of its maker now. */
  authority: Role;
}

const tokens = {
  kind: 'scim_token',
  from: 'scim_tokens',
  columns: columnsOf(Object.values(Prisma.ScimTokenScalarFieldEnum).filter((name) => name !== 'tokenHash')),
  below: ['orgId'],
} as const;

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 365;
/** How many requests of a token at once, and how many per second after that. */
const LINE: RateLine = { rps: 25, burst: 250 };
/** More than anybody rotates between. */
const MOST = 20;
const FORM = /^scim_[\w-]{43}$/;
const PREFIX_LENGTH = 10;

const MAKERS = rolesWith('scim_token:create').map((role) => `'${role}'`);
const LIVING = `select t.id, t.org_id as "orgId", t.created_by as "makerId", m.role as authority,
    coalesce(t.last_used_at < now() - interval '1 minute', true) as "isUseNews"
  from scim_tokens t join organizations o on o.id = t.org_id and o.deleted_at is null
  join organization_members m on m.org_id = t.org_id and m.user_id = t.created_by and m.role in (${MAKERS.join(', ')})
  join users u on u.id = t.created_by and u.is_active and u.deactivated_at is null
  where t.token_hash = $1 and t.org_id = $2 and (t.expires_at is null or t.expires_at > now())`;
const NOTE_USE = 'update scim_tokens set last_used_at = now() where id = $1';

interface ScimTokenDeps extends ServiceDeps {
  config: Pick<Config, 'allowNonExpiringTokens'>;
  /** The address of the service. */
  serviceUrl: () => string;
}

/** The tokens of directories. */
export class ScimTokens implements ContentOwner {
  readonly retention = [`delete from scim_tokens where expires_at < now() - interval '30 days'`];
  readonly reads: Reads<ScimToken, OrganizationPlace>;
  readonly #deps: ScimTokenDeps;
  readonly #requests: CallerBuckets;

  constructor(deps: ScimTokenDeps) {
    this.#deps = deps;
    this.#requests = deps.budgets.buckets('scim', LINE);
    this.reads = new Reads(deps, tokens);
  }

  /**
   * @throws InputError without an expiry where one is needed; RESOURCE_CONFLICT `limit_reached`; FORBIDDEN
   * `sso_required` for an owner who has opened the organization for an hour, which the token would outlive
   */
  async create(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    { name, expiresInDays: days = DEFAULT_DAYS }: { name: string; expiresInDays?: number | null },
  ): Promise<IssuedScimToken> {
    // an explicit null asks for a token that never expires
    if (days === null && !this.#deps.config.allowNonExpiringTokens)
      throw invalidInput(['input', 'expiresInDays'], 'this service requires an expiry');
    const { orgId } = place;
    if (isBehindBrokenGlass(caller.principal, orgId)) throw ssoRequired();
    const plaintextToken = `scim_${randomToken()}`;
    const row = {
      id: newId('scim_token'),
      ...place,
      name,
      prefix: plaintextToken.slice(0, PREFIX_LENGTH),
      tokenHash: tokenHash(plaintextToken),
      expiresAt: days === null ? null : new Date(Date.now() + days * DAY_MS),
    };
    const { tokenHash: _, ...scimToken } = await createRow(this.#deps, caller, tokens, row, async (tx) => {
      await lockOrganization(tx, orgId, 'no key update');
      const [known] = await tx.query<{ count: number }>(
        statement`select count(*)::int as count from scim_tokens where org_id = ${orgId}`,
      );
      if ((known?.count ?? 0) >= MOST)
        throw conflict('organization', orgId, 'limit_reached', `The organization has ${MOST} tokens: revoke some.`, {
          limit: MOST,
        });
    });
    return { scimToken, plaintextToken, baseUrl: this.baseUrl(orgId) };
  }

  /** Revokes a token. It is refused from the next request on. @throws RESOURCE_NOT_FOUND */
  delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    return deleteRow(this.#deps, caller, tokens, { id, ...place });
  }

  /** The tokens that a member made go with the member. */
  async memberRemoved(tx: Tx, { orgId, userId }: RemovedMember): Promise<void> {
    tx.write(
      statement`delete from scim_tokens where org_id = ${orgId} and created_by = coalesce(${userId}, created_by)`,
    );
  }

  /** Where the directory of an organization sends its requests. */
  baseUrl(orgId: string): string {
    return `${this.#deps.serviceUrl()}/scim/v2/${orgId}`;
  }

  /** Whether a text has the form of a token: all else costs no statement. */
  isToken(text: string): boolean {
    return FORM.test(text);
  }

  /** Takes a request from what a token may send. */
  take({ id }: LivingScimToken): BucketState | Promise<BucketState> {
    return this.#requests.take(id, 1, LINE);
  }

  /**
   * Looks a token up, each time: a revoked one is refused at once on all nodes. `null` for none of this organization.
   */
  async living(token: string, orgId: string): Promise<LivingScimToken | null> {
    const { sql } = this.#deps;
    const [found] = await sql.read<LivingScimToken & { isUseNews: boolean }>(LIVING, [tokenHash(token), orgId]);
    if (!found) return null;
    const { isUseNews, ...living } = found;
    if (isUseNews) await sql.write(NOTE_USE, [living.id]);
    return living;
  }
}
