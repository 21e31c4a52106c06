import { findRow, findRows, type QueryRunner } from '../../data/find-row.ts';
import { statement } from '../../data/writes.ts';
import type { Tool, ToolInstance } from '../../generated/prisma/client.ts';
import { ApiError, conflict } from '../../kernel/errors.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { clientSecretIn } from '../../platform/outbound/client-secret.ts';
import { VaultFault } from '../../vault/secrets/envelope.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { type OAuthService, oauthServiceOf } from '../tools/tool-shapes.ts';
import type { OAuthClient } from './oauth-provider.ts';

/** A tool instance and its tool: what a connection is for. */
export interface ConnectionTarget {
  instance: ToolInstance;
  tool: Tool;
}

/** An instance of an organization with its tool; `null` if there is none. */
export async function findTarget(db: QueryRunner, orgId: string, instanceId: string): Promise<ConnectionTarget | null> {
  const instance = await findRow(db, 'tool_instances', { orgId, id: instanceId });
  const tool = instance && (await findRow(db, 'tools', { id: instance.toolId }));
  return instance && tool && { instance, tool };
}

/** The same for instances of any organization, by their identifiers. Not scoped: the caller has found them in rows. */
export async function findTargets(
  db: QueryRunner,
  instanceIds: readonly string[],
): Promise<Map<string, ConnectionTarget>> {
  const instances = await findRows(db, 'tool_instances', statement`t.id = any(${[...new Set(instanceIds)]}::text[])`);
  const toolIds = [...new Set(instances.map(({ toolId }) => toolId))];
  const tools = await findRows(db, 'tools', statement`t.id = any(${toolIds}::text[])`);
  const toolOf = new Map(tools.map((tool) => [tool.id, tool]));
  return new Map(
    instances.flatMap((instance): [string, ConnectionTarget][] => {
      const tool = toolOf.get(instance.toolId);
      return tool ? [[instance.id, { instance, tool }]] : [];
    }),
  );
}

/** What callers know the provider of a tool by. */
export const upstreamOf = ({ connectionServiceName, slug }: Tool): string => connectionServiceName ?? slug;

/** The OAuth service of a tool; `null` if it has none. */
export const serviceOf = ({ credentialSchema }: Pick<Tool, 'credentialSchema'>): OAuthService | null =>
  Array.isArray(credentialSchema) ? oauthServiceOf(credentialSchema as object[]) : null;

/** How an instance authenticates at its provider, without the secret. */
export interface ClientReference extends Omit<OAuthClient, 'clientSecret'> {
  instanceId: string;
  clientSecretRef: string | null;
}

/** The OAuth client of an instance; `null` if it has none, or its tool no OAuth service. */
export function clientReferenceIn({ instance, tool }: ConnectionTarget): ClientReference | null {
  const { id, orgId, clientId, clientSecretVaultId } = instance;
  const service = serviceOf(tool);
  if (!service || !clientId) return null;
  return { service, upstream: upstreamOf(tool), orgId, clientId, instanceId: id, clientSecretRef: clientSecretVaultId };
}

/** The same. @throws RESOURCE_CONFLICT `oauth_not_supported`, `oauth_client_missing` */
export function clientReferenceOf(target: ConnectionTarget): ClientReference {
  const found = clientReferenceIn(target);
  if (found) return found;
  const { instance, tool } = target;
  const { id } = instance;
  if (!serviceOf(tool))
    throw conflict('tool_instance', id, 'oauth_not_supported', `The tool '${tool.slug}' has no OAuth service.`);
  throw conflict(
    'tool_instance',
    id,
    'oauth_client_missing',
    `The tool instance '${id}' has no OAuth client: set 'client_id' in its 'connection_credentials'.`,
  );
}

/** @throws RESOURCE_CONFLICT `client_secret_unusable` */
export async function clientOf(vault: Vault, reference: ClientReference): Promise<OAuthClient> {
  const { instanceId, clientSecretRef, ...client } = reference;
  if (clientSecretRef === null) return { ...client, clientSecret: null };
  const unusable = () =>
    conflict(
      'tool_instance',
      instanceId,
      'client_secret_unusable',
      `The client secret of the tool instance '${instanceId}' is missing, disabled or expired.`,
    );
  try {
    const value = await vault.open(systemCaller('connections'), client.orgId, clientSecretRef);
    const secret = clientSecretIn(value);
    if (secret === null) throw unusable();
    return { ...client, clientSecret: secret };
  } catch (error) {
    if (error instanceof VaultFault || error instanceof ApiError) throw unusable();
    throw error;
  }
}
