import type { FastifyInstance, FastifyReply, FastifyRequest, preValidationAsyncHookHandler } from 'fastify';
import type { Services } from '../graphql/context.ts';
import type { LogoutInput } from '../identity/sso/saml/logout-profile.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';

/** Bytes of a form: a message of 1 MiB in base64, whose signs are encoded once more, and the rest. */
const MAX_FORM = 2_097_152;

type ForProvider = FastifyRequest<{ Params: { idp_id: string } }>;

/**
 * Serves what is for identity providers and browsers, and not for programs: the metadata of the service as XML, and the
 * messages of SAML sign-outs.
 * @param acceptForms has forms without files read as `URLSearchParams`
 */
export function addSsoRoutes(
  server: FastifyInstance,
  { sso, singleLogout }: Pick<Services, 'sso' | 'singleLogout'>,
  acceptForms: (scope: FastifyInstance) => void,
): void {
  server.get<{ Params: { idp_id: string } }>('/v1/auth/sso/metadata/:idp_id', async (request, reply) =>
    reply.type('application/samlmetadata+xml; charset=utf-8').send(await sso.metadata(request.params.idp_id)),
  );
  const receive = async (request: ForProvider, reply: FastifyReply, input: LogoutInput) => {
    const answer = await singleLogout.receive(request.caller, request.params.idp_id, input).catch(throwCallerError);
    reply.header('cache-control', 'no-store');
    if (answer.isPage && !request.caller.request.browser?.wantsPage) return reply.code(204).send();
    return reply.code(303).header('location', answer.redirectUrl).send();
  };
  const logout = '/v1/auth/sso/logout/:idp_id';
  // the signature is over the query as it was sent
  server.get<{ Params: { idp_id: string } }>(logout, { exposeHeadRoute: false }, (request, reply) =>
    receive(request, reply, { query: /\?(.*)$/s.exec(request.url)?.[1] ?? '' }),
  );
  void server.register(async (scope) => {
    acceptForms(scope);
    scope.post<{ Params: { idp_id: string } }>(logout, { bodyLimit: MAX_FORM }, (request, reply) => {
      const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
      return receive(request, reply, { fields });
    });
  });
}

/**
 * Runs before the operation to which an OpenID provider sends browsers back: takes those whose user it refused to where
 * they came from.
 */
export function refusedSignIns({ sso }: Pick<Services, 'sso'>): preValidationAsyncHookHandler {
  return async (request, reply) => {
    if (!request.caller.request.browser?.wantsPage) return;
    const { error, code, state } = request.query as Record<string, unknown>;
    if (typeof error !== 'string' || code !== undefined || typeof state !== 'string') return;
    const to = await sso.refused(request.caller, state).catch(throwCallerError);
    await reply.code(303).headers({ location: to, 'cache-control': 'no-store' }).send();
  };
}
