type Json = Record<string, unknown>;

/** A small document with a key, a reference in a circle, and something that no action has. */
export const pets = (more: { server?: string; paths?: Json; components?: Json } = {}): Json => ({
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1.2', description: 'A shop of pets.' },
  servers: [{ url: more.server ?? 'https://pets.example.com/v1/' }],
  security: [{ key: [] }],
  paths: {
    '/pets/{petId}': {
      parameters: [{ name: 'petId', in: 'path', required: true, schema: { type: 'integer', minimum: 1 } }],
      get: {
        operationId: 'getPet',
        summary: 'Get a pet',
        parameters: [
          {
            name: 'fields[]',
            in: 'query',
            schema: { type: 'array', items: { type: 'string', enum: ['name', 'owner'] } },
          },
          { name: 'X-Trace', in: 'header', schema: { type: 'string', maxLength: 40 } },
          { name: 'session', in: 'cookie', schema: { type: 'string' } },
        ],
        responses: {
          200: {
            description: 'It.',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
          },
        },
      },
      delete: { operationId: 'deletePet', responses: { 204: { description: 'Gone.' } } },
    },
    '/pets': {
      post: {
        operationId: 'addPet',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
        },
        responses: { 201: { description: 'Made.' } },
      },
    },
    '/pets/{petId}/photo': {
      put: {
        requestBody: { required: true, content: { 'image/png': {} } },
        responses: { 204: { description: 'Stored.' } },
      },
    },
    ...more.paths,
  },
  components: {
    securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
    schemas: {
      Pet: {
        type: 'object',
        required: ['name'],
        properties: {
          id: { type: 'integer', readOnly: true },
          name: { type: 'string', minLength: 1 },
          parent: { $ref: '#/components/schemas/Pet' },
        },
      },
      ...more.components,
    },
  },
});
