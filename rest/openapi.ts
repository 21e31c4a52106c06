import { FORM_TYPE } from './form-fields.ts';
import { answerHeaders, component, failureHeaders, headersOf, requestHeaders, successHeaders } from './header-docs.ts';
import { JsonSchemas } from './json-schema.ts';
import type { CompiledOperation, ResponseBody } from './operation.ts';
import type { BodyParameter, Parameter } from './parameters.ts';
import { type ApiReference, fileOf, inReadingOrder } from './reference.ts';
import type { JsonSchema } from './schema-parts.ts';
import type { ObjectShape } from './selection.ts';
import { failureResponse, failureStatuses } from './statuses.ts';

export interface OpenApiOptions {
  info: {
    title: string;
    version: string;
    description: string;
    license?: { name: string; identifier: string };
    contact?: { name: string; url?: string; email?: string };
  };
  /** URL under which clients reach the service. Without it, the origin of the document. */
  publicUrl?: string | undefined;
}

type JsonObject = { [key: string]: unknown };

/** An OpenAPI 3.1 document, ready to be serialised. */
export interface OpenApiDocument extends JsonObject {
  openapi: '3.1.0';
  info: OpenApiOptions['info'];
  paths: Record<string, Record<string, JsonObject>>;
  components: JsonObject & { schemas: Record<string, JsonSchema> };
}

const json = (schema: JsonSchema, example?: unknown): JsonObject => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
});

const errorSchemas: Record<string, JsonSchema> = {
  Error: {
    type: 'object',
    description: 'Every error except invalid input.',
    properties: {
      error: { type: 'string', description: 'Error code for programs.' },
      message: { type: 'string', description: 'Error message for people.' },
      details: { type: 'object', additionalProperties: true, description: 'Depends on the error code. May be empty.' },
      timestamp: { type: 'string', description: 'ISO 8601 in UTC with microseconds, without a zone suffix.' },
      status_code: { type: 'integer', description: 'The HTTP status.' },
    },
    required: ['error', 'message', 'details', 'timestamp', 'status_code'],
  },
  ValidationError: {
    type: 'object',
    description: 'Invalid parameters or body. Lists all failures at once.',
    properties: {
      detail: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            type: { type: 'string' },
            loc: {
              type: 'array',
              items: { type: ['string', 'integer'] },
              description: 'Path to the value. Starts with path, query, header or body.',
            },
            msg: { type: 'string' },
            input: { description: 'The value as sent, with secrets redacted and long values shortened.' },
            ctx: { type: 'object', additionalProperties: true },
          },
          required: ['type', 'loc', 'msg', 'input'],
        },
      },
    },
    required: ['detail'],
  },
};

/** Derives the OpenAPI document of the REST API from its compiled operations. */
export function buildOpenApi(
  operations: readonly CompiledOperation[],
  reference: ApiReference,
  options: OpenApiOptions,
): OpenApiDocument {
  const schemas = new JsonSchemas();
  Object.assign(schemas.components, structuredClone(errorSchemas));
  const paths: OpenApiDocument['paths'] = {};
  const statuses = [...new Set(operations.flatMap(failureStatuses))].sort((a, b) => a - b);
  for (const operation of inReadingOrder(operations, reference)) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: pathItem(operation, reference, schemas),
    };
  }
  return {
    openapi: '3.1.0',
    info: options.info,
    servers: [{ url: options.publicUrl ?? '/' }],
    tags: reference.groups.map(({ name, description }) => ({ name, ...(description ? { description } : {}) })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      parameters: requestHeaders,
      headers: answerHeaders,
      responses: Object.fromEntries(statuses.map(sharedResponse)),
      schemas: schemas.components,
    },
  };
}

function pathItem(
  operation: CompiledOperation,
  { groups, examples, answers = {} }: ApiReference,
  schemas: JsonSchemas,
): JsonObject {
  const text = operation.comment || operation.description;
  const [summary = ''] = text.split(/\n|(?<=\.) /, 1);
  const failures = failureStatuses(operation).map(
    (status) => [status, component('responses', failureResponse(status).name)] as const,
  );
  return {
    operationId: operation.name,
    tags: groups.filter(({ file }) => file === fileOf(operation)).map(({ name }) => name),
    ...(summary ? { summary: summary.replace(/\.$/, '') } : {}),
    ...(text ? { description: text } : {}),
    ...(operation.isAddition ? { 'x-addition': true } : {}),
    'x-error-set': operation.errors,
    ...(operation.isPublic ? { security: [] } : {}),
    parameters: [
      ...operation.parameters.map((parameter) => parameterObject(parameter, schemas)),
      ...headersOf(operation),
    ],
    ...(operation.body
      ? {
          requestBody: {
            required: operation.body.isRequired,
            ...(operation.body.description ? { description: operation.body.description } : {}),
            content: contentOf(operation.body, schemas, examples[operation.name]),
          },
        }
      : {}),
    responses: {
      [operation.status]: {
        ...success(operation, schemas, answers[operation.name]),
        headers: successHeaders(operation),
      },
      ...(operation.response.redirect === null ? {} : { 303: redirection }),
      ...Object.fromEntries(failures),
    },
  };
}

const redirection: JsonObject = {
  description: 'The browser goes on to this address.',
  headers: { Location: { required: true, schema: { type: 'string', format: 'uri' } } },
};

/** A form has its lists as repeated fields or between commas, and its objects as JSON. */
function contentOf({ type, fileField, takesForm }: BodyParameter, schemas: JsonSchemas, example: unknown): JsonObject {
  const schema = schemas.inputObject(type, fileField);
  if (takesForm) return { ...json(schema, example), [FORM_TYPE]: { schema } };
  if (fileField === null) return json(schema, example);
  return { 'multipart/form-data': { schema, ...(example === undefined ? {} : { example }) } };
}

function sharedResponse(status: number): [string, JsonObject] {
  const { name, description, examples } = failureResponse(status);
  const schema = component('schemas', status === 422 ? 'ValidationError' : 'Error');
  const shown = Object.fromEntries(Object.entries(examples).map(([code, value]) => [code, { value }]));
  const headers = failureHeaders(status);
  return [name, { description, headers, content: { 'application/json': { schema, examples: shown } } }];
}

function parameterObject(parameter: Parameter, schemas: JsonSchemas): JsonObject {
  const schema = schemas.input(parameter.type, parameter.constraints, true);
  return {
    name: parameter.wireName,
    in: parameter.in,
    required: parameter.isRequired,
    ...(parameter.description ? { description: parameter.description } : {}),
    ...(parameter.isCommaList ? { style: 'form', explode: false } : {}),
    schema: parameter.defaultValue === undefined ? schema : { ...schema, default: parameter.defaultValue },
  };
}

/** The shape without the field that becomes the `id` of a frame, or the address of a redirect. */
const dataOf = ({ shape, eventId, redirect }: ResponseBody): ObjectShape | null =>
  shape && { ...shape, fields: shape.fields.filter(({ key }) => key !== eventId && key !== redirect) };

function success({ response }: CompiledOperation, schemas: JsonSchemas, answer: unknown): JsonObject {
  switch (response.kind) {
    case 'empty':
      return { description: 'Success without a body.' };
    case 'nothing':
      return { description: 'Success. The body is `null`.', content: json({ type: 'null' }) };
    case 'events':
      return {
        description: 'A stream of server-sent events. The schema describes `data`.',
        content: { 'text/event-stream': { schema: schemas.output(response.type, dataOf(response)) } },
      };
    case 'lines':
      return {
        description: 'Lines of JSON, each as soon as it is known. The schema describes one.',
        content: { 'application/x-ndjson': { schema: schemas.output(response.type, dataOf(response)) } },
      };
    case 'value':
      return { description: 'Success.', content: json(schemas.output(response.type, dataOf(response)), answer) };
  }
}
