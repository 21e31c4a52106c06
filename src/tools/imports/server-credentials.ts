import type { Access } from '../../access/access.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import { type ConnectionCredentials, ConnectionUnusable } from '../connections/connection-credentials.ts';
import { findTarget } from '../connections/connection-target.ts';
import type { PlacedCredential } from '../tool-instances/action-request.ts';
import { demandRunnable } from '../tool-instances/runnable.ts';
import { BEARER, placementOf } from '../tool-instances/sent-credential.ts';
import type { Tool } from '../tools/tool.reads.ts';
import { oauthServiceOf } from '../tools/tool-shapes.ts';

interface CredentialDeps {
  sql: Sql;
  access: Access;
  connections: ConnectionCredentials;
  activity: ActivityRecorder;
}

/** The credentials of connections, for servers whose tools are imported again. They go where actions send them. */
export class ServerCredentials {
  readonly #deps: CredentialDeps;

  constructor(deps: CredentialDeps) {
    this.#deps = deps;
  }

  /**
   * What the instance of a tool is connected with, for the server that the tool was imported from. It is recorded which
   * connection that is.
   * @throws RESOURCE_NOT_FOUND `tool_instance`; FORBIDDEN `connection:use`; RESOURCE_CONFLICT `instance_inactive`,
   * `tool_disabled`, `no_credentials`, `needs_reauth`, `token_expired`; InputError if the tool is of no server, or has
   * become one of another
   */
  async of(caller: Caller, tool: Tool, instanceId: string): Promise<PlacedCredential> {
    const { sql, access, activity } = this.#deps;
    const { id, orgId, importSource } = tool;
    const at = ['input', 'toolInstanceId'];
    if (importSource?.kind !== 'mcp') throw invalidInput(at, 'the tool was not imported from an MCP server');
    if (!isSentTo(tool, importSource.url))
      throw invalidInput(at, 'the tool sends its credentials elsewhere than to the server that it was imported from');
    const target = await findTarget(sql, orgId, instanceId);
    if (target?.tool.id !== id) throw notFound('tool_instance', instanceId);
    const { workspaceId, namespaceId } = target.instance;
    await access.requireWorkspace(caller, orgId, workspaceId, 'connection:use', { namespaceId });
    demandRunnable(target.instance, target.tool);
    const found = await this.#found({ orgId, toolInstanceId: instanceId, namespaceId });
    const placement = found.authType === 'oauth2' ? BEARER : placementOf(target.tool);
    if (placement.in !== 'header') throw invalidInput(at, 'its key does not go into a header: give the key itself');
    activity.record(
      caller,
      {
        action: 'view',
        resourceType: 'connection',
        resourceId: found.connectionId,
        orgId,
        workspaceId,
        namespaceId,
        metadata: { tool_id: id, tool_instance_id: instanceId },
      },
      { statusCode: caller.request.successStatus },
    );
    return { placement, value: found.secret };
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

/**
 * Whether a tool sends credentials to an address: by an action, or, while it has none, with tokens that are made for
 * there. A tool can be changed after its import, and people connect what it is then.
 */
function isSentTo({ actionSchemas, credentialSchema }: Tool, address: string | null): boolean {
  if (address === null) return false;
  if (actionSchemas.length > 0) return actionSchemas.some(({ url_template: url }) => url === address);
  const resource = oauthServiceOf(credentialSchema)?.resource;
  return !!resource && URL.canParse(resource) && new URL(resource).origin === new URL(address).origin;
}
