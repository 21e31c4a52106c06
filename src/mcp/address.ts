import type { FastifyRequest } from 'fastify';
import type { Access } from '../access/access.ts';
import type { Caller } from '../kernel/caller.ts';
import { forbidden, unauthenticated } from '../kernel/errors.ts';
import type { TokenPrincipal } from '../kernel/principal.ts';
import { narrowedTo } from '../kernel/token-grant.ts';
import type { McpRequest } from './tool.ts';
import { type ChosenTools, refused, toolsOfSets } from './tool-sets.ts';

/** A request at `/mcp`, or at `/mcp/w/{workspace}`. */
export type AddressedRequest = FastifyRequest<{ Params: { workspace?: string } }>;

const WORKSPACE_ID = /^[\w-]{1,64}$/;
const FLAGS = new Map<unknown, boolean>([
  [undefined, false],
  ['0', false],
  ['false', false],
  ['1', true],
  ['true', true],
]);

/**
 * Who asks, with which limits. An address that names a workspace opens nothing outside of it: its caller goes on with a
 * token that is restricted to the workspace, so every gate treats it like such a token.
 * @throws AUTHENTICATION_FAILED without a token for programs; INVALID_REQUEST for an option that there is not: who asks
 * for less must not get more; FORBIDDEN for a workspace that the caller does not reach
 */
export async function askedBy(request: AddressedRequest, access: Pick<Access, 'workspaceRole'>): Promise<McpRequest> {
  const { principal } = request.caller;
  if (!principal?.token) throw unauthenticated();
  const { read_only, reveal, tools, workspace, ...others } = request.query as Record<string, unknown>;
  const [isReadOnly, reveals] = [FLAGS.get(read_only), FLAGS.get(reveal)];
  if (isReadOnly === undefined || reveals === undefined || Object.keys(others).length > 0) throw refused(OPTIONS);
  const isOfWorkspace = request.params.workspace !== undefined;
  if (isOfWorkspace && [tools, workspace, reveal].some((option) => option !== undefined)) throw refused(OPTIONS);
  const chosen = chosenTools(tools);
  if (reveals && !chosen?.hasSecrets) throw refused('reveal=1 is an option of tools=secrets.');
  const workspaceId = workspaceOf(workspace);
  const caller = request.caller as Caller;
  const asked = { request, isReadOnly, reveals, chosen, workspaceId };
  if (workspaceId === null) return { ...asked, caller };
  request.caller = await narrowedCaller(caller, principal, workspaceId, access);
  return { ...asked, caller: request.caller as Caller };
}

const OPTIONS =
  'The options of the address are read_only=1, at /mcp also tools=… and workspace=…, and with tools=secrets reveal=1.';

function chosenTools(tools: unknown): ChosenTools | null {
  if (tools === undefined) return null;
  if (typeof tools !== 'string') throw refused('tools=… is given once, such as tools=secrets,members.');
  return toolsOfSets(tools);
}

function workspaceOf(workspace: unknown): string | null {
  if (workspace === undefined) return null;
  if (typeof workspace === 'string' && WORKSPACE_ID.test(workspace)) return workspace;
  throw refused('workspace=… is the id of one workspace.');
}

/** @throws FORBIDDEN, whether or not there is such a workspace */
async function narrowedCaller(
  caller: Caller,
  principal: TokenPrincipal,
  workspaceId: string,
  access: Pick<Access, 'workspaceRole'>,
): Promise<Caller> {
  const token = narrowedTo(principal.token, workspaceId);
  if (!token) throw forbidden('workspace:read');
  const narrow: Caller = { ...caller, principal: { ...principal, token } };
  if (!(await access.workspaceRole(narrow, token.orgId, workspaceId))) throw forbidden('workspace:read');
  return narrow;
}
