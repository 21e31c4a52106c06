import type { FastifyInstance, FastifyReply, FastifyRequest, preValidationAsyncHookHandler } from 'fastify';
import type { Services } from '../graphql/context.ts';
import type { LogoutInput } from '../identity/sso/saml/logout-profile.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';

/** Bytes of a form: a message of 1 MiB in base64, whose signs are encoded once more, and the rest. */
const MAX_FORM = 2_097_152;

/** Bytes of a form with a logout token, which names a user or a session and little else. */
const MAX_LOGOUT_TOKEN = 65_536;

type ForProvider = FastifyRequest<{ Params: { idp_id: string } }>;

/**
 * Serves what is for identity providers and browsers, and not for programs: the metadata of the service as XML, and the
 * messages of SAML sign-outs.
 * @param acceptForms has forms without files read as `URLSearchParams`
 */
export function addSsoRoutes(
  server: FastifyInstance,
  { sso, singleLogout, backchannelLogout }: Pick<Services, 'sso' | 'singleLogout' | 'backchannelLogout'>,
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
    addBackchannelLogout(scope, backchannelLogout);
    scope.post<{ Params: { idp_id: string } }>(logout, { bodyLimit: MAX_FORM }, (request, reply) => {
      const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
      return receive(request, reply, { fields });
    });
  });
}

/** OpenID Connect Back-Channel Logout 1.0, section 2.8: 200, or 400 whatever is wrong. Neither may be kept. */
function addBackchannelLogout(scope: FastifyInstance, backchannelLogout: Services['backchannelLogout']): void {
  const path = '/v1/auth/sso/backchannel-logout/:idp_id';
  scope.post<{ Params: { idp_id: string } }>(path, { bodyLimit: MAX_LOGOUT_TOKEN }, async (request, reply) => {
    const [token, ...others] = request.body instanceof URLSearchParams ? request.body.getAll('logout_token') : [];
    const isAccepted =
      token !== undefined &&
      others.length === 0 &&
      (await backchannelLogout.receive(request.caller, request.params.idp_id, token).catch(throwCallerError));
    reply.header('cache-control', 'no-store');
    return isAccepted
      ? reply.code(200).send()
      : reply.code(400).send({ error: 'invalid_request', error_description: 'The logout token was not accepted.' });
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
