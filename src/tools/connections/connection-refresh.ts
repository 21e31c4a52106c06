import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Connection } from '../../generated/prisma/client.ts';
import { ApiError } from '../../kernel/errors.ts';
import type { Owner } from '../../kernel/owner.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { type Attempt, scheduled, type Task } from '../../kernel/tasks.ts';
import { isDatabaseAway } from '../../platform/postgres/faults.ts';
import { isLivePlace } from '../../tenancy/views.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { connected, showInInstance, toldOf } from './connection-changes.ts';
import { afterFailure } from './connection-state.ts';
import { type ConnectionTarget, clientOf, clientReferenceOf, findTarget } from './connection-target.ts';
import { type OAuthGrant, type OAuthProvider, ProviderRefusal } from './oauth-provider.ts';
import { credentialIn, tokensOf } from './stored-credential.ts';

/** Longer than an outbound call may take: after that, whoever claimed the refresh is gone. */
const CLAIM_MS = 20_000;
/** How long a user of a connection waits for a refresh of another node. */
const WAIT_MS = 15_000;
const LOOK_MS = 100;
/** After a refresh, a provider that refuses the new token too is not asked for another for so long. */
const FORCED_EVERY_MS = 60_000;
/** What was granted is stored again and again for so long while the database is away. */
const STORE_FOR_MS = 60_000;
const DELETED_PLACE_MS = 3_600_000;
const BATCH = 200;
const AT_ONCE = 16;

/**
 * Why a connection is refreshed. `due`: its time has come; `expired`: somebody needs it; `kept`: somebody takes it
 * along; `refused`: by a provider; `asked`: somebody wants to know now.
 */
export type RefreshReason = 'due' | 'expired' | 'kept' | 'refused' | 'asked';

interface Claim {
  id: string;
  connection: Connection;
  target: ConnectionTarget;
  tokens: { access_token: string; refresh_token: string };
}

/** `settled`: nothing is left to do, because somebody else did it or nobody can. */
type Claimed = Claim | 'busy' | 'settled';

interface ConnectionRefreshDeps {
  sql: Sql;
  changes: Changes;
  credentials: Credentials;
  vault: Vault;
  provider: OAuthProvider;
  onFault: (error: unknown, what: string) => void;
}

/**
 * Refreshes access tokens, each by one node at a time and ahead of its end (docs/decisions/0015). A claim in the row
 * stands for the refresh while the provider is asked: no database connection is held meanwhile. A refresh that fails
 * leaves the credential as it is.
 */
export class ConnectionRefresh implements Owner {
  readonly tasks: readonly Task[];
  readonly #deps: ConnectionRefreshDeps;
  readonly #running = new Map<string, { reason: RefreshReason; work: Promise<void> }>();

  constructor(deps: ConnectionRefreshDeps) {
    this.#deps = deps;
    this.tasks = [
      scheduled(
        'refresh_connections',
        { everySeconds: 5, ifAny: 'select 1 from connections where refresh_at <= now()' },
        (attempt) => this.refreshDue(attempt),
      ),
    ];
  }

  /**
   * Resolves when the access token that the caller saw was replaced or cannot be. Callers of one process wait for one
   * refresh.
   */
  async refresh(connectionId: string, seen: string | null, reason: RefreshReason): Promise<void> {
    for (let running = this.#running.get(connectionId); running; running = this.#running.get(connectionId)) {
      await running.work;
      // another may have found that it was not the time yet; if it was, `seen` says so
      if (reason !== 'asked' || running.reason === 'asked') return;
    }
    const work = this.#refresh(connectionId, seen, reason).finally(() => this.#running.delete(connectionId));
    this.#running.set(connectionId, { reason, work });
    return work;
  }

  /**
   * Refreshes a connection because somebody asks for it, whatever its time. Nothing happens to one that nothing can
   * refresh: with a key, without a refresh token, or that must be authorized again.
   */
  async refreshNow({ id, orgId }: Pick<Connection, 'id' | 'orgId'>): Promise<void> {
    const { sql, credentials } = this.#deps;
    const stored = credentialIn(await credentials.open(sql, orgId, { connectionId: id }));
    if (stored && 'access_token' in stored) await this.refresh(id, stored.access_token, 'asked');
  }

  /** Refreshes what is due, and ends authorizations that nobody finished. @returns the number of connections */
  async refreshDue({ signal }: Pick<Attempt, 'signal'>): Promise<number> {
    const due = await this.#deps.sql.query<{ id: string; status: string }>({
      text: 'select id, status from connections where refresh_at <= now() order by refresh_at limit $1',
      values: [BATCH],
    });
    const waiting = [...due];
    const work = async () => {
      for (let next = waiting.shift(); next && !signal.aborted; next = waiting.shift()) {
        const { id, status } = next;
        // one that fails must not keep the others from their turn
        await (status === 'pending' ? this.#abandon(id) : this.refresh(id, null, 'due')).catch((error: unknown) =>
          this.#deps.onFault(error, `the connection '${id}' could not be refreshed`),
        );
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return due.length;
  }

  async #refresh(connectionId: string, seen: string | null, reason: RefreshReason): Promise<void> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const claim = await this.#claim(connectionId, seen, reason);
      if (claim === 'settled') return;
      if (claim !== 'busy') return this.#run(claim);
      if (reason === 'due' || Date.now() > deadline) return;
      await delay(LOOK_MS * (1 + Math.random()));
    }
  }

  /**
   * Claims the refresh of a connection, and reads it again under the lock. The lock lasts for this transaction only,
   * and whoever does not get it does not wait for it: no connection of the pool is held by one who waits.
   */
  async #claim(connectionId: string, seen: string | null, reason: RefreshReason): Promise<Claimed> {
    return this.#deps.changes.run<Claimed>(systemCaller('refresh_connections'), async (tx) => {
      const [lock] = await tx.query<{ got: boolean; toolInstanceId: string | null }>(
        statement`select pg_try_advisory_xact_lock(hashtextextended('connection ' || ${connectionId}, 0)) as got,
          (select tool_instance_id from connections where id = ${connectionId}) as "toolInstanceId"`,
      );
      if (!lock?.got) return 'busy';
      if (!lock.toolInstanceId) return 'settled';
      await tx.lock('tool_instances', { id: lock.toolInstanceId }, 'no key update');
      const connection = await tx.lock('connections', { id: connectionId }, 'no key update');
      if (connection?.authType !== 'oauth2') return 'settled';
      const now = Date.now();
      if (connection.claimedUntil && connection.claimedUntil.getTime() > now) return 'busy';
      const { orgId } = connection;
      const stored = credentialIn(await this.#deps.credentials.open(tx, orgId, { connectionId }));
      if (!stored || 'api_key' in stored) return 'settled';
      if (seen !== null && stored.access_token !== seen) return 'settled';
      const wait = waitOf(connection, reason, now);
      if (wait === 'settled') return wait;
      if (await isDeleted(tx, connection)) {
        tx.update('connections', { id: connectionId }, { refreshAt: new Date(now + DELETED_PLACE_MS) });
        return 'settled';
      }
      const target = await findTarget(tx, orgId, connection.toolInstanceId);
      if (stored.refresh_token === null || !target) {
        this.#end(tx, connection, now);
        return 'settled';
      }
      const id = randomUUID();
      const claimedUntil = new Date(now + CLAIM_MS);
      // if this node ends now, the job finds the connection when the claim has ended
      tx.update('connections', { id: connectionId }, { refreshClaim: id, claimedUntil, refreshAt: claimedUntil });
      const tokens = { access_token: stored.access_token, refresh_token: stored.refresh_token };
      return { id, connection, target, tokens };
    });
  }

  /** Asks the provider, and stores what it said. */
  async #run(claim: Claim): Promise<void> {
    const { provider, vault } = this.#deps;
    const outcome = await (async () =>
      provider.refresh(await clientOf(vault, clientReferenceOf(claim.target)), claim.tokens.refresh_token))().catch(
      (error: unknown) => {
        if (error instanceof ProviderRefusal || error instanceof ApiError) return error;
        throw error;
      },
    );
    if (outcome instanceof Error) return this.#fail(claim, outcome);
    return this.#keep(() => this.#succeed(claim, outcome));
  }

  /** Stores what exists nowhere else: the provider may have ended the old refresh token. */
  async #keep(store: () => Promise<void>): Promise<void> {
    const deadline = Date.now() + STORE_FOR_MS;
    for (let wait = 100; ; wait = Math.min(wait * 2, 5_000)) {
      try {
        return await store();
      } catch (error) {
        if (!isDatabaseAway(error) || Date.now() + wait > deadline) throw error;
        await delay(wait);
      }
    }
  }

  async #succeed(claim: Claim, granted: OAuthGrant): Promise<void> {
    const { credentials } = this.#deps;
    await this.#change(claim, async (tx, connection) => {
      const { id, orgId } = connection;
      const kept = tokensOf(granted, claim.tokens.refresh_token);
      await credentials.put(tx, orgId, { connectionId: id }, kept, { setBy: undefined });
      const refreshToken = granted.refreshToken ?? claim.tokens.refresh_token;
      const { accountLabel: label, ...set } = connected('oauth2', connection.scopes, { ...granted, refreshToken });
      const accountLabel = label ?? connection.accountLabel;
      tx.update('connections', { id }, { ...set, accountLabel, lastRefreshedAt: new Date() });
      this.#show(tx, connection, set.status);
    });
  }

  async #fail(claim: Claim, error: ProviderRefusal | ApiError): Promise<void> {
    const isFinal = error instanceof ProviderRefusal && error.kind === 'invalid_grant';
    await this.#change(claim, async (tx, connection) => {
      const { id } = connection;
      const lastError = error.message;
      const free = { refreshClaim: null, claimedUntil: null };
      if (!isFinal) {
        const { status, ...next } = afterFailure(connection);
        tx.update('connections', { id }, { ...free, ...next, status, lastError });
        this.#show(tx, connection, status);
        return;
      }
      const status = 'needs_reauth';
      tx.update('connections', { id }, { ...free, status, lastError, refreshAt: null, refreshFailures: 0 });
      showInInstance(tx, connection, status);
      if (connection.status === status) return;
      const { instance, tool } = claim.target;
      emitChange(
        tx,
        'needs_reauth',
        'connection',
        connection,
        { tool_instance_id: connection.toolInstanceId },
        { userIds: await toldOf(tx, connection), name: instance.name, of: tool.name },
      );
    });
  }

  /** Changes a connection, unless its credential was replaced since it was claimed. */
  async #change(claim: Claim, work: (tx: Tx, connection: Connection) => Promise<void>): Promise<void> {
    const { id: connectionId, orgId, toolInstanceId } = claim.connection;
    await this.#deps.changes.run(systemCaller('refresh_connections'), async (tx) => {
      await tx.lock('tool_instances', { id: toolInstanceId }, 'no key update');
      const connection = await tx.lock('connections', { id: connectionId }, 'no key update');
      if (!connection) return;
      const stored = credentialIn(await this.#deps.credentials.open(tx, orgId, { connectionId }));
      if (stored && 'access_token' in stored && stored.access_token === claim.tokens.access_token)
        await work(tx, connection);
    });
  }

  /** An access token that nothing can refresh is used until it ends. */
  #end(tx: Tx, connection: Connection, now: number): void {
    const { id, expiresAt, status } = connection;
    const hasEnded = expiresAt !== null && expiresAt.getTime() <= now;
    const next = hasEnded && status === 'connected' ? 'expired' : status;
    tx.update('connections', { id }, { status: next, refreshAt: hasEnded ? null : expiresAt });
    this.#show(tx, connection, next);
  }

  /** A status that others see has changed. */
  #show(tx: Tx, connection: Connection, status: string): void {
    if (connection.status === status) return;
    showInInstance(tx, connection, status);
    emitChange(tx, 'updated', 'connection', connection, { status });
  }

  /** Ends an authorization that nobody finished: `pending → not_connected`. */
  async #abandon(connectionId: string): Promise<void> {
    const { changes, credentials, sql } = this.#deps;
    const [found] = await sql.query<{ toolInstanceId: string }>(
      statement`select tool_instance_id as "toolInstanceId" from connections where id = ${connectionId}`,
    );
    if (!found) return;
    await changes.run(systemCaller('refresh_connections'), async (tx) => {
      await tx.lock('tool_instances', { id: found.toolInstanceId }, 'no key update');
      const connection = await tx.lock('connections', { id: connectionId }, 'update');
      if (connection?.status !== 'pending' || !connection.refreshAt || connection.refreshAt.getTime() > Date.now())
        return;
      const { orgId } = connection;
      const hasCredential = (await credentials.open(tx, orgId, { connectionId })) !== null;
      if (hasCredential) {
        tx.update('connections', { id: connectionId }, { status: 'needs_reauth', refreshAt: null });
        this.#show(tx, connection, 'needs_reauth');
        return;
      }
      tx.remove('connections', { id: connectionId });
      showInInstance(tx, connection, 'not_connected');
      emitChange(tx, 'deleted', 'connection', connection);
    });
  }
}

/** Whether it is not the time for a refresh. */
function waitOf(connection: Connection, reason: RefreshReason, now: number): 'settled' | null {
  const { status, refreshAt, refreshFailures, lastRefreshedAt, expiresAt } = connection;
  const isEarly = refreshAt !== null && refreshAt.getTime() > now;
  if (reason === 'due') return refreshAt === null || isEarly ? 'settled' : null;
  // a dead refresh token stays dead
  if (reason === 'asked') return status === 'needs_reauth' || status === 'pending' ? 'settled' : null;
  // a provider in trouble is left alone until the next try
  if (status === 'needs_reauth' || status === 'pending' || (refreshFailures > 0 && isEarly)) return 'settled';
  if (reason === 'expired') return expiresAt === null || expiresAt.getTime() > now + LOOK_AHEAD_MS ? 'settled' : null;
  if (reason === 'kept' && (expiresAt === null || expiresAt.getTime() > now + KEPT_MS)) return 'settled';
  return lastRefreshedAt && now - lastRefreshedAt.getTime() < FORCED_EVERY_MS ? 'settled' : null;
}

/** An access token that ends within this time counts as ended: a call with it takes some time. */
export const LOOK_AHEAD_MS = 10_000;

/** Whoever takes an access token along gets one that lives for longer than this, if the provider gives such. */
export const KEPT_MS = 300_000;

/** Nothing is asked on behalf of a workspace or an organization that was deleted. */
async function isDeleted(tx: Tx, { workspaceId }: Connection): Promise<boolean> {
  const rows = await tx.query({ text: `select 1 where ${isLivePlace('$1')}`, values: [workspaceId] });
  return rows.length === 0;
}
