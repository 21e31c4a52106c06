import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathPrefixOf } from '../access/oauth-tokens.ts';
import { type AuthorizationServer, type NextStep, oauthProblem } from '../identity/oauth/authorization-server.ts';
import { choicePage, consentPage, oauthPagesOf } from '../identity/oauth/oauth-pages.ts';
import type { OAuthPages } from '../identity/oauth/oauth-provider.ts';
import { onward, pageHeadersFor } from '../identity/pages/page.ts';
import { forbidden, unauthenticated } from '../kernel/errors.ts';
import { shownAddress } from '../kernel/shown-address.ts';
import { callerError, throwCallerError } from '../platform/postgres/faults.ts';
import type { PageSessions } from './page-sessions.ts';

interface OAuthRouteOptions {
  server: AuthorizationServer;
  sessions: PageSessions;
  /** Has forms without files read. */
  acceptForms: (scope: FastifyInstance, mostFields?: number) => void;
}

/** For a form about tokens: those of many scopes are long. */
const MAX_FORM = 57_344;
/** Fields of a consent: a request may name all scopes, and a user all workspaces that are offered. */
const MOST_CHOICES = 512;
/** All parameters of a request together: strangers send them, and most are kept for a while. */
const MAX_PARAMETERS = 4_096;
const CONSENT = 'consent';
const PREFIX = '/oauth';
const DEVICE = '/oauth/device';
const AUTHORIZATION = '/oauth/auth';
/** What a program must not tell a browser: as a part of an address it would be in histories and logs. */
const NOT_FOR_BROWSERS = ['client_secret', 'client_assertion', 'code_verifier'];
/** Where the token of a form is an access token: ours are signed, and kept under another name. */
const ABOUT_TOKENS = new Set(['/oauth/token/introspection', '/oauth/token/revocation']);

/** What oidc-provider answers by itself. Its own router takes other spellings of these too, which would pass by us. */
const PASSED: readonly { method: 'GET' | 'POST'; url: string; isKept?: boolean }[] = [
  { method: 'GET', url: '/oauth/.well-known/oauth-authorization-server' },
  { method: 'GET', url: '/oauth/.well-known/openid-configuration' },
  { method: 'GET', url: '/oauth/jwks' },
  { method: 'GET', url: AUTHORIZATION, isKept: true },
  { method: 'GET', url: '/oauth/auth/:uid' },
  { method: 'POST', url: '/oauth/device/auth', isKept: true },
  { method: 'POST', url: '/oauth/request', isKept: true },
  { method: 'POST', url: '/oauth/token' },
  { method: 'POST', url: '/oauth/token/introspection' },
  { method: 'POST', url: '/oauth/token/revocation' },
  { method: 'GET', url: '/oauth/me' },
  { method: 'POST', url: '/oauth/me' },
];
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
    options.acceptForms(scope, MOST_CHOICES);
    const limit = { bodyLimit: MAX_FORM };
    scope.get<{ Params: { uid: string } }>('/oauth/interaction/:uid', (request, reply) => routes.ask(request, reply));
    scope.post<{ Params: { uid: string } }>('/oauth/interaction/:uid', limit, (request, reply) =>
      routes.decide(request, reply),
    );
  });
  void app.register(async (scope) => {
    options.acceptForms(scope);
    for (const { method, url, isKept = false } of PASSED)
      scope.route({
        method,
        url,
        exposeHeadRoute: false,
        bodyLimit: ABOUT_TOKENS.has(url) ? MAX_FORM : MAX_PARAMETERS,
        handler: (request, reply) => routes.answer(request, reply, isKept),
      });
    scope.post(AUTHORIZATION, { bodyLimit: MAX_PARAMETERS }, (request, reply) => routes.askByForm(request, reply));
    scope.get(DEVICE, { exposeHeadRoute: false }, (request, reply) => routes.showDevice(request, reply));
    scope.get(`${DEVICE}/:uid`, { exposeHeadRoute: false }, (request, reply) => routes.resumeDevice(request, reply));
    scope.post(DEVICE, { bodyLimit: MAX_PARAMETERS }, (request, reply) => routes.enterCode(request, reply));
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

/** Whether the path of a request is written exactly as its route: nothing escaped, no slash at the end. */
function isSpelledAs({ url, routeOptions }: FastifyRequest): boolean {
  const [path = ''] = url.split('?', 1);
  const route = routeOptions.url ?? '';
  if (!route.endsWith('/:uid')) return path === route;
  const folder = route.slice(0, -':uid'.length);
  return path.startsWith(folder) && /^[\w-]{1,64}$/.test(path.slice(folder.length));
}

class OAuthRoutes {
  readonly #server: AuthorizationServer;
  readonly #sessions: PageSessions;

  constructor({ server, sessions }: OAuthRouteOptions) {
    this.#server = server;
    this.#sessions = sessions;
  }

  /**
   * What oidc-provider answers by itself.
   * @param isKept whether it keeps the request for a while
   */
  async answer(request: FastifyRequest, reply: FastifyReply, isKept: boolean): Promise<unknown> {
    if (!isSpelledAs(request)) return reply.callNotFound();
    if ((request.url.split('?', 2)[1] ?? '').length > MAX_PARAMETERS) return this.#tooLong(reply);
    if (isKept) await this.#server.demandRequest(request.caller);
    const caller = await this.#sessions.callerOf(request);
    return this.pass(request, reply, request.url.slice(PREFIX.length), caller);
  }

  /**
   * A request that a form sends (OpenID Connect Core, 3.1.2.1): it goes on as a link to the same would. No cookie comes
   * with forms of other sites, but with the link that follows; so a form can do nothing that a link cannot.
   */
  async askByForm(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (!isSpelledAs(request)) return reply.callNotFound();
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    if (request.url !== AUTHORIZATION || form.size === 0)
      return this.#invalid(reply, 'The parameters of a request by POST are the fields of a form, and in no address.');
    const shown = NOT_FOR_BROWSERS.find((name) => form.has(name));
    if (shown) return this.#invalid(reply, `A program sends ${shown} by itself, and never by a browser.`);
    const query = form.toString();
    if (query.length > MAX_PARAMETERS) return this.#tooLong(reply);
    return this.#go(reply.header('cache-control', 'no-store'), `${AUTHORIZATION}?${query}`);
  }

  /** The page for the code of a device. A link never fills in the code: whoever was sent one looks at their device. */
  async showDevice(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (!isSpelledAs(request)) return reply.callNotFound();
    const caller = await this.#sessions.callerOf(request);
    // nobody is asked about a device before it is known who they are
    if (!caller) return this.#go(reply, this.#signInPage(DEVICE));
    await this.#server.demandRequest(request.caller);
    await this.#server.demandCodes(caller);
    return this.pass(request, reply, '/device', caller);
  }

  /** What comes after the consent for a device. */
  async resumeDevice(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (!isSpelledAs(request)) return reply.callNotFound();
    const caller = await this.#sessions.callerOf(request);
    if (!caller) return this.#go(reply, this.#signInPage(DEVICE));
    // what the session began is gone with it
    if (!(await this.#server.hasSession(request.raw, reply.raw, caller))) return this.#go(reply, DEVICE);
    return this.pass(request, reply, request.url.slice(PREFIX.length), caller);
  }

  /** A code that somebody has typed, or confirmed. */
  async enterCode(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (!isSpelledAs(request)) return reply.callNotFound();
    const caller = await this.#sessions.callerOf(request);
    if (!caller) return this.#go(reply, this.#signInPage(DEVICE));
    if (!this.#sessions.isOwn(request)) throw forbidden('user:update');
    // only the page itself sends codes: there it has no query, and a session that its form belongs to
    const isOfPage = request.url === DEVICE && (await this.#server.hasSession(request.raw, reply.raw, caller));
    if (!isOfPage) return this.#go(reply, DEVICE);
    const wasRight = await this.#server.takeCode(request.raw, caller);
    try {
      return await this.pass(request, reply, '/device', caller);
    } finally {
      await wasRight();
    }
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
    const from = { at, caller, address: shownAddress(request.caller.request.ip) };
    const answer = await this.#server.answerTo(raw, reply.raw, from).catch(throwCallerError);
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    await answer();
    return reply;
  }

  async #formOf({ routeOptions }: FastifyRequest, form: URLSearchParams): Promise<Record<string, string | string[]>> {
    const fields: Record<string, string | string[]> = {};
    // a field that is there twice stays so: oidc-provider refuses it
    for (const name of new Set(form.keys())) {
      const values = form.getAll(name);
      fields[name] = values.length > 1 ? values : values[0]!;
    }
    if (ABOUT_TOKENS.has(routeOptions.url ?? '') && typeof fields.token === 'string')
      fields.token = await this.#server.storedToken(fields.token);
    return fields;
  }

  /** What waits for the user: the page to sign in, that of the consent, or the way on. */
  async ask(request: ForInteraction, reply: FastifyReply): Promise<unknown> {
    const caller = await this.#sessions.callerOf(request);
    try {
      const { organization } = { ...(request.query as Record<string, unknown>) };
      const chosen = typeof organization === 'string' ? organization : null;
      return this.#show(request, reply, await this.#server.next(request.raw, reply.raw, caller, chosen));
    } catch (error) {
      return await this.#problem(reply, error);
    }
  }

  #show(request: ForInteraction, reply: FastifyReply, step: NextStep): FastifyReply {
    if ('signIn' in step) return this.#go(reply, this.#signInPage(`${PREFIX}/interaction/${request.params.uid}`));
    if ('go' in step) return reply.code(303).header('location', step.go).send();
    if ('choice' in step) return reply.headers(pageHeadersFor()).send(choicePage(step.choice));
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
        organizationId: form.get('organization'),
      });
      return reply.headers(pageHeadersFor()).send(onward(to, '../../account/'));
    } catch (error) {
      return await this.#problem(reply, error);
    }
  }

  #signInPage(to: string): string {
    return `/account/sign-in?return_to=${encodeURIComponent(to)}`;
  }

  /** Leads to a page of the service. */
  #go(reply: FastifyReply, to: string): FastifyReply {
    return reply
      .code(303)
      .header('location', `${pathPrefixOf(this.#server.publicUrl)}${to}`)
      .send();
  }

  #tooLong(reply: FastifyReply): FastifyReply {
    return this.#invalid(reply, `The parameters of a request have at most ${MAX_PARAMETERS} bytes.`);
  }

  #invalid(reply: FastifyReply, description: string): FastifyReply {
    return this.#failed(reply, { error: 'invalid_request', description });
  }

  async #problem(reply: FastifyReply, error: unknown): Promise<FastifyReply> {
    const problem = await oauthProblem(error);
    if (!problem) throw callerError(error);
    return this.#failed(reply, problem);
  }

  #failed(reply: FastifyReply, problem: Parameters<OAuthPages['error']>[0]): FastifyReply {
    const pages = oauthPagesOf(`${pathPrefixOf(this.#server.publicUrl)}/account/`);
    return reply.code(400).headers(pageHeadersFor()).send(pages.error(problem));
  }
}
