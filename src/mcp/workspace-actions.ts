import { createHash } from 'node:crypto';
import type { Tool } from '@modelcontextprotocol/server';
import { type ExecutionResult, parse } from 'graphql';
import type { OwnDocuments } from '../engine/transport/own-documents.ts';
import type { Context } from '../graphql/context.ts';
import { type ActionPart, actionSchema, shortText } from './action-schema.ts';

const INSTANCES = parse(`
  query McpToolInstances($orgId: ID!, $workspaceId: ID!, $after: String) {
    toolInstances(orgId: $orgId, workspaceId: $workspaceId, activeOnly: true, first: 100, after: $after) {
      nodes {
        id name toolName toolSlug authMode hasCredentials connectionStatus configuration credentialFields
        effectiveActionSchemas mcpDescriptionOverride mcpMaxCallsPerTurn
      }
      pageInfo { hasNextPage endCursor }
    }
  }`);
/** So many pages of instances are looked at. */
const MAX_PAGES = 5;

interface Instance {
  id: string;
  name: string;
  toolName: string;
  toolSlug: string;
  authMode: string;
  hasCredentials: boolean;
  connectionStatus: string;
  configuration: ActionPart;
  credentialFields: readonly string[];
  effectiveActionSchemas: readonly (ActionPart & { name: string })[];
  mcpDescriptionOverride: string | null;
  mcpMaxCallsPerTurn: number | null;
}

interface InstancePage {
  toolInstances: { nodes: Instance[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } };
}

/** An action of an instance, as a tool. */
export interface ActionTool {
  tool: Tool;
  instanceId: string;
  action: string;
  isReading: boolean;
  /** Whether somebody must agree to each call. */
  asks: boolean;
  /** How often a model may call the instance in one turn; `null` for as often as it wants. */
  maxCalls: number | null;
}

export interface Workspace {
  orgId: string;
  workspaceId: string;
}

/** The actions of the connected, active instances of a workspace. */
export class WorkspaceActions {
  readonly #documents: OwnDocuments;

  constructor(documents: OwnDocuments) {
    this.#documents = documents;
    documents.add(INSTANCES);
  }

  /** In the order of their names, which do not change while the instance and the action are there. */
  async list(context: Context, workspace: Workspace): Promise<{ tools: ActionTool[] } | { error: ExecutionResult }> {
    const tools: ActionTool[] = [];
    let after: string | null = null;
    for (let page = 0; page < MAX_PAGES; page++) {
      const variables: Record<string, unknown> = { ...workspace, after };
      const result: ExecutionResult = await this.#documents.execute(INSTANCES, context, variables);
      if (result.errors || !result.data) return { error: result };
      const { nodes, pageInfo } = (result.data as unknown as InstancePage).toolInstances;
      tools.push(...nodes.filter(isUsable).flatMap(toolsOf));
      if (!pageInfo.hasNextPage) break;
      after = pageInfo.endCursor;
    }
    return { tools: tools.sort((a, b) => (a.tool.name < b.tool.name ? -1 : 1)) };
  }
}

const UNUSABLE = new Set(['error', 'needs_reauth', 'pending', 'revoked']);

/** Whether an instance has what its calls need. */
const isUsable = ({ authMode, hasCredentials, connectionStatus }: Instance): boolean =>
  authMode === 'none' || (hasCredentials && !UNUSABLE.has(connectionStatus));

function toolsOf(instance: Instance): ActionTool[] {
  const { id, configuration, credentialFields, mcpMaxCallsPerTurn: maxCalls } = instance;
  const known = new Set([...Object.keys(configuration), ...credentialFields]);
  return instance.effectiveActionSchemas.map((action) => {
    const method = typeof action.method === 'string' ? action.method.toUpperCase() : 'GET';
    const isReading = (method === 'GET' || method === 'HEAD') && action.is_destructive !== true;
    const asks = action.requires_confirmation === true;
    const tool: Tool = {
      name: nameOf(instance, action.name),
      title: shortText(`${instance.name}: ${action.name}`, 80),
      description: descriptionOf(instance, action, asks),
      inputSchema: actionSchema(action, known, asks),
      annotations: {
        readOnlyHint: isReading,
        destructiveHint: action.is_destructive === true || method === 'DELETE',
        idempotentHint: isReading || method === 'PUT' || method === 'DELETE',
        openWorldHint: true,
      },
    };
    return { tool, instanceId: id, action: action.name, isReading, asks, maxCalls };
  });
}

const LONGEST_NAME = 64;
const LONGEST_SLUG = 20;
const ID_END = 8;

/** Made of what never changes: the slug of the tool, the id of the instance and the name of the action. */
export function nameOf({ id, toolSlug }: Pick<Instance, 'id' | 'toolSlug'>, action: string): string {
  const plain = (text: string) => text.replaceAll(/[^\w-]/g, '_');
  const start = `${plain(toolSlug).slice(0, LONGEST_SLUG)}_${id.slice(-ID_END)}__`;
  const room = LONGEST_NAME - start.length;
  if (plain(action) === action && action.length <= room) return start + action;
  const digest = createHash('sha256').update(action).digest('hex').slice(0, 6);
  return `${start}${plain(action).slice(0, room - digest.length - 1)}_${digest}`;
}

/** What people of the workspace wrote, and where it is from. */
function descriptionOf(
  { name, toolName, mcpDescriptionOverride, mcpMaxCallsPerTurn: most }: Instance,
  action: ActionPart,
  asks: boolean,
) {
  const parts = [
    shortText(action.description, 300) || `The action ${shortText(action.name, 60)}.`,
    `Through '${shortText(name, 60)}' (${shortText(mcpDescriptionOverride ?? toolName, 200)}).`,
    ...(asks ? ['It asks for a confirmation first.'] : []),
    ...(most === null ? [] : [`At most ${most} calls of '${shortText(name, 60)}' in a turn.`]),
  ];
  return parts.join(' ');
}
