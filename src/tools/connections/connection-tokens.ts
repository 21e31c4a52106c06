import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import { findRow } from '../../data/find-row.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, notFound } from '../../kernel/errors.ts';
import { givenReason, isReason, REASON_DEMANDED, reasonMissing } from '../../tenancy/reveal-reasons.ts';
import { demandRunnable } from '../tool-instances/runnable.ts';
import type { ToolInstanceService } from '../tool-instances/tool-instance.service.ts';
import { type CallPlace, namespaceOf } from './call-place.ts';
import {
  type ConnectionCredentials,
  ConnectionUnusable,
  type CredentialUse,
  type UsableCredential,
} from './connection-credentials.ts';
import type { AuthType } from './connection-state.ts';

/** Tokens of one user per minute: whoever runs steps keeps a token until it ends. */
const PER_MINUTE = 120;

/** A credential that leaves the service. */
export interface ConnectionToken {
  orgId: string;
  accessToken: string;
  /** `bearer` for an access token; `null` for a key, which goes where the tool says. */
  tokenType: string | null;
  authType: AuthType;
  expiresAt: Date | null;
  scopes: string[];
  status: string;
  connectionId: string;
  toolInstanceId: string;
}

/** For whom a credential is taken, and why. */
export interface TokenUse {
  endUserId?: string | null | undefined;
  reason?: string | null | undefined;
}

interface TokenDeps extends ServiceDeps {
  toolInstances: ToolInstanceService;
  connections: ConnectionCredentials;
}

/**
 * Hands the credentials of connections to whoever runs steps. Each hand-over is recorded before the credential leaves:
 * one that could not be recorded is not shown.
 */
export class ConnectionTokens {
  readonly #deps: TokenDeps;
  readonly #byUser: Budget;

  constructor(deps: TokenDeps) {
    this.#deps = deps;
    this.#byUser = deps.budgets.of('connection_tokens', PER_MINUTE, 60);
  }

  /**
   * The credential of an instance, or of an end user there, with an access token that lives five minutes longer if the
   * provider gives one.
   * @throws RESOURCE_NOT_FOUND `tool_instance`, `unknown_end_user`, or `connection` if there is none; RESOURCE_CONFLICT
   * `instance_inactive`, `tool_disabled`, `needs_reauth`, `token_expired`; RATE_LIMIT_EXCEEDED; InputError at
   * `reason` if the organization demands one
   */
  async issue(
    caller: Caller,
    place: CallPlace,
    instanceId: string,
    { endUserId, reason }: TokenUse = {},
  ): Promise<ConnectionToken> {
    const { toolInstances, sql, changes, access } = this.#deps;
    const instance = await toolInstances.reads.get(noCache, place, instanceId);
    const { orgId, workspaceId } = instance;
    const namespaceId = namespaceOf(place, instance);
    await this.#byUser.demand(caller.principal.userId);
    const tool = await findRow(sql, 'tools', { id: instance.toolId });
    if (!tool) throw new Error(`A foreign key says that the tool '${instance.toolId}' exists.`);
    demandRunnable(instance, tool);
    const found = await this.#fresh({ orgId, toolInstanceId: instanceId, namespaceId, endUserId });
    const connection = found && (await findRow(sql, 'connections', { id: found.connectionId, orgId }));
    if (!found || !connection) throw notFound('connection', instanceId);
    // a token for a namespace may have actions run with the connection of the workspace, and not take it out
    const { namespaceId: of } = connection;
    await access.requireWorkspace(caller, orgId, workspaceId, 'connection:use', { namespaceId: of });
    await changes.run(caller, async (tx) => {
      // asked with the record, so that a demand holds from its commit on
      if (!isReason(reason) && (await tx.query({ text: REASON_DEMANDED, values: [orgId] })).length > 0)
        throw reasonMissing();
      tx.audit({
        action: 'reveal',
        resourceType: 'connection',
        resourceId: connection.id,
        orgId,
        workspaceId,
        namespaceId: connection.namespaceId,
        metadata: { tool_instance_id: instanceId, auth_type: found.authType, ...givenReason(reason) },
      });
    });
    return {
      orgId,
      accessToken: found.secret,
      tokenType: found.authType === 'oauth2' ? 'bearer' : null,
      authType: found.authType,
      expiresAt: connection.expiresAt,
      scopes: connection.scopes,
      status: connection.status,
      connectionId: connection.id,
      toolInstanceId: instanceId,
    };
  }

  async #fresh(use: CredentialUse): Promise<UsableCredential | null> {
    try {
      return await this.#deps.connections.freshFor(use);
    } catch (error) {
      if (!(error instanceof ConnectionUnusable)) throw error;
      const reason = error.code === 'expired' ? 'token_expired' : error.code;
      throw conflict('tool_instance', use.toolInstanceId, reason, error.message);
    }
  }
}
