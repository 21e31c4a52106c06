import { formatToken, prefixOf } from '../access/api-token-format.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { granted } from '../access/permissions.ts';
import { tokenHash } from '../access/random-token.ts';
import type { AppService } from '../apps/app.service.ts';
import type { Config } from '../config.ts';
import { forbidden, notFound, unauthenticated } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import type { Permission } from '../core/resources.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { filtersOf } from '../data/pages.ts';
import { recordChange } from '../data/record-change.ts';
import { type RequestCache, unkept } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import type { App, Prisma, PrismaClient } from '../generated/prisma/client.ts';
import { holdTokenCaps, type TokenCaps } from './api-token.caps.ts';
import { checkRates, expiryOf, type ParentLimits, refreshExpiryOf } from './api-token.expiry.ts';
import { holdForMinting } from './api-token.holds.ts';
import { type ApiToken, ApiTokenReads } from './api-token.reads.ts';
import { type RevocationReason, resourceOf, revokeTokens } from './api-token.revocation.ts';
import { checkTokenLists, listsOf, type TokenInput } from './api-token.rules.ts';

/** What issuing and refreshing hand out: the only time that the plaintexts are seen. */
export interface IssuedToken {
  token: ApiToken;
  plaintextToken: string;
  refreshTokenPlaintext: string;
}

export interface ApiTokenDeps extends ServiceDeps {
  prisma: PrismaClient;
  authentication: Authentication;
  apps: AppService;
  config: Pick<Config, 'allowNonExpiringTokens'> & TokenCaps;
}

/** API tokens of users and tokens of apps (spec, API tokens and app tokens). */
export class ApiTokenService {
  /** Revoked ones stay in lists for 90 days; expired ones can be refreshed for 30 days. */
  readonly retention = [
    `delete from api_tokens where revoked_at < now() - interval '90 days'
       or refresh_expires_at < now() - interval '90 days'`,
  ];
  readonly reads: ApiTokenReads;
  readonly #deps: ApiTokenDeps;

  constructor(deps: ApiTokenDeps) {
    this.#deps = deps;
    this.reads = new ApiTokenReads(deps);
  }

  /** The caller's own. A token of an app sees those that its user made for this app, itself among them, and no other of the user's. */
  async list(actor: Actor, { orgId, ...args }: PageArgs & { orgId: string }): Promise<Page<ApiToken>> {
    const { list, parent, filters } = this.#ownOf(actor, orgId);
    return list.page(parent, args, filters);
  }

  /** The same list below an organization of a list. */
  async nestedOwn(memory: RequestCache, actor: Actor, orgId: string, args: PageArgs): Promise<Page<ApiToken>> {
    const { list, parent, filters } = this.#ownOf(actor, orgId);
    return list.nested(memory, parent, args, filters);
  }

  #ownOf({ principal: { userId, token } }: Actor, orgId: string) {
    if (!token?.appId) return { list: this.reads.own, parent: [orgId, userId], filters: [] };
    const filters = filtersOf({ 't.created_by_user_id = ?': userId });
    return { list: this.reads.ofApp, parent: [orgId, token.appId], filters };
  }

  /** Those of an app. @throws RESOURCE_NOT_FOUND `app`, also for one that the caller cannot see; FORBIDDEN */
  async listOfApp(
    actor: Actor,
    { orgId, appId, ...args }: PageArgs & { orgId: string; appId: string },
  ): Promise<Page<ApiToken>> {
    await this.#app(actor, orgId, appId, 'app_token:read');
    return this.reads.ofApp.page([orgId, appId], args);
  }

  /** The same list below an app of a list. */
  async nestedOfApp(memory: RequestCache, { orgId, id }: App, args: PageArgs): Promise<Page<ApiToken>> {
    return this.reads.ofApp.nested(memory, [orgId, id], args);
  }

  /** A token by its id alone, for its owner and for those who may manage it; `null` for everybody else. */
  async findFor(actor: Actor, id: string): Promise<ApiToken | null> {
    const token = await this.reads.findAnywhere(id);
    if (!token) return null;
    const { orgId, workspaceId, appId, createdByUserId, tokenType } = token;
    const isConfined = actor.principal.token?.type === 'app';
    const isOwn = tokenType === 'pat' && createdByUserId === actor.principal.userId && !isConfined;
    const { access } = this.#deps;
    if (isOwn) await access.requireOrganization(actor, orgId, 'api_token:read');
    else if (workspaceId) await access.requireWorkspace(actor, orgId, workspaceId, 'app_token:read', { appId });
    else await access.requireOrganization(actor, orgId, 'api_token:manage');
    return token;
  }

  /**
   * Issues a token with which programs act as the caller, never with more rights.
   * @throws InputError naming what would be beyond; RESOURCE_CONFLICT `limit_reached`
   */
  async create(actor: Actor, orgId: string, input: TokenInput): Promise<IssuedToken> {
    const { token: parent, userId } = actor.principal;
    const role = await this.#deps.access.organizationRole(actor, orgId);
    if (!role || granted(role, 'api_token:create') === 'none') throw forbidden('api_token:create');
    if (parent?.type === 'app') throw forbidden('api_token:create', 'A token of an app makes tokens of its app only.');
    const owner = { tokenType: 'pat', ownerType: 'user', ownerId: userId, appId: null, workspaceId: null };
    return this.#issue(actor, orgId, owner, input);
  }

  /** Issues a token of an app: it acts for the caller within the app. @throws RESOURCE_NOT_FOUND `app`, FORBIDDEN, InputError, RESOURCE_CONFLICT `limit_reached` */
  async createForApp(actor: Actor, orgId: string, appId: string, input: TokenInput): Promise<IssuedToken> {
    const { workspaceId } = await this.#app(actor, orgId, appId, 'app_token:create');
    return this.#issue(actor, orgId, { tokenType: 'app', ownerType: 'app', ownerId: appId, appId, workspaceId }, input);
  }

  /** Revokes one of the caller's own with its family; a second time changes nothing. @throws RESOURCE_NOT_FOUND `api_token`, also for another's */
  async revoke(actor: Actor, orgId: string, id: string): Promise<void> {
    const token = await this.#known(orgId, id);
    if (token?.tokenType !== 'pat' || token.createdByUserId !== actor.principal.userId) throw notFound('api_token', id);
    await this.#revoke(actor, id, 'revoked_by_user');
  }

  /** Revokes any token of the organization. @throws RESOURCE_NOT_FOUND `api_token` */
  async revokeAny(actor: Actor, orgId: string, id: string): Promise<void> {
    if (!(await this.#known(orgId, id))) throw notFound('api_token', id);
    await this.#revoke(actor, id, 'revoked_by_admin');
  }

  /** Revokes a token of an app. @throws RESOURCE_NOT_FOUND `app` or `app_token`, FORBIDDEN */
  async revokeOfApp(actor: Actor, { orgId, appId, id }: { orgId: string; appId: string; id: string }): Promise<void> {
    await this.#app(actor, orgId, appId, 'app_token:revoke');
    const token = await this.#known(orgId, id);
    if (!token || token.appId !== appId) throw notFound('app_token', id);
    const isOwn = token.createdByUserId === actor.principal.userId;
    await this.#revoke(actor, id, isOwn ? 'revoked_by_user' : 'revoked_by_admin');
  }

  async #known(orgId: string, id: string): Promise<ApiToken | null> {
    const token = await this.reads.findAnywhere(id);
    return token?.orgId === orgId ? token : null;
  }

  async #revoke(actor: Actor, id: string, reason: RevocationReason): Promise<void> {
    const { changes, authentication } = this.#deps;
    await changes.runWithPrisma(actor, async (tx) => {
      await tx.expectVersion({ table: 'api_tokens', key: { id } });
      await revokeTokens(tx, authentication, { id }, reason);
    });
  }

  /** An app whose workspace the actor can see. @throws RESOURCE_NOT_FOUND `app`; FORBIDDEN with the permission */
  async #app(actor: Actor, orgId: string, appId: string, permission: Permission): Promise<App> {
    const { access, apps } = this.#deps;
    const app = await apps.reads.findUnscoped(unkept, appId);
    if (app?.orgId !== orgId || !(await access.workspaceRole(actor, orgId, app.workspaceId)))
      throw notFound('app', appId);
    await access.requireWorkspace(actor, orgId, app.workspaceId, permission, { appId });
    return app;
  }

  async #issue(
    actor: Actor,
    orgId: string,
    owner: Pick<Prisma.ApiTokenUncheckedCreateInput, 'tokenType' | 'ownerType' | 'ownerId'> & {
      appId: string | null;
      workspaceId: string | null;
    },
    input: TokenInput,
  ): Promise<IssuedToken> {
    const { changes, config } = this.#deps;
    const issuedAt = new Date();
    const parent = await this.#parentOf(actor);
    const expiresAt = expiryOf(input, issuedAt, { allowNever: config.allowNonExpiringTokens, parent });
    checkRates(actor, input);
    const lists = listsOf(input);
    await checkTokenLists(this.#deps, actor, { orgId, workspaceId: owner.workspaceId }, lists);
    const plaintextToken = formatToken(owner.tokenType === 'app' ? 'app' : 'pat');
    const refreshTokenPlaintext = formatToken('rft');
    const id = newId('api_token');
    const { userId, token: asking } = actor.principal;
    const endsBy = parent?.expiresAt ?? null;
    const row = await changes.runWithPrisma(actor, async (tx) => {
      const maker = { orgId, userId, appId: owner.appId };
      await holdTokenCaps(tx, config, maker);
      await holdForMinting(tx, maker, asking?.id ?? null);
      const created = await tx.db.apiToken.create({
        data: {
          id,
          orgId,
          familyId: id,
          makerFamilyId: asking?.familyId ?? null,
          rootFamilyId: asking ? (asking.root?.familyId ?? asking.familyId) : null,
          endsBy,
          ...owner,
          createdByUserId: userId,
          name: input.name,
          description: input.description ?? null,
          prefix: prefixOf(plaintextToken),
          tokenHash: tokenHash(plaintextToken),
          refreshHash: tokenHash(refreshTokenPlaintext),
          refreshExpiresAt: refreshExpiryOf(expiresAt, endsBy),
          ...lists,
          rateLimitRps: input.rateLimitRps ?? null,
          rateLimitBurst: input.rateLimitBurst ?? null,
          issuedAt,
          expiresAt,
        },
      });
      recordChange(tx, 'create', resourceOf(created), created, { prefix: created.prefix });
      return created;
    });
    return { token: row, plaintextToken, refreshTokenPlaintext };
  }

  /** The end of the token that asks for a new one. */
  async #parentOf({ principal: { token } }: Actor): Promise<ParentLimits | null> {
    if (!token) return null;
    const row = await this.#deps.prisma.apiToken.findUnique({ where: { id: token.id }, select: { expiresAt: true } });
    if (!row) throw unauthenticated(); // deleted with its app at this moment
    return row;
  }
}
