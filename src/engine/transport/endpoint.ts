import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  type Source,
} from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import { Context, type Services } from '../../graphql/context.ts';
import { LiveStream, subscribeLive } from '../live/live-stream.ts';
import { withoutValue } from '../path/coercion-errors.ts';
import type { OperationRequest } from '../path/operation-request.ts';
import type { Operations } from '../path/operations.ts';
import type { PersistedDocuments } from '../path/persisted-documents.ts';
import { liveStreams } from './live-streams.ts';
import { resumableStreams } from './server-sent-events.ts';

/** What the transports (HTTP, SSE, WebSocket) share. */
export interface EndpointOptions {
  schema: GraphQLSchema;
  services: Services;
  operations: Operations;
  persisted: PersistedDocuments;
  onFault: (error: unknown, traceId: string) => void;
}

const silent = () => undefined;

export type GraphQLEndpoint = ReturnType<typeof createEndpoint>;

/**
 * The executor behind `/graphql` for everything except plain JSON, including limits and masking, the same for every
 * transport.
 */
export function createEndpoint({ schema, services, operations, persisted, onFault }: EndpointOptions) {
  return createYoga<{ req: FastifyRequest; reply: FastifyReply }, Record<never, never>>({
    schema,
    graphqlEndpoint: '/graphql',
    batching: false,
    multipart: false,
    landingPage: false,
    // errors that yoga itself masks have no operation and so no trace
    logging: { debug: silent, info: silent, warn: silent, error: (error: unknown) => onFault(error, 'none') },
    cors: false, // handled by the server, the same for every path
    graphiql: false, // served as our own page
    parserAndValidationCache: false, // it also caches invalid documents, and has no limit in bytes
    context: ({ req }) => ({ context: new Context(req.caller, services) }),
    plugins: [
      withPersisted(persisted),
      bounded(operations, services),
      resumableStreams(),
      executed(operations),
      measured(operations),
      masked(operations),
    ],
  });
}

/** The product's context, inside of yoga's. */
const contextOf = (args: { contextValue?: unknown }) => (args.contextValue as { context: Context }).context;

/** Resolves the hash of a text that was sent before. Not available over WebSocket. */
function withPersisted(persisted: PersistedDocuments): Plugin<object, { req: FastifyRequest }> {
  return {
    onParams({ params, setParams, context }) {
      const query = persisted.textOf(params, context.req.caller.principal !== null);
      if (query !== undefined && query !== params.query) setParams({ ...params, query });
    },
  };
}

/** What is known of a request before its document is valid. A socket makes the context of each operation. */
interface Unvalidated {
  req: FastifyRequest;
  params: Omit<OperationRequest, 'document'>;
  context?: Context;
}

/**
 * Parses and validates documents within limits, and reports errors without the values in the document. Operations of
 * invalid documents are recorded.
 */
function bounded(operations: Operations, services: Services): Plugin<Unvalidated> {
  const { documents } = operations;
  return {
    onParse: ({ setParseFn }) =>
      setParseFn((text: string | Source) => {
        try {
          return documents.parse(typeof text === 'string' ? text : text.body);
        } catch (error) {
          throw error instanceof GraphQLError ? withoutValue(error) : error;
        }
      }),
    onValidate: ({ context: { req, params, context }, setValidationFn }) =>
      setValidationFn((_schema, document: DocumentNode) => {
        const errors = documents.validate(document);
        if (errors[0]) {
          const { operationName, variables } = params;
          const asked = { document, operationName, variables };
          operations.recordInvalid(asked, context ?? new Context(req.caller, services), errors[0]);
        }
        return errors.map(withoutValue);
      }),
  };
}

/**
 * Resolvers get the product's context, not yoga's, and queries run by their plans. Streams are kept in
 * `liveStreams` for the transports, which send them themselves.
 */
function executed(operations: Operations): Plugin {
  return {
    onExecute: ({ setExecuteFn }) => setExecuteFn((args) => operations.run(askedBy(args), contextOf(args))),
    onSubscribe: ({ setSubscribeFn }) =>
      setSubscribeFn(async (args: ExecutionArgs) => {
        const contextValue = contextOf(args);
        const result = await subscribeLive({ ...args, contextValue }, (shown) =>
          operations.masked(askedBy(args), shown, contextValue),
        );
        if (result instanceof LiveStream) liveStreams.set(contextValue, result);
        return result;
      }),
  };
}

const askedBy = ({ document, operationName, variableValues }: ExecutionArgs) => ({
  document,
  operationName,
  variables: variableValues,
});

/** The options of yoga before it executes or subscribes. */
interface YogaAdmission {
  args: ExecutionArgs;
  setResultAndStopExecution: (result: ExecutionResult) => void;
}

function measured(operations: Operations): Plugin {
  const admit = ({ args, setResultAndStopExecution }: YogaAdmission) => {
    const errors = operations.refusals(askedBy(args), contextOf(args));
    if (errors.length > 0) setResultAndStopExecution({ errors });
  };
  return { onExecute: admit, onSubscribe: admit };
}

/** Masks every result except those of streams, which are masked one by one. */
function masked(operations: Operations): Plugin {
  const mask = (args: ExecutionArgs, result: ExecutionResult) =>
    operations.masked(askedBy(args), result, contextOf(args));
  return {
    onExecute: ({ args }) => ({
      onExecuteDone({ result, setResult }) {
        if (!(Symbol.asyncIterator in result)) setResult(mask(args, result));
      },
    }),
    onSubscribe: ({ args }) => ({
      onSubscribeResult({ result, setResult }) {
        if (!(Symbol.asyncIterator in result)) setResult(mask(args, result));
      },
    }),
  };
}
