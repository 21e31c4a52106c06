import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type AuthorizationServer, type NextStep, oauthProblem } from '../identity/oauth/authorization-server.ts';
import { consentPage, oauthPages } from '../identity/oauth/oauth-pages.ts';
import { onward, pageHeadersFor } from '../identity/pages/page.ts';
import { forbidden, unauthenticated } from '../kernel/errors.ts';
import { callerError, throwCallerError } from '../platform/postgres/faults.ts';
import type { PageSessions } from './page-sessions.ts';

interface OAuthRouteOptions {
  server: AuthorizationServer;
  sessions: PageSessions;
  /** Has forms without files read. */
  acceptForms: (scope: FastifyInstance) => void;
}

/** The most that oidc-provider itself would read. */
const MAX_FORM = 57_344;
const CONSENT = 'consent';
const PREFIX = '/oauth';
const DEVICE = '/oauth/device';
/** Where the token of a form is an access token: ours are signed, and kept under another name. */
const ABOUT_TOKENS = new Set(['/oauth/token/introspection', '/oauth/token/revocation']);
const DISCOVERY = ['oauth-authorization-server', 'openid-configuration'];

type ForInteraction = FastifyRequest<{ Params: { uid: string } }>;

/** Serves the authorization server at `/oauth`, and what tells programs about it (RFC 8414, RFC 9728). */
export function addOAuthRoutes(app: FastifyInstance, options: OAuthRouteOptions): void {
  const routes = new OAuthRoutes(options);
  const { server } = options;
  // of an issuer with a path, the document is at an address that ends with the path
  for (const name of DISCOVERY)
    app.get(`/.well-known/${name}/oauth`, (request, reply) =>
      routes.pass(request, reply, `/.well-known/${name}`, null),
    );
  app.get('/.well-known/oauth-protected-resource', () => server.resourceMetadata('api'));
  app.get('/.well-known/oauth-protected-resource/mcp', () => server.resourceMetadata('mcp'));
  void app.register(async (scope) => {
    options.acceptForms(scope);
    const limit = { bodyLimit: MAX_FORM };
    scope.get<{ Params: { uid: string } }>('/oauth/interaction/:uid', (request, reply) => routes.ask(request, reply));
    scope.post<{ Params: { uid: string } }>('/oauth/interaction/:uid', limit, (request, reply) =>
      routes.decide(request, reply),
    );
    for (const url of ABOUT_TOKENS) scope.post(url, limit, (request, reply) => routes.answer(request, reply));
  });
  void app.register(async (scope) => {
    // oidc-provider reads the forms itself, and no more than 56 KiB
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    scope.get('/oauth/*', { exposeHeadRoute: false }, (request, reply) => routes.answer(request, reply));
    scope.post('/oauth/*', (request, reply) => routes.answer(request, reply));
  });
  // programs learn from a refusal where tokens are from (RFC 9728)
  app.addHook('onSend', (request, reply, payload, done) => {
    if (reply.statusCode === 401 && reply.getHeader('www-authenticate') === 'Bearer') {
      const about = pathIsMcp(request.url) ? '/mcp' : '';
      const metadata = `${server.publicUrl}/.well-known/oauth-protected-resource${about}`;
      reply.header('www-authenticate', `Bearer resource_metadata="${metadata}"`);
    }
    done(null, payload);
  });
}

const pathIsMcp = (url: string): boolean => /^\/mcp(?:[/?]|$)/.test(url);

class OAuthRoutes {
  readonly #server: AuthorizationServer;
  readonly #sessions: PageSessions;

  constructor({ server, sessions }: OAuthRouteOptions) {
    this.#server = server;
    this.#sessions = sessions;
  }

  /** Whatever oidc-provider answers by itself. */
  async answer(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const caller = await this.#sessions.callerOf(request);
    const [path = '', query] = request.url.split('?', 2);
    if (path !== DEVICE) return this.pass(request, reply, request.url.slice(PREFIX.length), caller);
    // nobody is asked about a device before it is known who they are
    if (!caller) return this.#toSignIn(reply, DEVICE);
    if (request.method === 'POST' && !this.#sessions.isOwn(request)) throw forbidden('user:update');
    await this.#server.demandCodes(caller);
    // a link never fills in the code: whoever was sent one has to look at their device
    const at = query?.startsWith('user_code') ? '/device' : request.url.slice(PREFIX.length);
    return this.pass(request, reply, at.replace(/([?&])user_code=[^&]*/g, '$1'), caller);
  }

  async pass(
    request: FastifyRequest,
    reply: FastifyReply,
    at: string,
    caller: Awaited<ReturnType<PageSessions['callerOf']>>,
  ): Promise<unknown> {
    const { raw } = request;
    if (request.body instanceof URLSearchParams)
      Object.assign(raw, { body: await this.#formOf(request, request.body) });
    const answer = await this.#server.answerTo(raw, reply.raw, at, caller).catch(throwCallerError);
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    await answer();
    return reply;
  }

  async #formOf({ url }: FastifyRequest, form: URLSearchParams): Promise<Record<string, string | string[]>> {
    const fields: Record<string, string | string[]> = {};
    // a field that is there twice stays so: oidc-provider refuses it
    for (const name of new Set(form.keys())) {
      const values = form.getAll(name);
      fields[name] = values.length > 1 ? values : values[0]!;
    }
    if (ABOUT_TOKENS.has(url.split('?', 1)[0]!) && typeof fields.token === 'string')
      fields.token = await this.#server.storedToken(fields.token);
    return fields;
  }

  /** What waits for the user: the page to sign in, that of the consent, or the way on. */
  async ask(request: ForInteraction, reply: FastifyReply): Promise<unknown> {
    const caller = await this.#sessions.callerOf(request);
    try {
      return this.#show(request, reply, await this.#server.next(request.raw, reply.raw, caller));
    } catch (error) {
      return await this.#problem(reply, error);
    }
  }

  #show(request: ForInteraction, reply: FastifyReply, step: NextStep): FastifyReply {
    if ('signIn' in step) return this.#toSignIn(reply, `${PREFIX}/interaction/${request.params.uid}`);
    if ('go' in step) return reply.code(303).header('location', step.go).send();
    const formToken = this.#sessions.formToken(request, `${CONSENT} ${request.params.uid}`);
    return reply.headers(pageHeadersFor()).send(consentPage({ ...step.consent, formToken }));
  }

  /** The form of the consent. */
  async decide(request: ForInteraction, reply: FastifyReply): Promise<unknown> {
    const caller = await this.#sessions.callerOf(request);
    if (!caller) throw unauthenticated();
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    this.#sessions.demandOwn(request, `${CONSENT} ${request.params.uid}`, form.get('form_token'));
    try {
      const to = await this.#server.decide(request.raw, reply.raw, caller, {
        allow: form.get('decision') === 'allow',
        scopes: form.getAll('scope'),
        workspaceIds: form.getAll('workspace'),
      });
      return reply.headers(pageHeadersFor()).send(onward(to, '../../account/'));
    } catch (error) {
      return await this.#problem(reply, error);
    }
  }

  #toSignIn(reply: FastifyReply, to: string): FastifyReply {
    const { pathname } = new URL(this.#server.publicUrl);
    const base = pathname.replace(/\/$/, '');
    return reply
      .code(303)
      .header('location', `${base}/account/sign-in?return_to=${encodeURIComponent(to)}`)
      .send();
  }

  async #problem(reply: FastifyReply, error: unknown): Promise<FastifyReply> {
    const problem = await oauthProblem(error);
    if (!problem) throw callerError(error);
    const text = oauthPages.error(problem).replaceAll('../account/', '../../account/');
    return reply.code(400).headers(pageHeadersFor()).send(text);
  }
}
