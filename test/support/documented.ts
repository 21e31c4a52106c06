import { subscribe } from 'node:diagnostics_channel';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';
import type { OpenApiDocument } from '../../rest/openapi.ts';

interface Documented {
  content?: Record<string, { schema?: object }>;
  $ref?: string;
}

/** What a server answered beside its OpenAPI document, one line each. */
const surprises = new WeakMap<FastifyInstance, Set<string>>();

/** A judge by the schemas of a document. Descriptions may name formats and keywords that it does not know. */
export function judgeOf(document: OpenApiDocument): Ajv2020 {
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateFormats: true,
    unicodeRegExp: true,
    // takes longer than it saves
    code: { optimize: false },
  });
  addFormats.default(ajv);
  // whole numbers are told by their bounds
  for (const format of ['int32', 'int64', 'password']) ajv.addFormat(format, true);
  ajv.addSchema({ $id: 'document', components: document.components });
  return ajv;
}

/** The same schema with references that lead into the judge's document. */
export const within = (schema: object): object =>
  JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"document#/')) as object;

/**
 * Watches every server that is made from now on: each answer of a route must have a status and a body that the document
 * lists.
 */
subscribe('fastify.initialization', (message) => {
  const { fastify } = message as { fastify: FastifyInstance };
  const found = new Set<string>();
  surprises.set(fastify, found);
  fastify.addHook('onSend', async (request, reply, payload) => {
    const { operation, template } = request.routeOptions.config;
    if (!operation || !template || request.method === 'HEAD') return payload;
    const body = typeof payload === 'string' ? payload : null;
    const surprise = checkers.get(fastify)?.(template, request.method, reply.statusCode, body);
    if (surprise) found.add(`${request.method} ${template} answered ${reply.statusCode}: ${surprise}`);
    return payload;
  });
});

const checkers = new WeakMap<FastifyInstance, Checker>();
/** By the text of the document: few apps of a process have another one, and compiling its schemas takes seconds. */
const known = new Map<string, Checker>();

/**
 * Reads the document of a server that is ready; from now on its answers are held against it. From an address of its
 * own: tests count requests.
 */
export async function readDocument(server: FastifyInstance): Promise<void> {
  const { body } = await server.inject({ url: '/openapi.json', remoteAddress: '192.0.2.255' });
  const check = known.get(body) ?? checker(JSON.parse(body) as OpenApiDocument);
  known.set(body, check);
  checkers.set(server, check);
}

/** @throws Error with what the server answered beside its document */
export function expectDocumented(server: FastifyInstance): void {
  const found = [...(surprises.get(server) ?? [])];
  if (found.length > 0) throw new Error(`The OpenAPI document does not know these answers:\n${found.join('\n')}`);
}

/** What an answer has beside the document; `null` for nothing. */
type Checker = (template: string, method: string, status: number, body: string | null) => string | null;

/** What a value has beside a schema; `null` for nothing. */
type SchemaJudge = (value: unknown) => string | null;

function checker(document: OpenApiDocument): Checker {
  const judge = judgeOf(document);
  const responsesOf = new Map<string, (body: string | null) => string | null>();
  // by its text: most routes answer the same faults, and a schema takes milliseconds to compile
  const compiled = new Map<string, SchemaJudge>();
  const judgeBy = (schema: object): SchemaJudge => {
    const text = JSON.stringify(schema);
    let known = compiled.get(text);
    if (!known) {
      const validate = judge.compile(within(schema));
      known = (value) => (validate(value) ? null : judge.errorsText(validate.errors));
      compiled.set(text, known);
    }
    return known;
  };
  return (template, method, status, body) => {
    const key = `${method} ${template} ${status}`;
    let verdict = responsesOf.get(key);
    if (!verdict) {
      verdict = verdictOf(document, judgeBy, document.paths[template]?.[method.toLowerCase()], status);
      responsesOf.set(key, verdict);
    }
    return verdict(body);
  };
}

function verdictOf(
  document: OpenApiDocument,
  judgeBy: (schema: object) => SchemaJudge,
  operation: Record<string, unknown> | undefined,
  status: number,
): (body: string | null) => string | null {
  const listed = (operation?.responses as Record<string, Documented> | undefined)?.[status];
  const name = listed?.$ref?.split('/').at(-1);
  const response = name ? (document.components.responses as Record<string, Documented>)[name] : listed;
  if (!response) return () => 'the status is not listed';
  const schema = response.content?.['application/json']?.schema;
  if (!schema) return (body) => (body && !response.content ? 'a body where none is listed' : null);
  const faultsOf = judgeBy(schema);
  return (body) => {
    const faults = body === null ? null : faultsOf(JSON.parse(body));
    return faults && `${faults} in ${body!.slice(0, 300)}`;
  };
}
