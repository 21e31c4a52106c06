import type { FastifyRequest } from 'fastify';
import { type ExecutionResult, GraphQLError, getOperationAST } from 'graphql';
import type { Services } from '../../services.ts';
import { Context } from '../context.ts';
import { answerTypeOf } from './answer-type.ts';
import type { Asked, Operations } from './operations.ts';
import type { PersistedDocuments } from './persisted-documents.ts';

interface Options {
  operations: Operations;
  persisted: PersistedDocuments;
  services: Services;
}

/** The answer of an operation that was executed, or refused by a limit: its status is 200. */
export interface PlainAnswer {
  type: string;
  text: string;
}

/** Answers a request. `null`, without any effect, for a request that yoga must handle. */
export type PlainPost = (request: FastifyRequest) => Promise<PlainAnswer | null>;

/**
 * Answers the usual request without a web `Request`, `Response` or stream in between: JSON with a query or a mutation,
 * answered with JSON. Yoga handles all others, including requests that fail before an operation is known.
 */
export function plainPost({ operations, persisted, services }: Options): PlainPost {
  const answer = async (asked: Asked, context: Context): Promise<ExecutionResult> => {
    const errors = operations.refusals(asked, context);
    return errors.length > 0
      ? { errors }
      : operations.masked(asked.document, await operations.run(asked, context), context);
  };
  const read = ({ query, extensions, operationName, variables }: Params, isKnownCaller: boolean): Asked | null => {
    const { documents } = operations;
    const text = persisted.textOf({ query, extensions }, isKnownCaller);
    if (text === undefined) return null;
    const document = documents.parse(text);
    if (documents.validate(document).length > 0) return null;
    const operation = getOperationAST(document, operationName);
    return operation && operation.operation !== 'subscription' ? { document, operationName, variables } : null;
  };
  return async ({ headers, body, caller }) => {
    const type = answerTypeOf(headers.accept);
    const params = type && isJson(headers['content-type']) ? paramsOf(body) : null;
    const asked = params && orNull(() => read(params, caller.principal !== null));
    if (!type || !asked) return null;
    const result = await answer(asked, new Context(caller, services));
    return { type: `${type}; charset=utf-8`, text: JSON.stringify(result) };
  };
}

const isJson = (type = ''): boolean => type === 'application/json' || type.startsWith('application/json;');

interface Params {
  query?: string | null;
  operationName?: string | null;
  variables?: Record<string, unknown> | null;
  extensions?: Record<string, unknown> | null;
}

const KEYS = new Set(['query', 'operationName', 'variables', 'extensions']);

/** The parameters of a body in the form of GraphQL over HTTP; else `null`. */
function paramsOf(body: unknown): Params | null {
  if (typeof body !== 'string') return null;
  let params: unknown;
  try {
    params = JSON.parse(body);
  } catch {
    return null; // yoga reports the error
  }
  if (!isObject(params)) return null;
  for (const key in params) if (!KEYS.has(key)) return null;
  const { query, operationName, variables, extensions } = params;
  const isText = isTextOrNothing(query) && isTextOrNothing(operationName);
  return isText && isObjectOrNothing(variables) && isObjectOrNothing(extensions) ? (params as Params) : null;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isTextOrNothing = (value: unknown) => value === undefined || value === null || typeof value === 'string';
const isObjectOrNothing = (value: unknown) => value === undefined || value === null || isObject(value);

/** `null` if GraphQL refuses: yoga refuses it again and formats the error. */
function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}
