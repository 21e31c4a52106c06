import type { FastifyInstance } from 'fastify';
import type { Services } from '../services.ts';

/** Serves what SAML providers have to know of the service: XML, for each provider. */
export function addSsoRoutes(server: FastifyInstance, { sso }: Pick<Services, 'sso'>): void {
  server.get<{ Params: { idp_id: string } }>('/v1/auth/sso/metadata/:idp_id', async (request, reply) =>
    reply.type('application/samlmetadata+xml; charset=utf-8').send(await sso.metadata(request.params.idp_id)),
  );
}
