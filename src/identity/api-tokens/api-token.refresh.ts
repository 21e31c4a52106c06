import { kindOfToken, prefixOf, successorPair } from '../../access/api-token-format.ts';
import type { Authentication } from '../../access/authentication.ts';
import { tokenHash } from '../../access/random-token.ts';
import { grantOf } from '../../access/token-lookup.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import type { Changes } from '../../data/changes.ts';
import { findRow, selectOf } from '../../data/find-row.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { ApiToken as ApiTokenRow, PrismaClient } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { unauthenticated } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { TokenPrincipal } from '../../kernel/principal.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { refreshExpiryOf, successorExpiry } from './api-token.expiry.ts';
import { demandMaker } from './api-token.locks.ts';
import { resourceOf, revokeTokens } from './api-token.revocation.ts';
import type { IssuedToken } from './api-token.service.ts';

/** How long a refresh can be repeated: its answer may have been lost on the way. */
const REPEAT_MS = 60_000;
/** How long a token that was issued twice may come back late: its other holder refreshes when its own copy expires. */
const OWED_MS = 3_600_000;
const DEFAULT_GRACE_SECONDS = 300;

export interface ApiTokenRefreshDeps {
  prisma: PrismaClient;
  changes: Changes;
  authentication: Authentication;
  activity: ActivityRecorder;
  secret: Buffer;
}

interface Pair {
  token: string;
  refreshToken: string;
}

/** `dead`: the refresh token cannot be used. `reused`: somebody else has used it. */
type RefreshOutcome = IssuedToken | 'dead' | 'reused';

/** A locked token and the current time by the clock of the database. */
type Held = ApiTokenRow & { now: Date };

/** Whether the token was issued twice, so that its other holder may still come late. */
const isOwed = ({ reissuedAt, refreshExpiresAt, now }: Held): boolean =>
  reissuedAt !== null &&
  now.getTime() - reissuedAt.getTime() < OWED_MS &&
  (refreshExpiresAt === null || refreshExpiresAt > now);

/** Exchanges refresh tokens of API tokens and app tokens (defaults §3). */
export class ApiTokenRefresh {
  readonly #deps: ApiTokenRefreshDeps;

  constructor(deps: ApiTokenRefreshDeps) {
    this.#deps = deps;
  }

  /**
   * Exchanges a refresh token for the next pair. The pair inherits everything from the token, including its lifetime.
   * The previous token keeps working during its grace period. A repetition within a minute returns the very same pair,
   * whatever happened to it meanwhile. A refresh token that comes back later revokes the whole family, because somebody
   * else has it. One exception: whoever got a pair through a repetition may be late once, within an hour, and then gets
   * the newest pair of the family; after that no further late use is allowed.
   * @throws AUTHENTICATION_FAILED for anything wrong with the refresh token
   */
  async refresh(
    caller: AnyCaller,
    orgId: string,
    refreshToken: string,
    graceSeconds: number = DEFAULT_GRACE_SECONDS,
  ): Promise<IssuedToken> {
    if (kindOfToken(refreshToken) !== 'rft') throw unauthenticated();
    const { prisma, changes, secret } = this.#deps;
    const refreshHash = tokenHash(refreshToken);
    const known = await prisma.apiToken.findFirst({
      where: { refreshHash, orgId },
      include: { createdBy: { select: { username: true, isVerified: true } } },
    });
    if (!known) throw unauthenticated();
    const { createdBy, ...row } = known;
    const pair = successorPair(kindOf(row.tokenType), refreshToken, secret);
    // The refresh token is the credential: the audit record names its token as the actor, whoever else sent the
    // request.
    const bearer: AnyCaller = { ...caller, principal: principalOf(row, createdBy) };
    const outcome = await changes.run(bearer, (tx) => this.#exchange(tx, row, pair, graceSeconds));
    if (outcome === 'reused') await this.#reused(bearer, row);
    if (typeof outcome === 'string') throw unauthenticated();
    return outcome;
  }

  async #exchange(tx: Tx, known: ApiTokenRow, pair: Pair, graceSeconds: number): Promise<RefreshOutcome> {
    const held = await lockToken(tx, known);
    if (held.suspendedAt) return 'dead';
    if (held.rotatedAt) return this.#repeat(tx, held, pair);
    // The lock has checked that the user is still a member. An expired token can be refreshed, a revoked one cannot.
    if (held.revokedAt || (held.refreshExpiresAt && held.refreshExpiresAt <= held.now)) return 'dead';
    const successor = await this.#succeed(tx, held, pair);
    const graceEnd = new Date(held.now.getTime() + graceSeconds * 1000);
    const revokedAt = held.expiresAt && held.expiresAt < graceEnd ? held.expiresAt : graceEnd;
    const rotated = { rotatedAt: held.now, successorId: successor.id, revokedReason: 'rotated', revokedAt };
    tx.update('api_tokens', { id: held.id }, rotated);
    tx.afterCommit(() => this.#deps.authentication.apiTokensRevoked([held.tokenHash]));
    return issued(successor, pair);
  }

  /** Handles a refresh token that was used before: a repetition, or theft. */
  async #repeat(tx: Tx, held: Held, pair: Pair): Promise<RefreshOutcome> {
    if (held.revokedReason !== 'rotated') return 'dead';
    const isInGrace = held.now.getTime() - held.rotatedAt!.getTime() <= REPEAT_MS;
    if (!isInGrace) {
      if (!isOwed(held)) return 'reused';
      // The late exchange stays possible for a minute after this answer, which may be lost too. The pair in this answer
      // allows no late exchange.
      const left = new Date(Math.min(held.reissuedAt!.getTime(), held.now.getTime() - OWED_MS + REPEAT_MS));
      tx.update('api_tokens', { id: held.id }, { reissuedAt: left });
      return this.#newest(tx, held, pair);
    }
    const successor = held.successorId ? await findRow(tx, 'api_tokens', { id: held.successorId }) : null;
    if (successor?.tokenHash !== tokenHash(pair.token)) return 'reused';
    if (successor.revokedReason && successor.revokedReason !== 'rotated') return 'dead';
    if (!successor.reissuedAt) tx.update('api_tokens', { id: successor.id }, { reissuedAt: held.now });
    return issued(successor, pair);
  }

  /** Finds the one pair of the family that was not refreshed, by deriving successors from the given pair. */
  async #newest(tx: Tx, { familyId, tokenType, now }: Held, pair: Pair): Promise<RefreshOutcome> {
    const family = await tx.query<ApiTokenRow>(selectOf('api_tokens', { familyId }));
    const newest = family.find(({ rotatedAt }) => !rotatedAt);
    if (!newest || newest.revokedAt || (newest.refreshExpiresAt && newest.refreshExpiresAt <= now)) return 'dead';
    let next = pair;
    for (let steps = 0; steps < family.length; steps++) {
      if (tokenHash(next.token) === newest.tokenHash) return issued(newest, next);
      next = successorPair(kindOf(tokenType), next.refreshToken, this.#deps.secret);
    }
    return 'reused';
  }

  async #succeed(tx: Tx, held: Held, pair: Pair): Promise<ApiTokenRow> {
    const { now, ...inherited } = held;
    const expiresAt = successorExpiry(held, now);
    const id = newId('api_token');
    const made = tx.create('api_tokens', {
      ...inherited,
      id,
      prefix: prefixOf(pair.token),
      tokenHash: tokenHash(pair.token),
      refreshHash: tokenHash(pair.refreshToken),
      issuedAt: now,
      expiresAt,
      refreshExpiresAt: refreshExpiryOf(expiresAt, held.endsBy),
      resourceVersion: 1,
      lastUsedAt: null,
      reissuedAt: null,
      noticedDays: null,
    });
    const successor = await tx.written(made);
    const metadata = { previous: held.id, prefix: successor.prefix };
    recordChange(tx, 'refresh', resourceOf(successor), successor, metadata, { replacedId: held.id });
    return successor;
  }

  /** Revokes the family. The service is the actor, because the sender of the token is unknown. */
  async #reused(bearer: AnyCaller, token: ApiTokenRow): Promise<void> {
    const { changes, authentication, activity } = this.#deps;
    const { id, orgId, workspaceId, appId, familyId, name, prefix } = token;
    const resourceType = resourceOf(token);
    const system = systemCaller('refresh token reuse');
    const service: AnyCaller = { ...system, request: { ...system.request, traceId: bearer.request.traceId } };
    const count = await changes.run(service, async (tx) => {
      const revoked = await revokeTokens(tx, authentication, { familyId }, 'refresh_token_reuse');
      const type = `${resourceType}.refresh_token_reused`;
      const facts = { userIds: [token.createdByUserId], name, of: prefix };
      if (revoked > 0) tx.announce({ type, orgId, workspaceId, appId, resourceType, resourceId: id, facts });
      return revoked;
    });
    if (count === 0) return;
    activity.record(
      bearer,
      {
        action: 'refresh',
        resourceType,
        resourceId: id,
        orgId,
        workspaceId,
        appId,
        metadata: { family_revoked: 'refresh_token_reuse' },
      },
      { statusCode: 401, errorCode: 'AUTHENTICATION_FAILED' },
    );
  }
}

/**
 * Locks a token whose user is active and still a member. Of many concurrent refreshes the first rotates and the others
 * wait for it.
 * @throws AUTHENTICATION_FAILED if any of them is gone
 */
async function lockToken(tx: Tx, { id, orgId, createdByUserId: userId, appId }: ApiTokenRow): Promise<Held> {
  demandMaker(tx, { orgId, userId, appId }, unauthenticated);
  const row = await tx.lock('api_tokens', { id }, 'update', unauthenticated);
  const [clock] = await tx.query<{ now: Date }>(statement`select clock_timestamp() as now`);
  return { ...row, now: clock!.now };
}

const kindOf = (tokenType: string): 'app' | 'pat' => (tokenType === 'app' ? 'app' : 'pat');

const issued = (token: ApiTokenRow, pair: Pair): IssuedToken => ({
  token,
  plaintextToken: pair.token,
  refreshTokenPlaintext: pair.refreshToken,
});

function principalOf(row: ApiTokenRow, user: { username: string; isVerified: boolean }): TokenPrincipal {
  const type = kindOf(row.tokenType);
  return {
    type: type === 'app' ? 'app_token' : 'api_token',
    userId: row.createdByUserId,
    ...user,
    isPlatformAdmin: false,
    orgId: row.orgId,
    token: grantOf({ ...row, type }, row.tokenHash),
  };
}
