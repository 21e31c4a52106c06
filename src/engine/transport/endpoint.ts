import type { FastifyReply, FastifyRequest } from 'fastify';
import { type DocumentNode, type ExecutionArgs, type ExecutionResult, GraphQLError, type GraphQLSchema } from 'graphql';
import { createYoga, maskError, type Plugin } from 'graphql-yoga';
import type { Context, Services } from '../../graphql/context.ts';
import type { OperationContext, Operations } from '../path/operations.ts';
import type { PersistedDocuments } from '../path/persisted-documents.ts';
import { type Incoming, requestPath } from '../path/request-path.ts';
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
 * Yoga, which answers `/graphql` itself except for plain JSON and sockets, and from which every transport takes its
 * functions.
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
    // those of an operation are masked already, or shown by the façade
    maskedErrors: { maskError: (error, ...how) => (error instanceof GraphQLError ? error : maskError(error, ...how)) },
    cors: false, // handled by the server, the same for every path
    graphiql: false, // served as our own page
    parserAndValidationCache: false, // it also caches invalid documents, and has no limit in bytes
    extraParamNames: ['documentId'],
    plugins: [withOurParameters(), withPersisted(persisted), requestPath(operations, services), resumableStreams()],
  });
}

/**
 * Parameters of an address that are no JSON are refused as such a body is: Yoga takes that for a fault of the service.
 * It does not read `documentId` there.
 */
function withOurParameters(): Plugin {
  return {
    onRequestParse({ requestParser: read, request, setRequestParser }) {
      if (!read || request.method !== 'GET') return;
      setRequestParser(async (got) => {
        try {
          const documentId = new URL(got.url).searchParams.get('documentId') ?? undefined;
          return { ...(await read(got)), documentId };
        } catch (error) {
          throw error instanceof SyntaxError ? noJson(error) : error;
        }
      });
    },
  };
}

const noJson = ({ name, message }: SyntaxError) =>
  new GraphQLError('The parameters "variables" and "extensions" must be JSON.', {
    extensions: { code: 'BAD_REQUEST', http: { spec: true, status: 400 }, originalError: { name, message } },
  });

/** Resolves the name of a text that was registered or sent before. Sockets do it themselves. */
function withPersisted(persisted: PersistedDocuments): Plugin<object, { req: FastifyRequest }> {
  return {
    async onParams({ params, setParams, context }) {
      const query = await persisted.textOf(params, context.req);
      if (query !== undefined && query !== params.query) setParams({ ...params, query });
    },
  };
}

/** An operation as its client sent it. */
export interface OperationParams {
  query: string;
  operationName?: string | null | undefined;
  variables?: Record<string, unknown> | null | undefined;
}

type RunOperation = (args: OperationArgs) => Promise<ExecutionResult | AsyncIterable<ExecutionResult>>;

interface OperationArgs extends ExecutionArgs {
  contextValue: OperationContext;
}

/** Yoga's functions for one operation. */
interface Enveloped {
  schema: GraphQLSchema;
  parse: (text: string) => DocumentNode;
  validate: (schema: GraphQLSchema, document: DocumentNode) => readonly GraphQLError[];
  contextFactory: () => Promise<OperationContext> | OperationContext;
  execute: RunOperation;
  subscribe: RunOperation;
}

/** @param initial what is known of the operation; nothing is needed only to run it */
export const envelopedBy = (endpoint: GraphQLEndpoint, initial: Partial<Incoming>): Enveloped =>
  endpoint.getEnveloped(initial as Record<string, unknown>) as unknown as Enveloped;

/** An operation that has passed validation, with the functions that run it. */
export interface PreparedOperation extends OperationArgs {
  execute: RunOperation;
  subscribe: RunOperation;
}

/**
 * Does for an operation what Yoga's own server does before it runs one: parses and validates it, makes its context.
 * @param context of an operation whose caller is not that of the request
 * @returns the errors of a text that is no valid document
 */
export async function prepared(
  endpoint: GraphQLEndpoint,
  params: OperationParams,
  req: FastifyRequest,
  context?: Context,
): Promise<PreparedOperation | readonly GraphQLError[]> {
  const { schema, parse, validate, contextFactory, execute, subscribe } = envelopedBy(endpoint, {
    req,
    params,
    context,
  });
  try {
    const document = parse(params.query);
    const errors = validate(schema, document);
    if (errors.length > 0) return errors;
    const { operationName, variables: variableValues } = params;
    const contextValue = await contextFactory();
    return { schema, document, operationName, variableValues, contextValue, execute, subscribe };
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    throw error;
  }
}
