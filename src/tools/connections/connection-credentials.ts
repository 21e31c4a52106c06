import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import { type ConnectionRefresh, KEPT_MS, LOOK_AHEAD_MS } from './connection-refresh.ts';
import type { ConnectionRefusals } from './connection-refusals.ts';
import type { AuthType } from './connection-state.ts';
import { unknownEndUser } from './end-user.ts';
import { credentialIn } from './stored-credential.ts';

/** What needs a credential: an instance, used in a namespace, for the workspace as a whole, or for an end user. */
export interface CredentialUse {
  orgId: string;
  toolInstanceId: string;
  namespaceId: string | null;
  /** Only the connection of this end user will do, whatever others there are. */
  endUserId?: string | null;
}

/** A credential that can be sent to a provider. */
export interface UsableCredential {
  connectionId: string;
  authType: AuthType;
  /** The API key or the access token. */
  secret: string;
  /** Of the connection. */
  status: string;
}

interface CredentialDeps {
  sql: Sql;
  credentials: Credentials;
  refresh: ConnectionRefresh;
  refusals: ConnectionRefusals;
}

/** A connection exists and has no usable credential now. Code and message are fit for the caller. */
export class ConnectionUnusable extends Error {
  override readonly name = 'ConnectionUnusable';
  readonly code: 'needs_reauth' | 'expired';

  constructor(code: 'needs_reauth' | 'expired', lastError: string | null) {
    const what =
      code === 'needs_reauth'
        ? 'The connection must be authorized again.'
        : 'The access token of the connection has ended and could not be refreshed yet.';
    super(lastError ? `${what} ${lastError}` : what);
    this.code = code;
  }
}

/** A connection with the end of its access token. */
interface StoredConnection {
  id: string;
  authType: AuthType;
  status: string;
  expiresAt: Date | null;
  lastError: string | null;
}

/**
 * The credentials of connections, for the service's own calls. They are never among what resolvers see.
 */
export class ConnectionCredentials {
  readonly #deps: CredentialDeps;

  constructor(deps: CredentialDeps) {
    this.#deps = deps;
  }

  /** The connection of an end user. @throws RESOURCE_NOT_FOUND `unknown_end_user` */
  async demandEndUser(use: CredentialUse & { endUserId: string }): Promise<string> {
    return (await this.#ofEndUser(use, use.endUserId)).id;
  }

  /** What kind of credential an instance would be called with; `null` if it has no connection. Nothing is refreshed. */
  async kindOf(use: CredentialUse): Promise<AuthType | null> {
    return (await this.#rowOf(use))?.authType ?? null;
  }

  /**
   * The credential of an instance: that of the namespace, or else that of the workspace. An access token that has ended
   * is refreshed first, once for all who need it.
   * @returns `null` if there is no connection, or none that was ever finished
   * @throws ConnectionUnusable
   */
  async credentialFor(use: CredentialUse): Promise<UsableCredential | null> {
    const first = await this.#find(use);
    if (!first || isLiving(first.found)) return first && usable(first);
    await this.#deps.refresh.refresh(first.found.id, first.secret, 'expired');
    const second = await this.#find(use);
    if (!second || isLiving(second.found)) return second && usable(second);
    const { status, lastError } = second.found;
    throw new ConnectionUnusable(
      status === 'needs_reauth' || status === 'pending' ? 'needs_reauth' : 'expired',
      lastError,
    );
  }

  /**
   * The credential of an instance for somebody who keeps it for a while: an access token that ends within five minutes
   * is refreshed first. If the provider gives no other, it is used until it ends.
   * @returns as {@link credentialFor} @throws ConnectionUnusable
   */
  async freshFor(use: CredentialUse): Promise<UsableCredential | null> {
    const first = await this.#find(use);
    if (first && !isLiving(first.found, KEPT_MS))
      await this.#deps.refresh.refresh(first.found.id, first.secret, 'kept');
    return this.credentialFor(use);
  }

  /**
   * Calls a provider with the credential of an instance. If it answers 401, the access token is refreshed and the call
   * made once more. The connection shows whether the provider accepts its credential.
   * @returns the last answer; `null` if there is no credential
   * @throws ConnectionUnusable, also if the provider accepts neither the access token nor the refresh token any more;
   * and what `call` throws
   */
  async call<Answer extends { status: number }>(
    use: CredentialUse,
    call: (credential: UsableCredential) => Promise<Answer>,
  ): Promise<Answer | null> {
    const credential = await this.credentialFor(use);
    return credential && this.callWith(use, credential, call);
  }

  /**
   * The same with a credential that was found before.
   * @param isRepeatable whether the call can be made again; otherwise the refreshed token is for the next one
   */
  async callWith<Answer extends { status: number }>(
    use: CredentialUse,
    credential: UsableCredential,
    call: (credential: UsableCredential) => Promise<Answer>,
    isRepeatable = true,
  ): Promise<Answer> {
    const answer = await call(credential);
    if (answer.status !== 401 || credential.authType !== 'oauth2') return this.#told(use, credential, answer);
    await this.#deps.refresh.refresh(credential.connectionId, credential.secret, 'refused');
    const after = await this.#find(use);
    if (after?.secret === credential.secret) {
      const { status, lastError } = after.found;
      if (status === 'needs_reauth') throw new ConnectionUnusable(status, lastError);
      // it may be in trouble, or have refreshed it a moment ago: that says nothing of the connection
      return answer;
    }
    if (!isRepeatable) return answer;
    const renewed = await this.credentialFor(use);
    return renewed ? this.#told(use, renewed, await call(renewed)) : answer;
  }

  /** An answer, of which the connection has been told what it means for its credential. */
  async #told<Answer extends { status: number }>(
    { orgId }: CredentialUse,
    credential: UsableCredential,
    answer: Answer,
  ): Promise<Answer> {
    const { refusals } = this.#deps;
    const isAccepted = answer.status >= 200 && answer.status < 300;
    if (answer.status === 401) await refusals.refused({ orgId, ...credential });
    else if (isAccepted && isRefused(credential)) await refusals.accepted({ orgId, ...credential });
    return answer;
  }

  async #find(use: CredentialUse) {
    const { sql, credentials } = this.#deps;
    const { orgId, endUserId } = use;
    const found = await this.#rowOf(use);
    if (!found) return null;
    const stored = credentialIn(await credentials.open(sql, orgId, { connectionId: found.id }));
    if (!stored) {
      if (endUserId) throw unknownEndUser(use.toolInstanceId);
      return null;
    }
    return { found, secret: 'api_key' in stored ? stored.api_key : stored.access_token };
  }

  #rowOf(use: CredentialUse): Promise<StoredConnection | undefined> {
    return use.endUserId ? this.#ofEndUser(use, use.endUserId) : this.#ofPlace(use);
  }

  /** There is no other connection in its place: whoever names an end user means that one. */
  async #ofEndUser({ orgId, toolInstanceId }: CredentialUse, endUserId: string): Promise<StoredConnection> {
    const [found] = await this.#deps.sql.query<StoredConnection>(statement`
      select t.id, t.auth_type as "authType", t.status, t.expires_at as "expiresAt", t.last_error as "lastError"
      from connections t
      where t.org_id = ${orgId} and t.tool_instance_id = ${toolInstanceId} and t.end_user_id = ${endUserId}`);
    if (!found) throw unknownEndUser(toolInstanceId);
    return found;
  }

  async #ofPlace({ orgId, toolInstanceId, namespaceId }: CredentialUse): Promise<StoredConnection | undefined> {
    // one that was never finished does not hide that of the workspace
    const [found] = await this.#deps.sql.query<StoredConnection>(statement`
      select t.id, t.auth_type as "authType", t.status, t.expires_at as "expiresAt", t.last_error as "lastError"
      from connections t
      where t.org_id = ${orgId} and t.tool_instance_id = ${toolInstanceId} and t.end_user_id is null
        and (t.namespace_id = ${namespaceId} or t.namespace_id is null)
        and exists (select 1 from credentials c where c.connection_id = t.id)
      order by t.namespace_id nulls last limit 1`);
    return found;
  }
}

/** Whether whoever takes a credential along can use it for a while. */
export const isKept = (of: { expiresAt: Date | null }): boolean => isLiving(of, KEPT_MS);

const isLiving = ({ expiresAt }: Pick<StoredConnection, 'expiresAt'>, ms = LOOK_AHEAD_MS): boolean =>
  expiresAt === null || expiresAt.getTime() > Date.now() + ms;

const isRefused = ({ status }: UsableCredential): boolean => status === 'needs_reauth' || status === 'error';

const usable = ({ found, secret }: { found: StoredConnection; secret: string }): UsableCredential => ({
  connectionId: found.id,
  authType: found.authType,
  secret,
  status: found.status,
});
