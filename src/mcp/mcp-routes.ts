import type { ClientCapabilities, Server, ServerContext } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Access } from '../access/access.ts';
import type { CallerLimit } from '../access/caller-limit.ts';
import type { Sql } from '../data/sql.ts';
import type { PersistedDocuments } from '../engine/path/persisted-documents.ts';
import { jsonBounds } from '../engine/transport/bounds.ts';
import type { GraphQLEndpoint } from '../engine/transport/endpoint.ts';
import type { OwnDocuments } from '../engine/transport/own-documents.ts';
import type { Context } from '../graphql/context.ts';
import type { Caller } from '../kernel/caller.ts';
import { ApiError, unauthenticated } from '../kernel/errors.ts';
import { isJsonObject } from '../kernel/json-object.ts';
import { overloadOf } from '../kernel/json-shape.ts';
import { loadedOnce } from '../kernel/loaded-once.ts';
import type { Seal } from '../platform/keys/seal.ts';
import { McpConfirmations } from './confirmations.ts';
import { EventPages } from './event-pages.ts';
import { PlatformTools } from './platform-tools.ts';
import { SchemaSearch } from './schema-search.ts';
import { type RestOperation, SetOperations } from './set-operations.ts';
import { SetTools } from './set-tools.ts';
import type { McpCall, McpLibrary, McpRequest, ToolFace } from './tool.ts';
import { errorResult, internalError, type ShownError } from './tool-results.ts';
import { operationsOfSets, refused, type SetOptions } from './tool-sets.ts';
import { TurnLimits } from './turn-limits.ts';
import { WorkspaceActions } from './workspace-actions.ts';
import { addWorkspaceTools, WorkspaceTools } from './workspace-tools.ts';

interface McpOptions {
  schema: GraphQLSchema;
  endpoint: GraphQLEndpoint;
  persisted: PersistedDocuments;
  documents: OwnDocuments;
  contextOf: (request: FastifyRequest) => Context;
  sql: Sql;
  access: Access;
  /** Those of the REST API. */
  operations: readonly RestOperation[];
  /** The inputs of one of them, as JSON Schemas by their names. */
  inputOf: (name: string) => Record<string, Record<string, unknown>>;
  seal: Seal;
  limit: Pick<CallerLimit, 'demandRest'>;
  version: string;
  publicUrl: () => string;
  corsOrigins: readonly string[];
  bodyLimitBytes: number;
  onFault: (error: unknown, traceId: string) => void;
}

/** A document with its variables, and what the protocol adds. */
const MAX_BODY = 1024 * 1024;
const WORKSPACE = /^\/mcp\/w\/[\w-]{1,64}$/;
const METHOD_NOT_FOUND = -32601;
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
/** How long a client may keep a list. */
const LIST_TTL_MS = 60_000;

function withoutSecrets(context: Context): Context {
  context.hidesSecrets = true;
  return context;
}

type ForWorkspace = FastifyRequest<{ Params: { workspace?: string } }>;

/** Serves the Model Context Protocol at `/mcp`, and tools of a workspace at `/mcp/w/{workspace}` (decision 74). */
export function addMcp(server: FastifyInstance, options: McpOptions): void {
  const routes = new McpRoutes(options);
  const bodyLimit = Math.min(MAX_BODY, options.bodyLimitBytes);
  void server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    const handler = (request: FastifyRequest, reply: FastifyReply) => routes.answer(request as ForWorkspace, reply);
    for (const url of ['/mcp', '/mcp/w/:workspace']) scope.route({ method: 'POST', url, bodyLimit, handler });
  });
}

class McpRoutes {
  readonly #options: McpOptions;
  readonly #platform: PlatformTools;
  readonly #actions: WorkspaceActions;
  readonly #sets: SetOperations;
  readonly #turns = new TurnLimits();
  /** What each request of the protocol is about, by the request that the library gets. */
  readonly #requests = new WeakMap<object, { face: ToolFace; asked: McpRequest }>();
  /** The library takes a while to load, and is not needed before a client comes. */
  readonly #loaded = loadedOnce(async () => {
    const library: McpLibrary = await import('@modelcontextprotocol/server');
    const serverFor: Parameters<McpLibrary['createMcpHandler']>[0] = ({ era, requestInfo }) =>
      this.#serverFor(library, era, requestInfo);
    return library.createMcpHandler(serverFor, { maxSubscriptions: 0, keepAliveMs: 0 });
  });

  constructor(given: McpOptions) {
    // what a model has read, its provider has: it sees no secret that somebody wrote into free-form data
    const contextOf = (request: FastifyRequest) => withoutSecrets(given.contextOf(request));
    const options = { ...given, contextOf };
    this.#options = options;
    const { schema, documents, seal, sql, limit } = options;
    addWorkspaceTools(documents);
    this.#sets = new SetOperations(schema, options.operations, options.inputOf);
    this.#actions = new WorkspaceActions(documents, limit);
    this.#platform = new PlatformTools({
      ...options,
      search: new SchemaSearch(schema),
      events: new EventPages(documents),
      confirmations: new McpConfirmations(seal, sql),
    });
  }

  async answer(request: ForWorkspace, reply: FastifyReply): Promise<FastifyReply> {
    demandSpelling(request);
    this.#demandOrigin(request);
    const asked = askedBy(request);
    const body = messageIn(request.body);
    if ('error' in body) return reply.code(400).send(rpcError(body.error, body.message));
    // streams are for events, which have a tool here
    if (body.message.method === 'subscriptions/listen')
      return reply.code(404).send(rpcError(METHOD_NOT_FOUND, 'There are no subscriptions.', body.message.id));
    const handler = await this.#loaded();
    const passed = new Request('http://localhost/mcp', { method: 'POST', headers: headersOf(request) });
    this.#requests.set(passed, { face: this.#faceOf(request, asked), asked });
    const answer = await handler.fetch(passed, { parsedBody: body.message });
    const text = await answer.text();
    const type = answer.headers.get('content-type');
    if (type) reply.header('content-type', type);
    return reply.code(answer.status).send(text);
  }

  /** @throws FORBIDDEN for a page of another origin: its name may lead to this machine by a trick with DNS */
  #demandOrigin({ headers: { origin } }: FastifyRequest): void {
    if (origin === undefined) return;
    const { corsOrigins, publicUrl } = this.#options;
    const isKnown = corsOrigins.includes('*') || corsOrigins.includes(origin) || origin === new URL(publicUrl()).origin;
    if (!isKnown)
      throw new ApiError('FORBIDDEN', { reason: 'origin' }, 'Pages of this origin may not call the service.');
  }

  #faceOf({ params: { workspace } }: ForWorkspace, { sets }: McpRequest): ToolFace {
    const { access } = this.#options;
    if (sets) return new SetTools({ ...sets, made: this.#sets, platform: this.#platform, access });
    if (workspace === undefined) return this.#platform;
    return new WorkspaceTools({
      ...this.#options,
      workspaceId: workspace,
      actions: this.#actions,
      turns: this.#turns,
      refuse: (error, traceId) => new ListRefusal(error, traceId),
    });
  }

  #serverFor(library: McpLibrary, era: 'legacy' | 'modern', passed: object | undefined): Server {
    const found = passed && this.#requests.get(passed);
    if (!found) throw new Error('The library made up a request.');
    const { face, asked } = found;
    const server = new library.Server(
      { name: 'platform-management-api', version: this.#options.version },
      {
        capabilities: { tools: {} },
        instructions: face.instructions,
        inputRequired: { legacyShim: false },
        cacheHints: { 'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'private' } },
      },
    );
    server.setRequestHandler('tools/list', () => this.#list(library, face, asked));
    server.setRequestHandler('tools/call', ({ params: { name, arguments: args } }, context: ServerContext) => {
      const asksUser = era === 'modern' && hasForms(server.getClientCapabilities());
      return this.#call(face, { name, args }, { ...asked, context, asksUser, library });
    });
    return server;
  }

  async #list(library: McpLibrary, face: ToolFace, asked: McpRequest) {
    const { id: traceId } = asked.request;
    try {
      return { tools: await face.list(asked) };
    } catch (error) {
      if (!(error instanceof ListRefusal)) this.#options.onFault(error, traceId);
      const { code, message } = error instanceof ListRefusal ? error.shown : internalError();
      throw new library.ProtocolError(library.ProtocolErrorCode.InvalidParams, message, { code, trace_id: traceId });
    }
  }

  async #call(face: ToolFace, { name, args }: { name: string; args: unknown }, call: McpCall) {
    const { id: traceId } = call.request;
    try {
      const answer = await face.call(name, args, call);
      if (answer) return answer;
      return errorResult({ code: 'RESOURCE_NOT_FOUND', message: 'There is no tool of this name here.' }, traceId);
    } catch (error) {
      this.#options.onFault(error, traceId);
      return errorResult(internalError(), traceId);
    }
  }
}

/** Whether a client shows forms to its user. One that names no way of asking means them. */
function hasForms(capabilities: ClientCapabilities | undefined): boolean {
  const ways = capabilities?.elicitation;
  return ways !== undefined && (ways.form !== undefined || ways.url === undefined);
}

/** Why a list is not shown. */
class ListRefusal extends Error {
  readonly shown: ShownError;

  constructor(shown: ShownError, traceId: string) {
    super(`${shown.code} (${traceId})`);
    this.shown = shown;
  }
}

/**
 * A token is for `/mcp` or for all else, by the path as it was sent: another spelling of the same route would be for
 * the wrong one.
 */
function demandSpelling({ url, params: { workspace } }: ForWorkspace): void {
  const [path = ''] = url.split('?', 1);
  const isPlain = workspace === undefined ? path === '/mcp' : WORKSPACE.test(path);
  if (!isPlain) throw new ApiError('RESOURCE_NOT_FOUND', { resource_type: 'route' }, 'There is no such route.');
}

const READ_ONLY = new Map<unknown, boolean>([
  [undefined, false],
  ['0', false],
  ['false', false],
  ['1', true],
  ['true', true],
]);

/**
 * Who asks, with which limits.
 * @throws AUTHENTICATION_FAILED without a token for programs; INVALID_REQUEST for an option that there is not: who asks
 * for less must not get more
 */
function askedBy(request: ForWorkspace): McpRequest {
  const { caller, query } = request;
  if (!caller.principal?.token) throw unauthenticated();
  const { read_only: given, tools, workspace, ...others } = query as Record<string, unknown>;
  const isReadOnly = READ_ONLY.get(given);
  if (isReadOnly === undefined || Object.keys(others).length > 0)
    throw refused('The options of the address are read_only=1, and at /mcp also tools=… and workspace=….');
  const sets = request.params.workspace === undefined ? setsOf(tools, workspace) : null;
  if (!sets && (tools !== undefined || workspace !== undefined))
    throw refused('Sets of tools are at /mcp, and workspace=… is an option of them.');
  return { request, caller: caller as Caller, isReadOnly, sets };
}

function setsOf(tools: unknown, workspace: unknown): SetOptions | null {
  if (tools === undefined) return null;
  const isWorkspace = typeof workspace === 'string' && /^[\w-]{1,64}$/.test(workspace);
  if (typeof tools !== 'string' || (workspace !== undefined && !isWorkspace))
    throw refused('tools=… and workspace=… are given once, such as tools=secrets,members.');
  return { operations: operationsOfSets(tools), workspaceId: isWorkspace ? workspace : null };
}

type RpcMessage = Record<string, unknown>;

/** The message of a request, of which there is one: batches are of former revisions. */
function messageIn(text: unknown): { message: RpcMessage } | { error: number; message: string } {
  const body = typeof text === 'string' ? text : '';
  if (overloadOf(body, jsonBounds)) return { error: INVALID_REQUEST, message: 'The message has too many values.' };
  try {
    const message: unknown = JSON.parse(body);
    if (isJsonObject(message)) return { message };
    return { error: INVALID_REQUEST, message: 'A request has one message.' };
  } catch {
    return { error: PARSE_ERROR, message: 'The body is no JSON.' };
  }
}

const rpcError = (code: number, message: string, id: unknown = null) => ({
  jsonrpc: '2.0',
  error: { code, message },
  id: typeof id === 'string' || typeof id === 'number' ? id : null,
});

/** The headers that the protocol reads. */
function headersOf({ headers }: FastifyRequest): Record<string, string> {
  const passed = Object.entries(headers).filter(
    ([name]) => name.startsWith('mcp-') || name === 'accept' || name === 'content-type',
  );
  return Object.fromEntries(
    passed.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
  );
}
