import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { OpenApiDocument } from '../../rest/openapi.ts';
import { expectDocumented, readDocument } from './documented.ts';

const thing = {
  type: 'object',
  properties: { id: { type: 'string' }, size: { type: 'integer' } },
  required: ['id'],
  additionalProperties: false,
};
const json = (schema: object) => ({ content: { 'application/json': { schema } } });
const document = {
  components: {
    schemas: { Thing: thing },
    responses: { Gone: json({ type: 'object', properties: { error: { const: 'GONE' } }, required: ['error'] }) },
  },
  paths: {
    '/things/{id}': {
      get: {
        responses: {
          200: json({ $ref: '#/components/schemas/Thing' }),
          204: { description: 'nothing' },
          410: { $ref: '#/components/responses/Gone' },
        },
      },
    },
  },
} as unknown as OpenApiDocument;

let server: FastifyInstance;
afterEach(() => server.close());

/** A server whose one route answers this, and what the judge says of it. */
async function verdictOn(status: number, body: unknown, isDocumented = true): Promise<string> {
  server = Fastify();
  server.get('/openapi.json', async () => document);
  const config = { operation: {}, template: isDocumented ? '/things/{id}' : '/others' };
  server.get('/things/:id', { config: config as never }, async (_request, reply) =>
    reply.code(status).send(body === null ? undefined : body),
  );
  await server.ready();
  await readDocument(server);
  await server.inject('/things/1');
  try {
    expectDocumented(server);
    return 'as documented';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('the judge of answers', () => {
  it.each<[string, number, unknown]>([
    ['a documented body', 200, { id: 'a', size: 1 }],
    ['a body without what is optional', 200, { id: 'a' }],
    ['an error that the document lists by reference', 410, { error: 'GONE' }],
    ['no body where none is listed', 204, null],
  ])('says nothing against %s', async (_, status, body) => {
    expect(await verdictOn(status, body)).toBe('as documented');
  });

  it.each<[string, number, unknown, RegExp]>([
    ['a status that is not listed', 201, { id: 'a' }, /GET \/things\/\{id\} answered 201: the status is not listed/],
    ['a field that is not listed', 200, { id: 'a', secret: 1 }, /answered 200: .*additional properties.*"secret":1/],
    ['a missing field', 200, { size: 1 }, /answered 200: .*required property 'id'/],
    ['a value of a wrong type', 200, { id: 'a', size: 1.5 }, /answered 200: .*size must be integer/],
    ['a wrong error', 410, { error: 'OTHER' }, /answered 410: .*error must be equal to constant/],
  ])('finds %s', async (_, status, body, finding) => {
    expect(await verdictOn(status, body)).toMatch(finding);
  });

  it('finds a route that the document does not have', async () => {
    expect(await verdictOn(200, { id: 'a' }, false)).toMatch(/GET \/others answered 200: the status is not listed/);
  });

  it('remembers what it found until the server is asked', async () => {
    await verdictOn(201, { id: 'a' });
    expect(() => expectDocumented(server)).toThrow('the status is not listed');
  });
});
