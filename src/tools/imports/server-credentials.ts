import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import { type ConnectionCredentials, ConnectionUnusable } from '../connections/connection-credentials.ts';
import { findTarget } from '../connections/connection-target.ts';
import type { PlacedCredential } from '../tool-instances/action-request.ts';
import { BEARER, placementOf } from '../tool-instances/sent-credential.ts';
import type { Tool } from '../tools/tool.source.ts';

interface CredentialDeps {
  sql: Sql;
  access: Access;
  connections: ConnectionCredentials;
}

/** The credentials of connections, for servers whose tools are imported again. They go where actions send them. */
export class ServerCredentials {
  readonly #deps: CredentialDeps;

  constructor(deps: CredentialDeps) {
    this.#deps = deps;
  }

  /**
   * What the instance of a tool is connected with, for the server that the tool was imported from.
   * @throws RESOURCE_NOT_FOUND `tool_instance`; FORBIDDEN `connection:use`; RESOURCE_CONFLICT `no_credentials`,
   * `needs_reauth`, `token_expired`; InputError if the tool is of no server
   */
  async of(caller: Caller, { id, orgId, importSource }: Tool, instanceId: string): Promise<PlacedCredential> {
    const { sql, access } = this.#deps;
    const at = ['input', 'toolInstanceId'];
    if (importSource?.kind !== 'mcp') throw invalidInput(at, 'the tool was not imported from an MCP server');
    const target = await findTarget(sql, orgId, instanceId);
    if (target?.tool.id !== id) throw notFound('tool_instance', instanceId);
    const { workspaceId, namespaceId } = target.instance;
    await access.requireWorkspace(caller, orgId, workspaceId, 'connection:use', { namespaceId });
    const found = await this.#found({ orgId, toolInstanceId: instanceId, namespaceId });
    if (found.authType === 'oauth2') return { placement: BEARER, value: found.secret };
    const placement = placementOf(target.tool);
    if (placement.in === 'header') return { placement, value: found.secret };
    throw invalidInput(at, 'its key does not go into a header: give the key itself');
  }

  async #found(use: { orgId: string; toolInstanceId: string; namespaceId: string | null }) {
    const refused = (reason: string, message: string) => conflict('tool_instance', use.toolInstanceId, reason, message);
    try {
      const found = await this.#deps.connections.credentialFor(use);
      if (found) return found;
    } catch (error) {
      if (!(error instanceof ConnectionUnusable)) throw error;
      throw refused(error.code === 'expired' ? 'token_expired' : error.code, error.message);
    }
    throw refused('no_credentials', 'The instance is not connected.');
  }
}
