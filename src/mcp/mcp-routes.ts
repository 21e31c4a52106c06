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
import { ApiError } from '../kernel/errors.ts';
import { isJsonObject } from '../kernel/json-object.ts';
import { overloadOf } from '../kernel/json-shape.ts';
import { loadedOnce } from '../kernel/loaded-once.ts';
import type { Seal } from '../platform/keys/seal.ts';
import { type AddressedRequest, askedBy } from './address.ts';
import { McpConfirmations } from './confirmations.ts';
import { EventPages } from './event-pages.ts';
import { JoinedTools } from './joined-tools.ts';
import { addListChanges, ListChangeBus, sendChanges } from './list-changes.ts';
import { challengeOf, MissingScope } from './missing-scope.ts';
import { PlatformTools } from './platform-tools.ts';
import { SchemaSearch } from './schema-search.ts';
import { type RestOperation, SetOperations } from './set-operations.ts';
import { SetTools } from './set-tools.ts';
import type { McpCall, McpLibrary, McpRequest, ToolFace } from './tool.ts';
import { errorResult, internalError, type ShownError } from './tool-results.ts';
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
  /** Those of the REST API, by their names. */
  operations: ReadonlyMap<string, RestOperation>;
  /** The inputs of one of them, as JSON Schemas by their names. */
  inputOf: (name: string) => Record<string, Record<string, unknown>>;
  seal: Seal;
  limit: Pick<CallerLimit, 'demandRest'>;
  /** Whether applications may ask for a scope. */
  isGrantable: (scope: string) => boolean;
  version: string;
  publicUrl: () => string;
  corsOrigins: readonly string[];
  bodyLimitBytes: number;
  onFault: (error: unknown, traceId: string) => void;
}

/** A document with its variables, and what the protocol adds. */
const MAX_BODY = 1024 * 1024;
const WORKSPACE = /^\/mcp\/w\/[\w-]{1,64}$/;
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
/** How long a client may keep a list. */
const LIST_TTL_MS = 60_000;
/** Comments that keep proxies from closing an idle stream. */
const PING_MS = 15_000;

function withoutSecrets(context: Context): Context {
  context.hidesSecrets = true;
  return context;
}

/** Serves the Model Context Protocol at `/mcp`, and tools of a workspace at `/mcp/w/{workspace}` (decision 74). */
export function addMcp(server: FastifyInstance, options: McpOptions): void {
  const routes = new McpRoutes(options);
  const bodyLimit = Math.min(MAX_BODY, options.bodyLimitBytes);
  void server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    const handler = (request: FastifyRequest, reply: FastifyReply) => routes.answer(request as AddressedRequest, reply);
    for (const url of ['/mcp', '/mcp/w/:workspace']) scope.route({ method: 'POST', url, bodyLimit, handler });
    scope.get('/mcp/w/:workspace', { exposeHeadRoute: false }, (request, reply) =>
      routes.follow(request as AddressedRequest, reply),
    );
  });
}

/** A request with the tools that it finds. */
interface Served {
  face: ToolFace;
  asked: McpRequest;
  /** Whether its client may be told that the list of them has changed. */
  tellsChanges: boolean;
}

class McpRoutes {
  readonly #options: McpOptions;
  readonly #platform: PlatformTools;
  readonly #actions: WorkspaceActions;
  readonly #sets: SetOperations;
  readonly #turns = new TurnLimits();
  /** What each request of the protocol is about, by the request that the library gets. */
  readonly #requests = new WeakMap<object, Served>();
  /** What requests were refused for that their clients may ask for. */
  readonly #missing = new WeakMap<FastifyRequest, MissingScope>();
  /** The library takes a while to load, and is not needed before a client comes. */
  readonly #loaded = loadedOnce(async () => {
    const library: McpLibrary = await import('@modelcontextprotocol/server');
    const serverFor: Parameters<McpLibrary['createMcpHandler']>[0] = ({ era, requestInfo }) =>
      this.#serverFor(library, era, requestInfo);
    return {
      /** For all requests but those that follow a list. */
      plain: library.createMcpHandler(serverFor, { keepAliveMs: 0 }),
      /** For one request that does. */
      following: (bus: ListChangeBus['bus']) =>
        library.createMcpHandler(serverFor, { bus, maxSubscriptions: 1, keepAliveMs: PING_MS }),
    };
  });

  constructor(given: McpOptions) {
    // what a model has read, its provider has: it sees no secret that somebody wrote into free-form data
    const contextOf = (request: FastifyRequest) => withoutSecrets(given.contextOf(request));
    const options = { ...given, contextOf };
    this.#options = options;
    const { schema, documents, seal, sql, limit } = options;
    addWorkspaceTools(documents);
    addListChanges(documents);
    this.#sets = new SetOperations(schema, options.operations, options.inputOf);
    this.#actions = new WorkspaceActions(documents, limit);
    this.#platform = new PlatformTools({
      ...options,
      search: new SchemaSearch(schema),
      events: new EventPages(documents),
      confirmations: new McpConfirmations(seal, sql),
    });
  }

  async answer(request: AddressedRequest, reply: FastifyReply): Promise<FastifyReply> {
    const served = await this.#served(request);
    const body = messageIn(request.body);
    if ('error' in body) return reply.code(400).send(rpcError(body.error, body.message));
    const { message } = body;
    if (message.method === 'subscriptions/listen' && served.tellsChanges) return this.#listen(served, message, reply);
    const { plain } = await this.#loaded();
    const answer = await plain.fetch(this.#passed(served), { parsedBody: message });
    const text = await answer.text();
    const missing = this.#missing.get(request);
    if (missing) return this.#challenge(served, missing, message.id, reply);
    const type = answer.headers.get('content-type');
    if (type) reply.header('content-type', type);
    return reply.code(answer.status).send(text);
  }

  /** The stream that clients of 2025 hold open beside their requests: it tells of changes, and nothing else. */
  async follow(request: AddressedRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { face, asked, tellsChanges } = await this.#served(request);
    if (!tellsChanges || !/\btext\/event-stream\b/i.test(request.headers.accept ?? ''))
      throw new ApiError('METHOD_NOT_ALLOWED', { method: 'GET' });
    return sendChanges(reply, await face.watch!(asked));
  }

  /** The stream of a client of 2026: it ends with its token, or when the service stops. */
  async #listen(served: Served, message: RpcMessage, reply: FastifyReply): Promise<FastifyReply> {
    const { asked } = served;
    const { following } = await this.#loaded();
    const frames = await served.face.watch!(asked);
    const changes = new ListChangeBus(frames, (error) => {
      if (error !== null) this.#options.onFault(error, asked.request.id);
      void handler.close();
    });
    const handler = following(changes.bus);
    const answered = async () => {
      try {
        return await handler.fetch(this.#passed(served), { parsedBody: message });
      } finally {
        await changes.endUnlessTaken();
      }
    };
    const answer = await answered();
    answer.headers.forEach((value, name) => void reply.header(name, value));
    // as all streams say
    return reply.code(answer.status).header('connection', 'close').send(answer.body);
  }

  /** @throws what a request is refused for before its message is read */
  async #served(request: AddressedRequest): Promise<Served> {
    demandSpelling(request);
    this.#demandOrigin(request);
    const asked = await askedBy(request, this.#options.access);
    const face = this.#faceOf(request, asked);
    const mayFollow = asked.caller.principal.token?.permissions.has('sync:subscribe') === true;
    return { face, asked, tellsChanges: face.watch !== undefined && mayFollow };
  }

  /** The request as the library takes it. */
  #passed(served: Served): Request {
    const { request, caller } = served.asked;
    const signal = caller.request.left?.() ?? null;
    const passed = new Request('http://localhost/mcp', { method: 'POST', headers: headersOf(request), signal });
    this.#requests.set(passed, served);
    return passed;
  }

  /** Says what an application must ask its user for, as the protocol has it. */
  #challenge({ asked }: Served, missing: MissingScope, id: unknown, reply: FastifyReply): FastifyReply {
    const metadata = `${this.#options.publicUrl()}/.well-known/oauth-protected-resource/mcp`;
    const { token } = asked.caller.principal;
    if (!token) throw new Error('A caller without a token asked for tools.');
    const details = { code: 'FORBIDDEN', required_permissions: missing.permissions, trace_id: asked.request.id };
    return reply
      .code(403)
      .header('www-authenticate', challengeOf(token, missing, metadata))
      .send(rpcError(INVALID_REQUEST, 'The access token does not name what this needs.', id, details));
  }

  /** @throws FORBIDDEN for a page of another origin: its name may lead to this machine by a trick with DNS */
  #demandOrigin({ headers: { origin } }: FastifyRequest): void {
    if (origin === undefined) return;
    const { corsOrigins, publicUrl } = this.#options;
    const isKnown = corsOrigins.includes('*') || corsOrigins.includes(origin) || origin === new URL(publicUrl()).origin;
    if (!isKnown)
      throw new ApiError('FORBIDDEN', { reason: 'origin' }, 'Pages of this origin may not call the service.');
  }

  #faceOf({ params: { workspace } }: AddressedRequest, asked: McpRequest): ToolFace {
    if (workspace === undefined) return this.#platformFace(asked);
    return new WorkspaceTools({
      ...this.#options,
      workspaceId: workspace,
      actions: this.#actions,
      turns: this.#turns,
      refuse: (error, traceId) => new ListRefusal(error, traceId),
    });
  }

  #platformFace({ chosen, workspaceId, caller, reveals }: McpRequest): ToolFace {
    const { access } = this.#options;
    const faces: ToolFace[] = !chosen || chosen.hasPlatform ? [this.#platform] : [];
    if (chosen && chosen.operations.length > 0) {
      const { operations } = chosen;
      const platform = this.#platform;
      faces.push(new SetTools({ operations, workspaceId, reveals, made: this.#sets, platform, access }));
    }
    if (faces.length === 1 && workspaceId === null) return faces[0]!;
    const place = `the workspace '${workspaceId}' of the organization '${caller.principal.orgId}'`;
    return new JoinedTools(faces, workspaceId === null ? '' : `Nothing outside of ${place} can be changed here.`);
  }

  #serverFor(library: McpLibrary, era: 'legacy' | 'modern', passed: object | undefined): Server {
    const found = passed && this.#requests.get(passed);
    if (!found) throw new Error('The library made up a request.');
    const { face, asked, tellsChanges } = found;
    const server = new library.Server(
      { name: 'platform-management-api', version: this.#options.version },
      {
        capabilities: { tools: tellsChanges ? { listChanged: true } : {} },
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
      const isMissing = this.#isMissing(error, asked);
      if (!isMissing && !(error instanceof ListRefusal)) this.#options.onFault(error, traceId);
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
      if (!this.#isMissing(error, call)) this.#options.onFault(error, traceId);
      return errorResult(internalError(), traceId);
    }
  }

  /** Whether a request lacks scopes: then its answer says which, whatever the library makes of it. */
  #isMissing(error: unknown, { request }: McpRequest): boolean {
    if (!(error instanceof MissingScope)) return false;
    this.#missing.set(request, error);
    return true;
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
function demandSpelling({ url, params: { workspace } }: AddressedRequest): void {
  const [path = ''] = url.split('?', 1);
  const isPlain = workspace === undefined ? path === '/mcp' : WORKSPACE.test(path);
  if (!isPlain) throw new ApiError('RESOURCE_NOT_FOUND', { resource_type: 'route' }, 'There is no such route.');
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

const rpcError = (code: number, message: string, id: unknown = null, data?: object) => ({
  jsonrpc: '2.0',
  error: { code, message, ...(data && { data }) },
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
