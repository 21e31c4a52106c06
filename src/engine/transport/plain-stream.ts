import type { FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { Frame, type Frames } from '../live/frames.ts';
import { type GraphQLEndpoint, prepared } from './endpoint.ts';
import type { PlainReader } from './plain-request.ts';

/** Starts the stream that a request asks for. `null`, without any effect, for a request that yoga must handle. */
export type PlainStream = (request: FastifyRequest) => Promise<Frames | null>;

/**
 * Starts a subscription that JSON asks for and SSE answers, without what yoga would keep for as long as the stream is
 * open: a web request, its context and its signals take more memory than everything else of a silent stream.
 */
export function plainStream(endpoint: GraphQLEndpoint, read: PlainReader): PlainStream {
  return async (request) => {
    if (request.headers.accept?.trim().toLowerCase() !== 'text/event-stream') return null;
    const params = await read(request, 'stream');
    if (!params) return null;
    const operation = await prepared(endpoint, params, request);
    if (!('document' in operation)) return once(new Frame({ errors: operation }, undefined));
    const result = await operation.subscribe(operation);
    return operation.contextValue.live ?? once(new Frame(result as ExecutionResult, undefined));
  };
}

/** The frames of a subscription that could not start: one with the errors. */
const once = (frame: Frame): Frames => {
  const frames = [frame];
  return { take: async () => frames.shift() ?? null, return: async () => undefined };
};
