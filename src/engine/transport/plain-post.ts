import type { FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import type { Services } from '../../graphql/context.ts';
import { Context } from '../../graphql/context.ts';
import type { OperationRequest } from '../path/operation-request.ts';
import { answerTypeOf, statusOf } from './answer-type.ts';
import { type PlainOptions, plainReader } from './plain-request.ts';

interface Options extends PlainOptions {
  services: Services;
}

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
export function plainPost({ services, ...options }: Options): PlainPost {
  const { operations } = options;
  const read = plainReader(options);
  const answer = async (asked: OperationRequest, context: Context): Promise<ExecutionResult> => {
    const errors = operations.refusals(asked, context);
    return errors.length > 0 ? { errors } : operations.masked(asked, await operations.run(asked, context), context);
  };
  return async (request) => {
    const type = answerTypeOf(request.headers.accept);
    const asked = type && read(request, 'value');
    if (!type || !asked) return null;
    const result = await answer(asked, new Context(request.caller, services));
    return { status: statusOf(type, result), type: `${type}; charset=utf-8`, text: JSON.stringify(result) };
  };
}
