import { setTimeout } from 'node:timers/promises';
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  FastifyServerOptions,
  preValidationAsyncHookHandler,
  RouteHandlerMethod,
  RouteShorthandOptions,
} from 'fastify';
import type { DocumentNode } from 'graphql';
import type { Frame } from '../src/engine/live/frames.ts';
import { LiveStream } from '../src/engine/live/live-stream.ts';
import { MAX_ID_LENGTH } from '../src/kernel/constraints.ts';
import { unauthenticated } from '../src/kernel/errors.ts';
import { markRead } from '../src/kernel/read-input.ts';
import { acceptJson, ignoreBody } from './body-parser.ts';
import { clientErrorHandler } from './client-errors.ts';
import { docsPlugin } from './docs.ts';
import { answerOf, errorBody, type FaultHandling, frameworkErrors, sendError, ValidationFailure } from './errors.ts';
import { EventStreams, formats } from './events.ts';
import type { Facade } from './facade.ts';
import { acceptForm, type FileReceiver, readForm } from './form.ts';
import { acceptFields, bodyOfFields } from './form-fields.ts';
import { versionsOf } from './if-match.ts';
import { jsonTextOf } from './json-text.ts';
import type { OpenApiOptions } from './openapi.ts';
import type { CompiledOperation, DocumentRunner, ResponseBody, RootArguments } from './operation.ts';
import type { BodyKind } from './parameters.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the operation document behind the route. */
    operation?: string;
    operationType?: OperationFacts['type'];
    /** The root field that the operation selects. */
    rootField?: string;
    /** Location of each of its arguments in the request. */
    rootArguments?: RootArguments;
    /** The route needs no authentication. */
    isPublic?: boolean;
    /** How many JSON values the body may have, if those are more than of other routes. */
    maxValues?: number | null;
    /** Path template as in the spec. */
    template?: string;
  }
}

/** What `context` receives about the operation. */
export interface OperationFacts {
  name: string;
  method: string;
  /** Path template. */
  path: string;
  successStatus: number;
  type: 'query' | 'mutation' | 'subscription';
  /** The same `Idempotency-Key` gets the first answer again. */
  isReplayed: boolean;
}

export type OperationHooks = Pick<RouteShorthandOptions, 'preHandler' | 'onSend'>;

export interface RestOptions extends FaultHandling {
  facade: Facade;
  runner: DocumentRunner;
  /**
   * The caller, who was identified before; `null` when there is none. Called once per request, after the body was
   * parsed.
   */
  principal(request: FastifyRequest): unknown;
  /**
   * The GraphQL context of this request. `versions` are the resource versions that `If-Match` allows; `null` allows
   * any.
   */
  context(
    request: FastifyRequest,
    principal: unknown,
    operation: OperationFacts,
    versions: readonly number[] | null,
  ): object;
  /** Stores the files of forms. Only needed if a document has `@upload`. */
  files?: FileReceiver;
  /** What else runs for an operation, before its handler and when it is answered. */
  hooksOf?(operation: OperationFacts): OperationHooks;
  /** What runs before operations, by their names. It may answer in their place. */
  before?: Readonly<Record<string, preValidationAsyncHookHandler>>;
  /** For the OpenAPI document, which this plugin serves at `/openapi.json`, with an API reference at `/docs/api`. */
  info: OpenApiOptions['info'];
  publicUrl?: string | undefined;
  /** Beside it: what is no operation of a document. Names begin with `x-`. */
  extensions?: Readonly<Record<`x-${string}`, unknown>>;
}

/** The options of the Fastify constructor that the façade depends on. */
export const fastifyOptions = {
  routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_ID_LENGTH },
  bodyLimit: 2 * 1024 * 1024,
  onProtoPoisoning: 'error',
  onConstructorPoisoning: 'error',
  // on close: idle connections end, requests in flight finish, and streams end themselves
  forceCloseConnections: 'idle',
  // the framework's own 503 while closing would not have the spec's error shape
  return503OnClosing: false,
  frameworkErrors,
  clientErrorHandler,
} satisfies FastifyServerOptions;

/** Time that event streams have to end by themselves when the server closes. */
const CLOSING_MS = 500;

/**
 * Registers one route per operation document, and the OpenAPI document with its reference page.
 * The server must have been created with {@link fastifyOptions}, and `registerErrorShapes` called on it before.
 */
export const restPlugin: FastifyPluginAsync<RestOptions> = async (server, options) => {
  const streams = new EventStreams();
  const { operations } = options.facade;
  for (const name of Object.keys(options.before ?? {}))
    if (!operations.some((operation) => operation.name === name))
      throw new Error(`A hook is declared for the operation '${name}', and no document has it.`);
  server.setErrorHandler((error, request, reply) => sendError(error, request, reply, options));
  server.addHook('preClose', async () => {
    // a source that knows of the shutdown sends its closing event itself
    await Promise.race([streams.over(), setTimeout(CLOSING_MS, undefined, { ref: false })]);
    streams.close();
  });
  const register = (body: BodyKind, accept: (scope: FastifyInstance) => Promise<void> | void) =>
    server.register(async (scope) => {
      const own = operations.filter(({ takes }) => takes === body);
      if (own.length === 0) return;
      await accept(scope);
      for (const operation of own) addRoute(scope, operation, options, streams);
    });
  await register('json', acceptJson);
  await register('fields', acceptFields);
  await register('none', ignoreBody);
  await register('form', (scope) => acceptForm(scope, receiverOf(options)));
  const document = () => ({ ...options.facade.openApi(options), ...options.extensions });
  await server.register(docsPlugin, { title: options.info.title, document });
};

function receiverOf({ files }: RestOptions): FileReceiver {
  if (!files) throw new Error('A document uses @upload, but no file store is configured.');
  return files;
}

/**
 * What anybody may send who has not signed in. What an identity provider has a browser bring, a form, may be larger: it
 * is signed XML.
 */
const STRANGERS_BODY_LIMIT = 64 * 1024;

function addRoute(
  server: FastifyInstance,
  operation: CompiledOperation,
  options: RestOptions,
  streams: EventStreams,
): void {
  const { name, method, path, status: successStatus, type, isPublic } = operation;
  const isForm = operation.takes === 'form';
  const isOfStrangers = isPublic && operation.takes === 'json';
  const facts: OperationFacts = { name, method, path, successStatus, type, isReplayed: operation.isReplayed };
  const enter: Enter = (request) => {
    const principal = options.principal(request) ?? null;
    if (principal === null && !isPublic) throw unauthenticated();
    const versions = operation.takesIfMatch ? versionsOf(request.headers['if-match']) : null;
    return options.context(request, principal, facts, versions);
  };
  const admit: Admit = (request) => {
    const context = request.form?.context ?? enter(request);
    const input = operation.read(request);
    operation.compare(context, input, request);
    if (input.issues.items.length > 0) throw new ValidationFailure(input.issues.items);
    if (input.checked) markRead(context, input.checked);
    return { context, variables: input.variables };
  };
  server.route({
    method,
    url: operation.url,
    ...(isOfStrangers && { bodyLimit: Math.min(STRANGERS_BODY_LIMIT, server.initialConfig.bodyLimit!) }),
    config: {
      operation: name,
      operationType: type,
      rootField: operation.rootField,
      rootArguments: operation.rootArguments,
      isPublic,
      maxValues: operation.maxValues,
      template: path,
      takesFile: isForm,
    },
    ...options.hooksOf?.(facts),
    preValidation: [options.before?.[name] ?? [], readerOf(operation, options, enter)].flat(),
    // a HEAD request would open a stream without a reader
    exposeHeadRoute: method === 'GET' && type !== 'subscription',
    handler:
      type === 'subscription'
        ? streamHandler(operation, options, admit, streams)
        : valueHandler(operation, options, admit),
  });
}

/** What reads forms: before the replay of a request with an Idempotency-Key, which compares them. */
function readerOf(operation: CompiledOperation, options: RestOptions, enter: Enter): preValidationAsyncHookHandler[] {
  const readFields: preValidationAsyncHookHandler = async (request) => {
    request.body = bodyOfFields(operation, request.body);
  };
  const readFile: preValidationAsyncHookHandler = async (request) => {
    await readForm(operation, request, receiverOf(options), enter(request));
  };
  return operation.takes === 'fields' ? [readFields] : operation.takes === 'form' ? [readFile] : [];
}

/** Makes the context of an operation for a caller who may be there at all. @throws AUTHENTICATION_FAILED */
type Enter = (request: FastifyRequest) => object;
/** Reads and checks a request. @throws ValidationFailure */
type Admit = (request: FastifyRequest) => { context: object; variables: Record<string, unknown> };

function valueHandler(operation: CompiledOperation, { runner }: RestOptions, admit: Admit): RouteHandlerMethod {
  const documentOf = addedTo(runner);
  return async (request, reply) => {
    const { context, variables } = admit(request);
    const result = await runner.execute(documentOf(operation), context, variables);
    const etag = operation.etag?.(result);
    const body = operation.bodyOf(result, request);
    if (request.form) request.form.isKept = true;
    if (etag) reply.header('etag', etag);
    reply.code(operation.status);
    const { response } = operation;
    const address = takeRedirect(response, body);
    if (address !== null) return reply.code(303).header('location', address).send();
    if (response.kind === 'empty') return reply.send();
    reply.type('application/json; charset=utf-8');
    const text = response.kind === 'nothing' ? 'null' : jsonTextOf(body);
    return reply.send(typeof text === 'string' ? text : await text);
  };
}

/** The document of an operation, which the runner has got before it runs for the first time. */
function addedTo(runner: DocumentRunner): (operation: CompiledOperation) => DocumentNode {
  let added: DocumentNode | undefined;
  return ({ document }) => {
    if (!added) runner.add(document);
    return (added = document);
  };
}

/** Takes the address of a redirect out of a body. */
function takeRedirect({ redirect }: ResponseBody, body: unknown): string | null {
  if (redirect === null) return null;
  const object = body as Record<string, unknown>;
  const address = object[redirect];
  object[redirect] = undefined; // JSON omits it
  return typeof address === 'string' ? address : null;
}

function streamHandler(
  operation: CompiledOperation,
  options: RestOptions,
  admit: Admit,
  streams: EventStreams,
): RouteHandlerMethod {
  const documentOf = addedTo(options.runner);
  const formatOf = () => formats[operation.response.kind === 'lines' ? 'lines' : 'events'];
  /** The same bytes for all streams that an event goes to. */
  const sent = new WeakMap<Frame, Buffer>();
  const bytesOf = (frame: Frame, request: FastifyRequest): Buffer => {
    const known = sent.get(frame);
    if (known) return known;
    const { write } = formatOf();
    const bytes = Buffer.from(write(operation.bodyOf(frame.result, request), operation.response.eventId));
    sent.set(frame, bytes);
    return bytes;
  };
  return async (request, reply): Promise<FastifyReply> => {
    const { context, variables } = admit(request);
    const source = await options.runner.subscribe(documentOf(operation), context, variables);
    if (!(source instanceof LiveStream)) {
      operation.bodyOf(source, request);
      throw new Error(`The subscription '${operation.name}' returned neither events nor an error.`);
    }
    return streams.send(reply, source, {
      format: formatOf(),
      status: operation.status,
      bytesOf: (frame) => bytesOf(frame, request),
      farewell(error) {
        const answer = answerOf(error) ?? answerOf(options.shown?.(error));
        if (!answer) options.onFault(error, request);
        const body = answer?.body ?? errorBody('INTERNAL_SERVER_ERROR');
        return Buffer.from(formatOf().writeError(body));
      },
      onFault: (error) => options.onFault(error, request),
    });
  };
}
