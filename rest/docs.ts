import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyPluginAsync } from 'fastify';
import type { OpenApiDocument } from './openapi.ts';

export interface DocsOptions {
  document: OpenApiDocument;
}

/** Serves `/openapi.json`, serialised once, and the API reference at `/docs`, with nothing from outside. */
export const docsPlugin: FastifyPluginAsync<DocsOptions> = async (server, { document }) => {
  const text = JSON.stringify(document);
  server.get('/openapi.json', { config: { isPublic: true } }, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(text),
  );
  await server.register(swagger, { mode: 'static', specification: { document: document as never } });
  await server.register(swaggerUi, {
    routePrefix: '/docs',
    uiConfig: { docExpansion: 'none', deepLinking: true, validatorUrl: null },
    staticCSP: true,
    // its own policy lets other hosts in, and would break plain HTTP
    transformStaticCSP: (policy) =>
      policy.replace(/ (?:https:|validator\.swagger\.io)(?=[ ;])/g, '').replace(/ ?upgrade-insecure-requests;/, ''),
  });
};
