import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import { findRow } from '../../data/find-row.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { type Connection, Prisma, type Tool, type ToolInstance } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, NamespacePlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { keyFieldsOf } from '../tools/tool-shapes.ts';
import { connected, showInInstance } from './connection-changes.ts';
import type { ConnectionRefresh } from './connection-refresh.ts';
import type { ConnectionRemoval } from './connection-removal.ts';
import { type AuthType, PENDING_SECONDS } from './connection-state.ts';
import { type ConnectionTarget, clientOf, clientReferenceOf, findTarget, serviceOf } from './connection-target.ts';
import { issuerFault } from './issuer.ts';
import { type OAuthProvider, ProviderRefusal } from './oauth-provider.ts';
import { isOfOwnClient, newState, type OAuthStates } from './oauth-states.ts';
import { returnOf } from './own-client.ts';
import { keyOf, type StoredCredential, tokensOf } from './stored-credential.ts';

/** Where a connection applies: in a namespace, or wherever in the workspace a namespace has none of its own. */
type ConnectionPlace = Checked<WorkspacePlace> | Checked<NamespacePlace>;

/** The connections of a tool instance, for its workspace and for namespaces. */
type InstancePlace = WorkspacePlace & { toolInstanceId: string };

/** A started authorization. */
export interface InitiatedConnection {
  orgId: string;
  authorizationUrl: string;
  state: string;
  /** Seconds. */
  expiresIn: number;
  toolInstanceId: string;
  connectionId: string;
}

/** Columns that only the refresh knows. */
type Hidden = 'refreshAt' | 'refreshFailures' | 'refreshClaim' | 'claimedUntil';
const hidden: readonly string[] = ['refreshAt', 'refreshFailures', 'refreshClaim', 'claimedUntil'] satisfies Hidden[];
export const connectionColumns = columnsOf(
  Object.values(Prisma.ConnectionScalarFieldEnum).filter((name) => !hidden.includes(name)) as Exclude<
    Prisma.ConnectionScalarFieldEnum,
    Hidden
  >[],
);

/** A connection as callers see it. */
export type ConnectionRow = Omit<Connection, Hidden>;

interface ConnectionDeps extends ServiceDeps {
  credentials: Credentials;
  vault: Vault;
  states: OAuthStates;
  provider: OAuthProvider;
  removal: ConnectionRemoval;
  refresh: ConnectionRefresh;
  publicUrl: () => string;
}

/** Exchanges of one user per minute (defaults §0.5), and authorizations that one may start. */
const PER_MINUTE = 30;
/** Refreshes of one connection that users ask for: its provider is asked each time. */
const REFRESHES_PER_MINUTE = 6;

/**
 * Connections: what tool instances use at providers, each for a namespace or for a whole workspace. A tool instance has
 * at most one in each of these places. Members may connect the instances that they created, editors all.
 */
export class ConnectionService {
  /** Those of a workspace, in its namespaces too. */
  readonly reads: Reads<ConnectionRow, WorkspacePlace>;
  /** Those of a namespace. */
  readonly inNamespace: Reads<ConnectionRow, NamespacePlace>;
  /** Those of a tool instance. */
  readonly ofInstance: Reads<ConnectionRow, InstancePlace>;
  readonly #deps: ConnectionDeps;
  readonly #exchanges: Budget;
  readonly #starts: Budget;
  readonly #refreshes: Budget;

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#exchanges = deps.budgets.of('connection_exchanges', PER_MINUTE, 60);
    this.#starts = deps.budgets.of('connection_starts', PER_MINUTE, 60);
    this.#refreshes = deps.budgets.of('connection_refreshes', REFRESHES_PER_MINUTE, 60);
    // end users may have thousands: they are lists of their own
    const source = {
      kind: 'connection',
      from: 'connections',
      columns: connectionColumns,
      listed: ['t.end_user_id is null'],
    } as const;
    this.reads = new Reads(deps, { ...source, below: ['orgId', 'workspaceId'] });
    this.inNamespace = new Reads(deps, {
      ...source,
      name: 'connections of a namespace',
      below: ['orgId', 'workspaceId', 'namespaceId'],
    });
    this.ofInstance = new Reads(deps, {
      ...source,
      name: 'connections of a tool instance',
      below: ['orgId', 'workspaceId', 'toolInstanceId'],
    });
  }

  /**
   * Starts an authorization at the provider of an instance. A connection that is there keeps working until the exchange
   * has succeeded.
   * @throws RESOURCE_NOT_FOUND `tool_instance`; FORBIDDEN for an instance of others; RESOURCE_CONFLICT if the tool has
   * no OAuth service or the instance no client; RATE_LIMIT_EXCEEDED
   */
  async initiate(caller: Caller, place: ConnectionPlace, instanceId: string): Promise<InitiatedConnection> {
    const { states, provider, changes, publicUrl } = this.#deps;
    const { userId } = caller.principal;
    const target = await this.#target(caller, place, instanceId);
    const client = clientReferenceOf(target);
    await this.#starts.demand(userId);
    const { instance } = target;
    const { redirectUri, isOwnClient } = returnOf(publicUrl(), client.clientId, instance.callbackUrl);
    const [state, verifier] = [newState({ isOwnClient, isOfEndUser: false }), provider.newVerifier()];
    const scopes = instance.scopesOverride.length > 0 ? instance.scopesOverride : (client.service.scopes ?? []);
    const authorizationUrl = await provider.authorizationUrl(
      { ...client, clientSecret: null },
      { redirectUri, state, verifier, scopes },
    );
    const connectionId = await changes.run(caller, async (tx) => {
      const { locked, connection } = await lockPlace(tx, place, instanceId);
      const row = connection ?? newConnection(caller, place, locked, 'oauth2');
      const pending = { status: 'pending', refreshAt: new Date(Date.now() + PENDING_SECONDS * 1_000) };
      if (!connection) tx.insert('connections', { ...row, ...pending });
      else if (connection.status === 'needs_reauth' || connection.status === 'pending')
        tx.update('connections', { id: row.id }, pending);
      if (!connection || connection.status === 'needs_reauth') showInInstance(tx, row, 'pending');
      const { orgId, workspaceId, namespaceId } = row;
      const begun = { orgId, workspaceId, namespaceId, toolInstanceId: instanceId, connectionId: row.id };
      states.begin(tx, state, verifier, { ...begun, userId, redirectUri, scopes: [...scopes] });
      tx.audit({ ...recordOf(row), action: 'connect', metadata: { tool_instance_id: instanceId, step: 'initiate' } });
      if (!connection) emitChange(tx, 'created', 'connection', row);
      else if (connection.status === 'needs_reauth') emitChange(tx, 'updated', 'connection', row);
      return row.id;
    });
    return {
      orgId: place.orgId,
      authorizationUrl,
      state,
      expiresIn: PENDING_SECONDS,
      toolInstanceId: instanceId,
      connectionId,
    };
  }

  /**
   * Finishes an authorization: exchanges the code at the provider and stores the tokens. The state is used up by the
   * first try, whatever the provider answers.
   * @param iss who the provider says that it is (RFC 9207)
   * @throws InputError at `state`, `code` or `iss`; FORBIDDEN if the user may not connect the instance any more;
   * RATE_LIMIT_EXCEEDED; UPSTREAM_ERROR, UPSTREAM_TIMEOUT; RESOURCE_NOT_FOUND if the connection was deleted meanwhile
   */
  async exchange(caller: Caller, code: string, state: string, iss: string | null): Promise<ConnectionRow> {
    const { states, provider, changes, access, sql, vault } = this.#deps;
    const { userId } = caller.principal;
    await this.#exchanges.demand(userId);
    const begun = await states.find(sql, state, userId);
    const { orgId, workspaceId, namespaceId, toolInstanceId, connectionId } = begun;
    const permission = 'connection:create';
    const { grant } = await access.requireWorkspace(caller, orgId, workspaceId, permission, { namespaceId });
    const target = await findTarget(sql, orgId, toolInstanceId);
    if (!target) throw notFound('tool_instance', toolInstanceId);
    access.demandCovers(caller, grant, permission, target.instance.createdBy);
    const client = await clientOf(vault, clientReferenceOf(target));
    const fault = issuerFault(client.service, iss, isOfOwnClient(state));
    if (fault !== null) throw invalidInput(['iss'], fault);
    await changes.run(caller, (tx) => states.consume(tx, begun));
    const { redirectUri } = begun;
    const granted = await provider
      .exchange(client, { code, redirectUri, verifier: states.verifierOf(begun) })
      .catch((error: unknown) => {
        throw callerErrorOf(error);
      });
    const accountLabel = await provider.accountLabelOf(client, granted);
    const set = { ...connected('oauth2', begun.scopes, { ...granted, accountLabel }), requestedScopes: begun.scopes };
    return changes.run(caller, async (tx) => {
      const { connection } = await lockPlace(tx, { orgId, workspaceId, namespaceId }, toolInstanceId);
      if (connection?.id !== connectionId) throw notFound('connection', connectionId);
      await this.#store(tx, caller, connection, tokensOf(granted));
      tx.audit({ ...recordOf(connection), action: 'connect', metadata: { tool_instance_id: toolInstanceId } });
      emitChange(tx, 'updated', 'connection', connection);
      return tx.change('connections', { id: connectionId }, set, () => notFound('connection', connectionId));
    });
  }

  /**
   * Connects an instance with an API key, in place of the connection that is there. Tokens that it had are revoked in
   * the background.
   * @throws as {@link initiate}, without the client
   */
  async createByKey(
    caller: Caller,
    place: ConnectionPlace,
    instanceId: string,
    apiKey: string,
  ): Promise<ConnectionRow> {
    const { tool } = await this.#target(caller, place, instanceId);
    demandKeys(tool, instanceId);
    return this.#deps.changes.run(caller, async (tx) => {
      const { locked, connection } = await lockPlace(tx, place, instanceId);
      const row = connection ?? newConnection(caller, place, locked, 'api_key');
      const grant = { lifetime: null, refreshToken: null, scopes: null, accountLabel: null };
      const set = { ...connected('api_key', [], grant), requestedScopes: [] };
      tx.audit({ ...recordOf(row), action: 'connect', metadata: { tool_instance_id: instanceId } });
      emitChange(tx, connection ? 'updated' : 'created', 'connection', row);
      if (connection) {
        await this.#deps.credentials.prepare(tx);
        await this.#deps.removal.replaced(tx, connection);
        await this.#store(tx, caller, row, keyOf(apiKey));
        return tx.change('connections', { id: row.id }, set, () => notFound('connection', row.id));
      }
      const made = tx.create('connections', { ...row, ...set });
      await this.#store(tx, caller, row, keyOf(apiKey));
      return made;
    });
  }

  /**
   * Refreshes the access token of a connection now, together with whatever refreshes it at that moment. A refusal of
   * the provider is no error: the connection says it.
   * @returns the connection as it is afterwards
   * @throws RESOURCE_NOT_FOUND `tool_instance`, `connection`; FORBIDDEN for an instance of others; RATE_LIMIT_EXCEEDED
   */
  async refresh(caller: Caller, place: ConnectionPlace, instanceId: string): Promise<ConnectionRow> {
    const { sql, refresh } = this.#deps;
    await this.#target(caller, place, instanceId);
    const key = keyOfPlace(place, instanceId);
    const found = await findRow(sql, 'connections', key);
    if (!found) throw notFound('connection', instanceId);
    await this.#refreshes.demand(found.id);
    await refresh.refreshNow(found);
    const refreshed = await findRow(sql, 'connections', key);
    if (!refreshed) throw notFound('connection', instanceId);
    return refreshed;
  }

  /**
   * Removes the connection of an instance in a place. Its tokens are revoked in the background, if the provider can:
   * a provider that does not answer keeps nothing here.
   * @throws RESOURCE_NOT_FOUND with the instance; FORBIDDEN for a connection of others
   */
  async delete<Place extends ConnectionPlace>(
    caller: Caller,
    place: Place,
    instanceId: string,
  ): Promise<Deleted<Place & { toolInstanceId: string }>> {
    const { sql, access, changes, removal } = this.#deps;
    const { permission, grant } = place.asked;
    const key = keyOfPlace(place, instanceId);
    const found = await findRow(sql, 'connections', key);
    if (!found) throw notFound('connection', instanceId);
    access.demandCovers(caller, grant, permission, found.createdBy);
    return changes.run(caller, async (tx) => {
      await tx.lock('tool_instances', { id: instanceId }, 'no key update');
      await tx.expectVersion({ table: 'connections', key: { id: found.id } });
      const connection = await tx.lock('connections', key, 'update', () => notFound('connection', instanceId));
      await removal.remove(tx, [connection]);
      showInInstance(tx, connection, 'not_connected');
      tx.audit({ ...recordOf(connection), action: 'disconnect', metadata: { tool_instance_id: instanceId } });
      return { ...place, id: connection.id, toolInstanceId: instanceId };
    });
  }

  /** @throws RESOURCE_NOT_FOUND `tool_instance`; FORBIDDEN if the caller may connect only their own */
  async #target(caller: Caller, place: ConnectionPlace, instanceId: string): Promise<ConnectionTarget> {
    const target = await findTarget(this.#deps.sql, place.orgId, instanceId);
    if (!target || !belongsTo(target.instance, place)) throw notFound('tool_instance', instanceId);
    const { permission, grant } = place.asked;
    this.#deps.access.demandCovers(caller, grant, permission, target.instance.createdBy);
    return target;
  }

  /** Stores what the caller gives, whose credential it is from then on. */
  async #store(tx: Tx, caller: Caller, connection: PlacedConnection, value: StoredCredential): Promise<void> {
    const { id, orgId } = connection;
    await this.#deps.credentials.put(tx, orgId, { connectionId: id }, value, { setBy: caller.principal.userId });
    showInInstance(tx, connection, 'connected');
  }
}

/**
 * What the credentials of a tool say comes first: a tool that describes a key takes one, and one that knows OAuth only
 * takes none. Without a description, `supports_connection` decides.
 * @throws RESOURCE_CONFLICT `api_key_not_supported`, `connection_not_supported`
 */
export function demandKeys({ slug, supportsConnection, credentialSchema }: Tool, instanceId: string): void {
  if (keyFieldsOf(credentialSchema as object[]).length > 0) return;
  if (serviceOf({ credentialSchema }))
    throw conflict(
      'tool_instance',
      instanceId,
      'api_key_not_supported',
      `The tool '${slug}' does not accept an API key: sign in to its OAuth service instead.`,
    );
  if (!supportsConnection)
    throw conflict(
      'tool_instance',
      instanceId,
      'connection_not_supported',
      `The tool '${slug}' does not use connections.`,
    );
}

type PlacedConnection = Pick<
  Connection,
  'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'toolInstanceId' | 'endUserId'
>;

const namespaceOf = (place: WorkspacePlace & { namespaceId?: string | null }): string | null =>
  place.namespaceId ?? null;

const keyOfPlace = (place: WorkspacePlace & { namespaceId?: string | null }, toolInstanceId: string) => ({
  orgId: place.orgId,
  workspaceId: place.workspaceId,
  namespaceId: namespaceOf(place),
  toolInstanceId,
  endUserId: null,
});

/** Whether an instance can be used in a place: one of a namespace only there, and for the whole workspace. */
function belongsTo(instance: ToolInstance, place: WorkspacePlace & { namespaceId?: string | null }): boolean {
  const namespaceId = namespaceOf(place);
  return (
    instance.workspaceId === place.workspaceId &&
    (namespaceId === null || instance.namespaceId === null || instance.namespaceId === namespaceId)
  );
}

/**
 * Locks an instance, so that it gets one connection for a place, and the connection that is there. The namespace stays.
 * @throws RESOURCE_NOT_FOUND `namespace`, `tool_instance`
 */
async function lockPlace(tx: Tx, place: WorkspacePlace & { namespaceId?: string | null }, instanceId: string) {
  const { orgId, workspaceId } = place;
  const namespaceId = namespaceOf(place);
  if (namespaceId !== null)
    tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
  const locked = await tx.lock('tool_instances', { orgId, workspaceId, id: instanceId }, 'no key update', () =>
    notFound('tool_instance', instanceId),
  );
  const connection = await tx.lock('connections', keyOfPlace(place, instanceId), 'no key update');
  return { locked, connection };
}

const newConnection = (
  caller: Caller,
  place: WorkspacePlace & { namespaceId?: string | null },
  { id, toolId }: ToolInstance,
  authType: AuthType,
) => ({
  id: newId('connection'),
  ...keyOfPlace(place, id),
  toolId,
  authType,
  createdBy: caller.principal.userId,
});

const recordOf = ({ id, orgId, workspaceId }: PlacedConnection) =>
  ({ resourceType: 'connection', resourceId: id, orgId, workspaceId }) as const;

/** A code that is not valid is the caller's; everything else is between this service and the provider. */
function callerErrorOf(error: unknown): unknown {
  if (!(error instanceof ProviderRefusal)) return error;
  if (error.kind !== 'invalid_grant') return error.toApiError();
  return invalidInput(['code'], 'the provider does not accept the code: start again');
}
