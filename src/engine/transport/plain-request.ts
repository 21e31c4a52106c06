import type { FastifyRequest } from 'fastify';
import { GraphQLError, getOperationAST } from 'graphql';
import { isJsonObject } from '../../kernel/json-object.ts';
import type { Documents } from '../path/documents.ts';
import type { PersistedDocuments } from '../path/persisted-documents.ts';
import type { OperationParams } from './endpoint.ts';

/** The operation of a request; `null`, without any effect, if yoga must read it. */
export type PlainReader = (request: FastifyRequest, kind: 'value' | 'stream') => Promise<OperationParams | null>;

/**
 * Reads the usual request, JSON with one valid operation of the kind, without a web `Request`. Yoga reads all others,
 * including requests that fail before an operation is known.
 */
export function plainReader(documents: Documents, persisted: PersistedDocuments): PlainReader {
  const read = async (
    params: Params,
    kind: 'value' | 'stream',
    request: FastifyRequest,
  ): Promise<OperationParams | null> => {
    const { operationName, variables } = params;
    const query = await persisted.textOf(params, request);
    if (query === undefined) return null;
    const document = documents.parse(query);
    if (documents.validate(document).length > 0) return null;
    const operation = getOperationAST(document, operationName);
    if (!operation || (operation.operation === 'subscription') !== (kind === 'stream')) return null;
    return { query, operationName, variables };
  };
  return async (request, kind) => {
    const { headers, body } = request;
    const params = isJson(headers['content-type']) ? paramsOf(body) : null;
    const asked = params && (await read(params, kind, request).catch(nullIfRefused));
    if (params && !asked) leftToYoga.set(request, params);
    return asked;
  };
}

const leftToYoga = new WeakMap<FastifyRequest, Params>();

/** The body of a request that yoga must read, if it was parsed before: parsing twice would take twice as long. */
export const parsedBodyOf = (request: FastifyRequest): object | undefined => leftToYoga.get(request);

const isJson = (type = ''): boolean => type === 'application/json' || type.startsWith('application/json;');

interface Params {
  query?: string | null;
  documentId?: string | null;
  operationName?: string | null;
  variables?: Record<string, unknown> | null;
  extensions?: Record<string, unknown> | null;
}

const KEYS = new Set(['query', 'documentId', 'operationName', 'variables', 'extensions']);

/** The parameters of a body in the form of GraphQL over HTTP; else `null`. */
function paramsOf(body: unknown): Params | null {
  if (typeof body !== 'string') return null;
  let params: unknown;
  try {
    params = JSON.parse(body);
  } catch {
    return null; // yoga reports the error
  }
  if (!isJsonObject(params)) return null;
  for (const key in params) if (!KEYS.has(key)) return null;
  const { query, documentId, operationName, variables, extensions } = params;
  const isText = [query, documentId, operationName].every(isTextOrNothing);
  return isText && isObjectOrNothing(variables) && isObjectOrNothing(extensions) ? (params as Params) : null;
}

const isTextOrNothing = (value: unknown) => value === undefined || value === null || typeof value === 'string';
const isObjectOrNothing = (value: unknown) => value === undefined || value === null || isJsonObject(value);

/** `null` if GraphQL refuses: yoga refuses it again and formats the error. */
function nullIfRefused(error: unknown): null {
  if (error instanceof GraphQLError) return null;
  throw error;
}
