import type { FastifyInstance } from 'fastify';

/**
 * Serves JSON Schemas at `/schemas/<name>.json` to everybody: what they describe is the same for all.
 * @param schemas by name
 */
export function addSchemaDocuments(server: FastifyInstance, schemas: Readonly<Record<string, object>>): void {
  for (const [name, schema] of Object.entries(schemas)) {
    const text = `${JSON.stringify(schema, null, 2)}\n`;
    server.get(`/schemas/${name}.json`, (_request, reply) =>
      reply
        .headers({ 'cache-control': 'no-cache', 'access-control-allow-origin': '*' })
        .type('application/schema+json; charset=utf-8')
        .send(text),
    );
  }
}
