import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  type Source,
} from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Config } from '../config.ts';
import type { CallerLimit } from '../http/rate-limit.ts';
import type { Services } from '../services.ts';
import { clipped, withoutValue } from './coercion-errors.ts';
import { Context } from './context.ts';
import { Documents } from './documents.ts';
import { errorCatalogue } from './errors.ts';
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
  const documents = new Documents(schema, config);
  return createYoga<{ req: FastifyRequest; reply: FastifyReply }, Record<never, never>>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    landingPage: false,
    // what yoga itself masks has no operation and so no trace
    logging: { debug: silent, info: silent, warn: silent, error: (error: unknown) => onFault(error, 'none') },
    cors: false, // the server's own, for every path alike
    graphiql: false, // a page of our own
    parserAndValidationCache: false, // it keeps what is wrong, too, and knows no bytes
    context: ({ req }) => ({ context: new Context(req.caller, services) }),
    plugins: [
      bounded(documents),
      resumableStreams(),
      ownContext(),
      measured(limit, config.graphqlMaxCost),
      masked(documents, onFault),
    ],
  });
}

/** The product's context, which yoga's carries inside. */
const contextOf = (args: { contextValue?: unknown }) => (args.contextValue as { context: Context }).context;

/** Documents are read and judged within bounds, and what is wrong with one is said without the values in it. */
function bounded(documents: Documents): Plugin {
  return {
    onParse: ({ setParseFn }) =>
      setParseFn((text: string | Source) => {
        try {
          return documents.parse(typeof text === 'string' ? text : text.body);
        } catch (error) {
          throw error instanceof GraphQLError ? withoutValue(error) : error;
        }
      }),
    onValidate: ({ setValidationFn }) =>
      setValidationFn((_schema, document: DocumentNode) => documents.validate(document).map(withoutValue)),
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

/** The first few things that are wrong with variables are enough: each is said with the value beside it before that is taken out. */
const MAX_VARIABLE_ERRORS = 5;

/**
 * Counts root fields against the caller's budget, and refuses operations that ask for too much. The first was counted on arrival, of the
 * request or of the socket's message: also that of an operation which is none.
 */
function measured(limit: CallerLimit, maxCost: number): Plugin {
  const measure = (args: ExecutionArgs): readonly GraphQLError[] => {
    const { schema, document, operationName, variableValues } = args;
    const definitions = getOperationAST(document, operationName)?.variableDefinitions ?? [];
    const given = variableValues ?? {};
    const { rootFields, schemaRequests } = measureOperation(schema, document, operationName, given, maxCost);
    const { errors = [] } = getVariableValues(schema, definitions, clipped(given) as typeof given, {
      maxErrors: MAX_VARIABLE_ERRORS,
    });
    if (errors.length === 0) limit.demandRest(contextOf(args).caller, rootFields, schemaRequests);
    return errors.map(withoutValue);
  };
  const admit = ({ args, setResultAndStopExecution }: Admission) => {
    try {
      const errors = measure(args);
      if (errors.length > 0) setResultAndStopExecution({ errors });
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      setResultAndStopExecution({ errors: [error] });
    }
  };
  return { onExecute: admit, onSubscribe: admit };
}

/** Errors outside the catalogue are bugs: logged with their trace id, shown as an internal error. */
function masked(documents: Documents, onFault: GraphQLOptions['onFault']): Plugin {
  const mask = (args: ExecutionArgs, result: ExecutionResult): ExecutionResult => {
    if (!result.errors) return result;
    const { traceId } = contextOf(args).caller.request;
    const errors = result.errors.map((error) => maskError(error, traceId, onFault));
    return { ...result, errors: documents.located(args.document, errors) };
  };
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
