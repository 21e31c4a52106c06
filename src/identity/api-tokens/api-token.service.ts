import { formatToken, prefixOf } from '../../access/api-token-format.ts';
import type { Authentication } from '../../access/authentication.ts';
import { granted } from '../../access/permissions.ts';
import { tokenHash } from '../../access/random-token.ts';
import { expand } from '../../access/scopes.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { letsSecretsOut } from '../../access/step-up.ts';
import type { Config } from '../../config.ts';
import { findRow } from '../../data/find-row.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { type CallerContext, noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { ApiToken as ApiTokenRow, App } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { forbidden, notFound, unauthenticated } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Permission } from '../../kernel/resources.ts';
import { isRestricted, type TokenGrant } from '../../kernel/token-grant.ts';
import type { AppService } from '../../tenancy/apps/app.service.ts';
import type { ContentOwner, PlaceRemoval, RemovedMember, RemovedPlace } from '../../tenancy/removals.ts';
import { lockTokenCaps, type TokenCaps } from './api-token.caps.ts';
import { checkRates, expiryOf, type ParentLimits, refreshExpiryOf } from './api-token.expiry.ts';
import { lockForMinting } from './api-token.locks.ts';
import { type ApiToken, ownTokens, shown, tokens } from './api-token.reads.ts';
import { type RevocationReason, resourceOf, revokeTokens } from './api-token.revocation.ts';
import { checkTokenLists, listsOf, type TokenInput, type TokenLists } from './api-token.rules.ts';

type OfApp = Pick<AppPlace, 'orgId' | 'appId'>;

/** The owner of a new token and where the token works. */
type TokenOwner = Pick<ApiTokenRow, 'orgId' | 'tokenType' | 'ownerType' | 'ownerId' | 'appId' | 'workspaceId'>;

/** Result of issuing and refreshing: the only time that the plaintexts are shown. */
export interface IssuedToken {
  token: ApiToken;
  plaintextToken: string;
  refreshTokenPlaintext: string;
}

export interface ApiTokenDeps extends ServiceDeps {
  authentication: Authentication;
  apps: AppService;
  config: Pick<Config, 'allowNonExpiringTokens'> & TokenCaps;
}

/** API tokens of users and app tokens (spec, API tokens and app tokens). */
export class ApiTokenService implements ContentOwner {
  /** Revoked tokens stay listed for 90 days. Expired ones can be refreshed for 30 days. */
  readonly retention = [
    `delete from api_tokens where revoked_at < now() - interval '90 days'
       or refresh_expires_at < now() - interval '90 days'`,
  ];
  /** All tokens of an organization. */
  readonly all: Reads<ApiToken, OrganizationPlace>;
  /** The tokens of an app. */
  readonly ofApp: Reads<ApiToken, OfApp>;
  /** The caller's own API tokens. */
  readonly own: Reads<ApiToken, OrganizationPlace>;
  /** A token's own line: itself and what it was refreshed to, and the tokens that it made. */
  readonly ownLine: Reads<ApiToken, OrganizationPlace, PageArgs & { familyId?: string }>;
  /** The app tokens that the caller created. */
  readonly ownOfApps: Reads<ApiToken, OrganizationPlace, PageArgs & { appId?: string }>;
  readonly #deps: ApiTokenDeps;

  constructor(deps: ApiTokenDeps) {
    this.#deps = deps;
    this.all = new Reads(deps, { ...tokens, name: 'all_api_tokens', below: ['orgId'], listed: shown('r.org_id = $1') });
    this.ofApp = new Reads(deps, {
      ...tokens,
      name: 'app_tokens',
      below: ['orgId', 'appId'],
      listed: shown('r.org_id = $1 and r.app_id = $2'),
    });
    this.own = new Reads(deps, ownTokens('pat'));
    this.ownLine = new Reads(deps, {
      ...ownTokens('pat'),
      name: 'own_line_of_tokens',
      filters: ({ familyId }) => ({ '? in (t.family_id, t.root_family_id)': familyId }),
    });
    this.ownOfApps = new Reads(deps, {
      ...ownTokens('app'),
      name: 'own_app_tokens',
      filters: ({ appId }) => ({ 't.app_id = ?': appId }),
    });
  }

  /** The tokens of an app go with it, and this node refuses them at once. */
  placeRemoved(_caller: Caller, { kind, id }: RemovedPlace): PlaceRemoval {
    if (kind !== 'app') return {};
    return {
      before: async (tx) => {
        await tx.lockAll('api_tokens', statement`t.app_id = ${id}`, 'update');
        tx.afterCommit(() => this.#deps.authentication.appDeleted());
      },
    };
  }

  /** Revokes what a member created in the organization. */
  async memberRemoved(tx: Tx, { orgId, userId }: RemovedMember): Promise<void> {
    if (userId !== null) await revokeTokens(tx, this.#deps.authentication, { orgId, userId }, 'owner_left');
  }

  /**
   * The caller's own tokens. An app token sees only the tokens that its user created for its app, itself included; a
   * token that is restricted to some places only its own line.
   */
  async list(
    context: CallerContext,
    place: Checked<OrganizationPlace>,
    { first, after }: PageArgs,
  ): Promise<Page<ApiToken>> {
    const { token } = context.caller.principal;
    if (token?.appId) return this.ownOfApps.list(context, place, { first, after, appId: token.appId });
    return token && isRestricted(token)
      ? this.ownLine.list(context, place, { first, after, familyId: token.familyId })
      : this.own.list(context, place, { first, after });
  }

  /** A token by its id alone, for its owner and for those who may manage it. @throws FORBIDDEN for everyone else */
  async find(context: CallerContext, id: string): Promise<ApiToken | null> {
    const { caller } = context;
    const token = await this.all.findUnscoped(context, id);
    if (!token) return null;
    const { orgId, workspaceId, appId, createdByUserId, tokenType } = token;
    const asking = caller.principal.token;
    const isByUser = tokenType === 'pat' && createdByUserId === caller.principal.userId && asking?.type !== 'app';
    const isOwn = isByUser && (!asking || !isRestricted(asking) || (await this.#isOfLine(asking, id)));
    const { access } = this.#deps;
    if (isOwn) await access.requireOrganization(caller, orgId, 'api_token:read');
    else if (workspaceId) await access.requireWorkspace(caller, orgId, workspaceId, 'app_token:read', { appId });
    else await access.requireOrganization(caller, orgId, 'api_token:manage');
    return token;
  }

  /** Whether a token is another one itself, was refreshed from it or made by it. */
  async #isOfLine({ familyId }: TokenGrant, id: string): Promise<boolean> {
    const text = 'select from api_tokens where id = $1 and $2 in (family_id, root_family_id)';
    return (await this.#deps.sql.read(text, [id, familyId])).length > 0;
  }

  /**
   * Issues a token with which a program acts as the caller, never with more permissions.
   * @throws InputError naming each excess; RESOURCE_CONFLICT `limit_reached`
   */
  async create(caller: Caller, { orgId }: OrganizationPlace, input: TokenInput): Promise<IssuedToken> {
    const { token: parent, userId } = caller.principal;
    const role = await this.#deps.access.organizationRole(caller, orgId);
    if (!role || granted(role, 'api_token:create') === 'none') throw forbidden('api_token:create');
    if (parent?.type === 'app')
      throw forbidden('api_token:create', 'An app token can only create tokens of its own app.');
    const owner = { tokenType: 'pat', ownerType: 'user', ownerId: userId, appId: null, workspaceId: null };
    return this.#issue(caller, { orgId, ...owner }, input);
  }

  /**
   * Issues an app token: it acts for the caller within the app.
   * @throws RESOURCE_NOT_FOUND `app`, FORBIDDEN, InputError, RESOURCE_CONFLICT `limit_reached`
   */
  async createForApp(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    appId: string,
    input: TokenInput,
  ): Promise<IssuedToken> {
    const { orgId, workspaceId } = await this.app(caller, place, appId, 'app_token:create');
    const owner = { tokenType: 'app', ownerType: 'app', ownerId: appId, appId, workspaceId };
    return this.#issue(caller, { orgId, ...owner }, input);
  }

  /**
   * Revokes one of the caller's own tokens with its family. Repeating it changes nothing.
   * @throws RESOURCE_NOT_FOUND `api_token`, also for another user's token
   */
  async revoke(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<ApiToken> {
    const token = await this.all.get(noCache, place, id);
    if (token.tokenType !== 'pat' || token.createdByUserId !== caller.principal.userId) throw notFound('api_token', id);
    return this.#revoke(caller, place, id, 'revoked_by_user');
  }

  /** Revokes any token of the organization. @throws RESOURCE_NOT_FOUND `api_token` */
  async revokeAny(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<ApiToken> {
    await this.all.get(noCache, place, id);
    return this.#revoke(caller, place, id, 'revoked_by_admin');
  }

  /** Revokes a token of an app. @throws RESOURCE_NOT_FOUND `app` or `app_token`, FORBIDDEN */
  async revokeOfApp(caller: Caller, place: Checked<OrganizationPlace>, appId: string, id: string): Promise<ApiToken> {
    await this.app(caller, place, appId, 'app_token:revoke');
    const token = await this.all.find(noCache, place, id);
    if (token?.appId !== appId) throw notFound('app_token', id);
    const isOwn = token.createdByUserId === caller.principal.userId;
    return this.#revoke(caller, place, id, isOwn ? 'revoked_by_user' : 'revoked_by_admin');
  }

  /** @returns the token as it is then */
  async #revoke(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    reason: RevocationReason,
  ): Promise<ApiToken> {
    const { changes, authentication } = this.#deps;
    await changes.run(caller, async (tx) => {
      await tx.expectVersion({ table: 'api_tokens', key: { id } });
      await revokeTokens(tx, authentication, { id }, reason);
    });
    return this.all.get(noCache, place, id);
  }

  /** An app whose workspace the caller can see. @throws RESOURCE_NOT_FOUND `app`; FORBIDDEN with the permission */
  async app(caller: Caller, place: Checked<OrganizationPlace>, appId: string, permission: Permission): Promise<App> {
    const { access, apps } = this.#deps;
    const app = await apps.ofOrganization.get(noCache, place, appId);
    const { orgId, workspaceId } = app;
    if (!(await access.workspaceRole(caller, orgId, workspaceId))) throw notFound('app', appId);
    await access.requireWorkspace(caller, orgId, workspaceId, permission, { appId });
    return app;
  }

  /** A token that may reveal secrets takes what revealing them does: it would be the way around. */
  async #demandStepUp(caller: Caller, orgId: string, { scopes, permissions }: TokenLists): Promise<void> {
    if ([...expand(scopes, permissions)].some(letsSecretsOut))
      await this.#deps.access.steppedUp(caller, orgId, { permission: 'secret:reveal', stepUp: 'secret_reveal' }, null);
  }

  async #issue(caller: Caller, owner: TokenOwner, input: TokenInput): Promise<IssuedToken> {
    const { changes, config } = this.#deps;
    const issuedAt = new Date();
    const parent = await this.#parentOf(caller);
    const expiresAt = expiryOf(input, issuedAt, { allowNever: config.allowNonExpiringTokens, parent });
    checkRates(caller, input);
    const lists = listsOf(input);
    await checkTokenLists(this.#deps, caller, owner, lists);
    await this.#demandStepUp(caller, owner.orgId, lists);
    const plaintextToken = formatToken(owner.tokenType === 'app' ? 'app' : 'pat');
    const refreshTokenPlaintext = formatToken('rft');
    const id = newId('api_token');
    const { userId, token: asking } = caller.principal;
    const endsBy = parent?.expiresAt ?? null;
    const row = await changes.run(caller, async (tx) => {
      const maker = { orgId: owner.orgId, userId, appId: owner.appId };
      await lockTokenCaps(tx, config, maker);
      await lockForMinting(tx, caller, maker);
      const prefix = prefixOf(plaintextToken);
      recordChange(tx, 'create', resourceOf(owner), { id, ...owner }, { prefix });
      return tx.create('api_tokens', {
        id,
        familyId: id,
        makerFamilyId: asking?.familyId ?? null,
        rootFamilyId: asking ? (asking.root?.familyId ?? asking.familyId) : null,
        endsBy,
        ...owner,
        createdByUserId: userId,
        name: input.name,
        description: input.description ?? null,
        prefix,
        tokenHash: tokenHash(plaintextToken),
        refreshHash: tokenHash(refreshTokenPlaintext),
        refreshExpiresAt: refreshExpiryOf(expiresAt, endsBy),
        ...lists,
        rateLimitRps: input.rateLimitRps ?? null,
        rateLimitBurst: input.rateLimitBurst ?? null,
        issuedAt,
        expiresAt,
      });
    });
    return { token: row, plaintextToken, refreshTokenPlaintext };
  }

  /** Limits set by the token that asks for a new one. */
  async #parentOf({ principal: { token } }: Caller): Promise<ParentLimits | null> {
    if (!token) return null;
    const row = await findRow(this.#deps.sql, 'api_tokens', { id: token.id });
    if (!row) throw unauthenticated(); // deleted with its app just now
    return row;
  }
}
