import type { FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { answerTypeOf, statusOf } from './answer-type.ts';
import { type GraphQLEndpoint, prepared } from './endpoint.ts';
import type { PlainReader } from './plain-request.ts';

/** The answer of an operation that was executed, or refused by a limit. */
export interface PlainAnswer {
  status: number;
  type: string;
  text: string;
}

/** Answers a request. `null`, without any effect, for a request that yoga must handle. */
export type PlainPost = (request: FastifyRequest) => Promise<PlainAnswer | null>;

/**
 * Answers the usual request without a web `Request`, `Response` or stream in between: JSON with a query or a mutation,
 * answered with JSON. Yoga handles all others.
 */
export function plainPost(endpoint: GraphQLEndpoint, read: PlainReader): PlainPost {
  return async (request) => {
    const type = answerTypeOf(request.headers.accept);
    const params = type && (await read(request, 'value'));
    if (!type || !params) return null;
    const operation = await prepared(endpoint, params, request);
    const result = 'document' in operation ? await operation.execute(operation) : { errors: operation };
    return {
      status: statusOf(type, result as ExecutionResult),
      type: `${type}; charset=utf-8`,
      text: JSON.stringify(result),
    };
  };
}
