import type { InjectOptions } from 'fastify';
import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getNamedType,
  isEnumType,
  isInputObjectType,
} from 'graphql';
import type { CompiledOperation } from '../../rest/operation.ts';
import type { TestApp } from './app.ts';
import { FORM_TYPE, type FormPart, formOf } from './form.ts';
import { snakeCase } from './names.ts';
import { type SampleSource, sampleArgument, sampleInput } from './samples.ts';

/** The parts of a request, before they are put together; tests change what they are about. */
export interface Parts {
  params: Record<string, string>;
  query: Record<string, string | string[]>;
  headers: Record<string, string>;
  /** `undefined`: no body. */
  body: unknown;
}

export interface PartsOptions {
  token?: string | null;
  /** Only what must be there. */
  requiredOnly?: boolean;
}

/** A valid request for a route, with the ids and texts of a world. */
export function partsOf(
  operation: CompiledOperation,
  source: SampleSource,
  { token, requiredOnly = true }: PartsOptions = {},
): Parts {
  const parts: Parts = {
    params: {},
    query: {},
    headers: token ? { authorization: `Bearer ${token}` } : {},
    body: undefined,
  };
  for (const parameter of operation.parameters) {
    if (requiredOnly && !parameter.isRequired) continue;
    const value = (parameter.defaultValue ??
      sampleArgument(parameter.name, parameter.type, parameter.constraints, source)) as
      | string
      | number
      | boolean
      | string[]
      | null
      | undefined;
    if (value === undefined || value === null) continue;
    if (parameter.in === 'path') parts.params[parameter.wireName] = String(value);
    else if (parameter.in === 'header') parts.headers[parameter.wireName] = String(value);
    else if (parameter.isCommaList) parts.query[parameter.wireName] = [value].flat().join(',');
    else parts.query[parameter.wireName] = Array.isArray(value) ? value.map(String) : String(value);
  }
  if (operation.body)
    parts.body = toRest(sampleInput(operation.body.type, source, { requiredOnly }), operation.body.type);
  return parts;
}

/** What `server.inject` takes. Path values are escaped unless `rawPath` says that they are written as they are. */
export function injectable(
  operation: CompiledOperation,
  { params, query, headers, body }: Parts,
  { rawPath = false } = {},
): InjectOptions & { url: string } {
  const path = operation.path.replace(/\{([^}]*)\}/g, (_, name: string) =>
    rawPath ? (params[name] ?? '') : encodeURIComponent(params[name] ?? ''),
  );
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => [value].flat().map((item) => [name, item] as [string, string])),
  ).toString();
  const url = search ? `${path}?${search}` : path;
  if (body === undefined) return { method: operation.method, url, headers };
  const { fileField } = operation.body ?? {};
  const isForm = fileField && typeof body === 'object' && body !== null && !Array.isArray(body);
  const type = isForm ? FORM_TYPE : 'application/json';
  const payload = isForm ? formOf(partsOfForm(body, fileField)).toString() : JSON.stringify(body);
  return { method: operation.method, url, headers: { 'content-type': type, ...headers }, payload };
}

/** The same values as a form. A text for the file is its content; anything else cannot be a file, and is left out. */
function partsOfForm(body: object, fileField: string): FormPart[] {
  return Object.entries(body).flatMap(([name, value]: [string, unknown]): FormPart[] => {
    if (name === fileField) return typeof value === 'string' ? [[name, { content: value }]] : [];
    if (value === undefined) return [];
    return [[name.replaceAll('"', '%22'), typeof value === 'string' ? value : JSON.stringify(value)]];
  });
}

/** A valid request for a route. */
export const requestOf = (operation: CompiledOperation, source: SampleSource, options: PartsOptions = {}) =>
  injectable(operation, partsOf(operation, source, options));

/** A POST to `/graphql`. */
export function graphqlRequest(
  query: string,
  variables: Record<string, unknown> = {},
  authorization?: string | null,
): InjectOptions {
  return {
    method: 'POST',
    url: '/graphql',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(authorization ? { authorization } : {}),
    },
    payload: JSON.stringify({ query, variables }),
  };
}

/** Input in GraphQL names -> the REST body. Free JSON keeps its keys. */
export const toRest = (value: unknown, type: GraphQLInputObjectType): unknown => renamed(value, type, true);

/** The REST body -> input in GraphQL names. */
export const toGraphQL = (value: unknown, type: GraphQLInputObjectType): unknown => renamed(value, type, false);

/**
 * Values of enums are upper-case words in GraphQL, lower-case ones in REST, unless they are words in both. Keys that a
 * type does not know stand beside the others in REST.
 */
function renamed(value: unknown, type: GraphQLInputObjectType, toRest: boolean): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => renamed(item, type, toRest));
  const fields = type.getFields();
  const others = type.extensions.unknownKeys as string | undefined;
  const names = new Map(
    Object.keys(fields).map((name): [string, string] => (toRest ? [name, snakeCase(name)] : [snakeCase(name), name])),
  );
  const result: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    const name = names.get(key) ?? key;
    const field = fields[toRest ? key : name];
    if (toRest && key === others) Object.assign(result, inner);
    else if (!toRest && others && (!field || name === others))
      result[others] = { ...(result[others] as object | undefined), [key]: inner };
    else result[name] = field ? renamedValue(inner, field.type, toRest) : inner;
  }
  return result;
}

function renamedValue(value: unknown, type: GraphQLInputType, toRest: boolean): unknown {
  const named = getNamedType(type);
  if (isEnumType(named) && !named.extensions.isWords && typeof value === 'string')
    return toRest ? value.toLowerCase() : value.toUpperCase();
  return isInputObjectType(named) ? renamed(value, named, toRest) : value;
}

/** The body of a request that must succeed. @throws Error with the answer of one that does not */
export async function expectOk<Answer = Record<string, unknown>>(
  app: TestApp,
  request: InjectOptions,
): Promise<Answer> {
  const response = await app.server.inject(request);
  if (response.statusCode >= 300) {
    const asked = `${request.method ?? 'GET'} ${JSON.stringify(request.url)}`;
    throw new Error(`${asked} answered ${response.statusCode}: ${response.body}`);
  }
  return (response.body === '' ? null : response.json()) as Answer;
}
