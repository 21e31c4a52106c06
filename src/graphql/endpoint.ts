import { EnvelopArmor } from '@escape.tech/graphql-armor';
import type { WebsocketHandler } from '@fastify/websocket';
import { renderGraphiQL } from '@graphql-yoga/render-graphiql';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  NoSchemaIntrospectionCustomRule,
} from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Config } from '../config.ts';
import type { CallerLimit } from '../http/rate-limit.ts';
import type { Services } from '../services.ts';
import { withoutValue } from './coercion-errors.ts';
import { Context } from './context.ts';
import { ApiError, errorCatalogue } from './errors.ts';
import { measureOperation } from './limits.ts';
import { resumableStreams } from './server-sent-events.ts';

/** What the transports (HTTP, SSE, WebSocket) have in common. */
export interface GraphQLOptions {
  schema: GraphQLSchema;
  services: Services;
  limit: CallerLimit;
  config: Pick<
    Config,
    | 'graphiql'
    | 'graphqlIntrospection'
    | 'graphqlMaxAliases'
    | 'graphqlMaxCost'
    | 'graphqlMaxDepth'
    | 'graphqlMaxTokens'
  >;
  onFault: (error: unknown, traceId: string) => void;
}

const silent = () => undefined;

export type GraphQLEndpoint = ReturnType<typeof createEndpoint>;

/** The executor behind `/graphql`: limits, masking and all, for every transport alike. */
export function createEndpoint({ schema, services, limit, config, onFault }: GraphQLOptions) {
  const armor = new EnvelopArmor({
    maxDepth: { n: config.graphqlMaxDepth, flattenFragments: true },
    maxAliases: { n: config.graphqlMaxAliases, allowList: [] },
    maxTokens: { n: config.graphqlMaxTokens },
    maxDirectives: { n: 50 },
    costLimit: { enabled: false }, // it knows no variables: our own measure does
    blockFieldSuggestion: { enabled: true },
  }).protect();
  return createYoga<{ req: FastifyRequest; reply: FastifyReply }, Record<never, never>>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    landingPage: false,
    // what yoga itself masks has no operation and so no trace
    logging: { debug: silent, info: silent, warn: silent, error: (error: unknown) => onFault(error, 'none') },
    cors: false, // the server's own, for every path alike
    renderGraphiQL, // with its script inside: yoga's own page asks a CDN for it
    graphiql: config.graphiql
      ? {
          title: 'Platform management',
          defaultQuery: '{ me { id username organizations { nodes { id name role } } } }',
        }
      : false,
    context: ({ req }) => ({ context: new Context(req.caller, services) }),
    plugins: [
      ...(armor.plugins as Plugin[]),
      ...(config.graphqlIntrospection
        ? []
        : [{ onValidate: ({ addValidationRule }) => addValidationRule(NoSchemaIntrospectionCustomRule) } as Plugin]),
      withoutValues(),
      resumableStreams(),
      ownContext(),
      measured(limit, config.graphqlMaxCost),
      masked(onFault),
    ],
  });
}

/** The product's context, which yoga's carries inside. */
const contextOf = (args: { contextValue?: unknown }) => (args.contextValue as { context: Context }).context;

/** What is wrong with a document is said without the values in it. */
function withoutValues(): Plugin {
  const cleaned = <T>(error: T) => (error instanceof GraphQLError ? withoutValue(error) : error);
  return {
    onParse:
      () =>
      ({ result, replaceParseResult }) => {
        if (result instanceof GraphQLError) replaceParseResult(withoutValue(result));
      },
    onValidate:
      () =>
      ({ valid, result, setResult }) => {
        if (!valid) setResult(result.map(cleaned));
      },
  };
}

/** Resolvers get the product's context, not yoga's. */
function ownContext(): Plugin {
  return {
    onExecute: ({ executeFn, setExecuteFn }) =>
      setExecuteFn((args) => executeFn({ ...args, contextValue: contextOf(args) })),
    onSubscribe: ({ subscribeFn, setSubscribeFn }) =>
      setSubscribeFn((args) => subscribeFn({ ...args, contextValue: contextOf(args) })),
  };
}

/** What yoga says before it executes or subscribes. */
interface Admission {
  args: ExecutionArgs;
  setResultAndStopExecution: (result: ExecutionResult) => void;
}

/**
 * Counts root fields against the caller's budget, and refuses operations that ask for too much. The first was counted on arrival, of the
 * request or of the socket's message: also that of an operation which is none.
 */
function measured(limit: CallerLimit, maxCost: number): Plugin {
  const measure = (args: ExecutionArgs) => {
    const { rootFields } = measureOperation(
      args.schema,
      args.document as DocumentNode,
      args.operationName,
      args.variableValues ?? {},
      maxCost,
    );
    limit.demandRest(contextOf(args).caller, rootFields);
  };
  const admit = ({ args, setResultAndStopExecution }: Admission) => {
    try {
      measure(args);
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      setResultAndStopExecution({ errors: [error] });
    }
  };
  return { onExecute: admit, onSubscribe: admit };
}

/** Errors outside the catalogue are bugs: logged with their trace id, shown as an internal error. */
function masked(onFault: GraphQLOptions['onFault']): Plugin {
  const mask = (args: ExecutionArgs, result: ExecutionResult): ExecutionResult =>
    result.errors
      ? {
          ...result,
          errors: result.errors.map((error) => maskError(error, contextOf(args).caller.request.traceId, onFault)),
        }
      : result;
  return {
    onExecute: ({ args }) => ({
      onExecuteDone({ result, setResult }) {
        if (!(Symbol.asyncIterator in result)) setResult(mask(args, result));
      },
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result, setResult }) {
        if (!(Symbol.asyncIterator in result)) {
          setResult(mask(args, result));
          return {};
        }
        return { onNext: ({ result: next, setResult: setNext }) => setNext(mask(args, next as ExecutionResult)) };
      },
    }),
  };
}

function maskError(error: GraphQLError, traceId: string, onFault: GraphQLOptions['onFault']): GraphQLError {
  const { originalError } = error;
  if (!originalError || originalError instanceof GraphQLError) return withoutValue(error);
  onFault(originalError, traceId);
  const { nodes, path } = error;
  return new GraphQLError(errorCatalogue.INTERNAL_SERVER_ERROR, {
    nodes,
    path,
    extensions: { code: 'INTERNAL_SERVER_ERROR', details: {}, trace_id: traceId },
  });
}

/** `/graphql`: POST, GET for queries, subscriptions as SSE and over WebSocket. */
export function addGraphQL(server: FastifyInstance, endpoint: GraphQLEndpoint, socket: WebsocketHandler): void {
  void server.register(async (scope) => {
    // read here, within the limit of every body; yoga answers what is no request as GraphQL over HTTP wants it
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
      // what a form of a foreign page can send without being asked for leave
      const isForm = /^\s*(?:multipart\/|application\/x-www-form-urlencoded)/i.test(
        request.headers['content-type'] ?? '',
      );
      done(isForm ? new ApiError('UNSUPPORTED_MEDIA_TYPE', { expected: 'application/json' }) : null, body);
    });
    const handler = async (req: FastifyRequest, reply: FastifyReply) => {
      const response = await endpoint.handleNodeRequestAndResponse(req, reply, { req, reply });
      reply.status(response.status);
      response.headers.forEach((value, name) => {
        reply.header(name, value);
      });
      return reply.send(response.body ?? '');
    };
    scope.route({ url: '/graphql', method: 'GET', exposeHeadRoute: false, handler, wsHandler: socket });
    scope.route({ url: '/graphql', method: ['POST', 'OPTIONS'], handler });
  });
}
