import type { FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Services } from '../../graphql/context.ts';
import { Context } from '../../graphql/context.ts';
import { Frame, type Frames } from '../live/frames.ts';
import { LiveStream, subscribeLive } from '../live/live-stream.ts';
import type { OperationRequest } from '../path/operation-request.ts';
import { type PlainOptions, plainReader } from './plain-request.ts';

interface Options extends PlainOptions {
  schema: GraphQLSchema;
  services: Services;
}

/** Starts the stream that a request asks for. `null`, without any effect, for a request that yoga must handle. */
export type PlainStream = (request: FastifyRequest) => Promise<Frames | null>;

/**
 * Starts a subscription that JSON asks for and SSE answers, without what yoga would keep for as long as the stream is
 * open: a web request, its context and its signals take more memory than everything else of a silent stream.
 */
export function plainStream({ schema, services, ...options }: Options): PlainStream {
  const { operations } = options;
  const read = plainReader(options);
  const start = async (asked: OperationRequest, contextValue: Context) => {
    const { document, operationName, variables } = asked;
    const errors = operations.refusals(asked, contextValue);
    if (errors.length > 0) return { errors };
    const args = { schema, document, operationName, variableValues: variables, contextValue };
    const live = await subscribeLive(args, (shown) => operations.masked(asked, shown, contextValue)).catch(
      // such as a selection of which nothing is included
      (error: unknown) => ({ errors: [new GraphQLError('', { originalError: asError(error) })] }),
    );
    return live instanceof LiveStream ? live : operations.masked(asked, live, contextValue);
  };
  return async (request) => {
    const { headers, caller } = request;
    if (headers.accept?.trim().toLowerCase() !== 'text/event-stream') return null;
    const asked = read(request, 'stream');
    if (!asked) return null;
    const context = new Context(caller, services);
    const resumed = headers['last-event-id'];
    // an empty header comes from a client that has seen no event
    context.lastEventId = (Array.isArray(resumed) ? resumed[0] : resumed) || undefined;
    const started = await start(asked, context);
    return started instanceof LiveStream ? started : once(new Frame(started, undefined));
  };
}

/** The frames of a subscription that could not start: one with the errors. */
const once = (frame: Frame): Frames => {
  const frames = [frame];
  return { take: async () => frames.shift() ?? null, return: async () => undefined };
};

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
