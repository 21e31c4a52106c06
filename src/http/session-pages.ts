import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { credentialOf } from '../access/authentication.ts';
import { outcomeOf } from '../data/activity.ts';
import type { Services } from '../graphql/context.ts';
import { FactorRequired, wrongFactor } from '../identity/factors/factor-refusals.ts';
import type { SessionCaller } from '../identity/oauth/authorization-server.ts';
import { type AccountFacts, accountPage } from '../identity/pages/account-home.ts';
import { secondStepPage } from '../identity/pages/factor-pages.ts';
import { type Html, html, onward, page, pageHeadersFor } from '../identity/pages/page.ts';
import { isUnstorable } from '../kernel/constraints.ts';
import { ApiError, forbidden, unauthenticated, wrongPassword } from '../kernel/errors.ts';
import { projectRoot } from '../paths.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';
import { formPageHeaders } from './account-pages.ts';
import { FACTORS } from './factor-pages.ts';
import { type PageSessions, returnPath } from './page-sessions.ts';

type PageServices = Pick<
  Services,
  | 'auth'
  | 'authentication'
  | 'factorSignIn'
  | 'browserSessions'
  | 'sessionCodes'
  | 'applicationGrants'
  | 'ownTokens'
  | 'factors'
  | 'passkeys'
  | 'registration'
  | 'users'
>;

interface SessionPageOptions {
  services: PageServices;
  sessions: PageSessions;
  /** Has forms without files read. */
  acceptForms: (scope: FastifyInstance) => void;
  /** The path of the address of the service, without a slash at its end. */
  base: () => string;
}

const MAX_FORM = 16_384;
const SIGN_IN = 'sign-in';
const ACCOUNT = 'account';

const fieldsOf = ({ body }: FastifyRequest): URLSearchParams =>
  body instanceof URLSearchParams ? body : new URLSearchParams();

/** What no name, no password and no code can be: empty, endless, or nothing that a database stores. */
const isNoText = (text: string): boolean => text === '' || text.length > 1_024 || isUnstorable(text);

/** Signs browsers in and out, and shows people what has access to their account. */
export function addSessionPages(server: FastifyInstance, options: SessionPageOptions): void {
  const pages = new SessionPages(options);
  server.get('/account/sign-in', (request, reply) => pages.showSignIn(request, reply));
  server.get('/account', (request, reply) => pages.show(request, reply));
  void server.register(async (scope) => {
    options.acceptForms(scope);
    const limit = { bodyLimit: MAX_FORM };
    scope.post('/account/sign-in', limit, (request, reply) => pages.signIn(request, reply));
    scope.post('/account/session', limit, (request, reply) => pages.adopt(request, reply));
    scope.post('/account/session/code', limit, (request, reply) => pages.handOver(request, reply));
    scope.post('/account', limit, (request, reply) => pages.change(request, reply));
  });
}

class SessionPages {
  readonly #options: SessionPageOptions;
  readonly #signInText: string;

  constructor(options: SessionPageOptions) {
    this.#options = options;
    this.#signInText = readFileSync(path.join(projectRoot, 'public', 'account', 'sign-in.html'), 'utf8');
  }

  showSignIn(request: FastifyRequest, reply: FastifyReply, problem = '') {
    const { sessions, services } = this.#options;
    const query = { ...(request.query as Record<string, unknown>) };
    const fields = fieldsOf(request);
    const to = fields.get('return_to') ?? query.return_to;
    const address = this.#frontEnd(fields.get('redirect_uri') ?? query.redirect_uri);
    const form = html`${problem && html`<p class="problem" role="alert">${problem}</p>`}
        <form method="post" action="sign-in">
          <input type="hidden" name="form_token" value="${sessions.strangersToken(request, SIGN_IN)}" />
          <input type="hidden" name="return_to" value="${returnPath(to)}" />
          ${this.#redirectField(address)}
          <label for="plain-username">User name or e-mail address</label>
          <input id="plain-username" name="username" type="text" autocomplete="username" required maxlength="320" />
          <label for="plain-password">Password</label>
          <input id="plain-password" name="password" type="password" autocomplete="current-password" required />
          <button type="submit">Sign in</button>
        </form>`.text;
    // whoever makes an account or chooses a new password comes back to the same sign-in
    const kept = new URLSearchParams();
    if (typeof to === 'string') kept.set('return_to', returnPath(to));
    if (address !== null) kept.set('redirect_uri', address);
    const link = (page: string, label: string) =>
      html`<a href="${page}${kept.size > 0 && `?${kept.toString()}`}">${label}</a>`.text;
    const links = [
      link('forgot-password', 'Forgot your password?'),
      ...(services.registration.isOpen ? [link('register', 'Create an account')] : []),
    ];
    const text = this.#signInText.replace('{{form}}', () => form).replace('{{links}}', () => links.join(' · '));
    return reply.headers(formPageHeaders).type('text/html; charset=utf-8').send(text);
  }

  /** Where a sign-in ends, if that is a front end that the operator has listed. */
  #frontEnd(given: unknown): string | null {
    return typeof given === 'string' && this.#options.services.sessionCodes.mayEndAt(given) ? given : null;
  }

  #redirectField(given: unknown): Html | false {
    const address = this.#frontEnd(given);
    return address !== null && html`<input type="hidden" name="redirect_uri" value="${address}" />`;
  }

  /** The form of the page without a script. */
  async signIn(request: FastifyRequest, reply: FastifyReply) {
    const { services, sessions } = this.#options;
    const fields = fieldsOf(request);
    sessions.demandOwn(request, SIGN_IN, fields.get('form_token'));
    let token: string;
    try {
      token = await this.#tokenFor(request, fields).catch(throwCallerError);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return this.#showRefusal(request, reply, error);
    }
    const principal = await services.authentication.authenticate(credentialOf(`Bearer ${token}`));
    if (!principal || principal.token) throw unauthenticated();
    const caller = { request: request.caller.request, principal };
    const address = this.#frontEnd(fields.get('redirect_uri'));
    let to = `${this.#options.base()}${returnPath(fields.get('return_to'))}`;
    if (address === null) await this.#open(request, reply, caller);
    else to = await services.sessionCodes.handOver(caller, address).catch(throwCallerError);
    return reply.headers(pageHeadersFor()).send(onward(to));
  }

  /** The access token of a sign-in: by a password, or by the second factor that follows it. */
  async #tokenFor({ caller }: FastifyRequest, fields: URLSearchParams): Promise<string> {
    const { auth, factorSignIn } = this.#options.services;
    const [challenge, code] = [fields.get('challenge'), fields.get('code') ?? ''];
    if (challenge !== null) {
      if (isNoText(challenge) || isNoText(code)) throw wrongFactor();
      return (await factorSignIn.complete(caller, { challenge, code })).accessToken;
    }
    const [username, password] = [fields.get('username') ?? '', fields.get('password') ?? ''];
    if (isNoText(username) || isNoText(password)) throw wrongPassword('E-mail or password is wrong.');
    return (await auth.login(caller, { username, password })).accessToken;
  }

  /** Asks for the second factor, or again for what was wrong. */
  #showRefusal(request: FastifyRequest, reply: FastifyReply, error: ApiError) {
    const { sessions } = this.#options;
    const fields = fieldsOf(request);
    const { statusCode } = outcomeOf(error);
    const isAsked = error instanceof FactorRequired;
    const challenge = isAsked ? error.challenge.token : fields.get('challenge');
    if (challenge === null || (!isAsked && error.code !== 'AUTHENTICATION_FAILED'))
      return this.showSignIn(request, reply.code(statusCode), error.message);
    const text = secondStepPage({
      challenge,
      formToken: sessions.strangersToken(request, SIGN_IN),
      returnTo: returnPath(fields.get('return_to')),
      redirectUri: this.#redirectField(fields.get('redirect_uri')),
      problem: isAsked ? '' : error.message,
    });
    return reply
      .code(isAsked ? 200 : statusCode)
      .headers(pageHeadersFor())
      .send(text);
  }

  /** What the script of the page calls when somebody has signed in: the session becomes that of the browser. */
  async adopt(request: FastifyRequest, reply: FastifyReply) {
    await this.#open(request, reply, this.#signedInByPage(request));
    return reply.code(204).send();
  }

  /** The same for a sign-in that ends at a front end: the session becomes that of whoever brings the code. */
  async handOver(request: FastifyRequest, reply: FastifyReply) {
    const caller = this.#signedInByPage(request);
    const address = fieldsOf(request).get('redirect_uri') ?? '';
    const to = await this.#options.services.sessionCodes.handOver(caller, address).catch(throwCallerError);
    return reply.header('cache-control', 'no-store').send({ redirect_to: to });
  }

  /** Who has just signed in by a page of this origin, and holds the tokens still. */
  #signedInByPage(request: FastifyRequest): SessionCaller {
    const { principal } = request.caller;
    if (!principal) throw unauthenticated();
    if (principal.token || !this.#options.sessions.isOwn(request) || request.headers['x-csrf'] !== '1')
      throw forbidden('user:update', 'Only a page of this service opens a session of a browser.');
    return { request: request.caller.request, principal };
  }

  async #open(request: FastifyRequest, reply: FastifyReply, caller: SessionCaller): Promise<void> {
    const { services, sessions } = this.#options;
    const former = sessions.cookieOf(request);
    const userAgent = request.headers['user-agent'] ?? '';
    sessions.set(reply, await services.browserSessions.open(caller, { former, userAgent }).catch(throwCallerError));
  }

  async show(request: FastifyRequest, reply: FastifyReply) {
    const caller = await this.#options.sessions.callerOf(request);
    const base = this.#options.base();
    if (!caller) return reply.code(303).header('location', `${base}/account/sign-in?return_to=/account`).send();
    const facts = await this.#facts(request, caller).catch(throwCallerError);
    return reply.headers(pageHeadersFor()).send(accountPage(facts));
  }

  async #facts(request: FastifyRequest, caller: SessionCaller): Promise<AccountFacts> {
    const { services, sessions } = this.#options;
    const { userId, orgId, sessionId } = caller.principal;
    const [user, living, applications, tokens, factors, passkeys] = await Promise.all([
      services.users.view(userId, orgId),
      services.browserSessions.list(caller),
      services.applicationGrants.ofUser(userId),
      services.ownTokens.list(caller),
      services.factors.view(caller),
      services.passkeys.list(caller),
    ]);
    const formToken = sessions.formToken(request, ACCOUNT);
    const factorFormToken = sessions.formToken(request, FACTORS);
    const has = { applications, tokens, factors, passkeys };
    return { email: user.email, sessionId, sessions: living, ...has, formToken, factorFormToken };
  }

  #endOf(caller: SessionCaller, kind: string | undefined, id: string): (() => Promise<unknown>) | null {
    const { auth, browserSessions, applicationGrants, ownTokens } = this.#options.services;
    if (kind === 'sign_out') return () => auth.logout(caller);
    if (kind === 'session') return () => browserSessions.end(caller, id);
    if (kind === 'application') return () => applicationGrants.revokeOwn(caller, id);
    return kind === 'token' ? () => ownTokens.revoke(caller, id) : null;
  }

  /** A button of the page: one thing ends. */
  async change(request: FastifyRequest, reply: FastifyReply) {
    const { sessions } = this.#options;
    const fields = fieldsOf(request);
    const caller = await sessions.callerOf(request);
    if (!caller) throw unauthenticated();
    sessions.demandOwn(request, ACCOUNT, fields.get('form_token'));
    const [kind, id = ''] = (fields.get('end') ?? '').split(' ');
    const end = this.#endOf(caller, kind, id);
    if (!end) throw new ApiError('INVALID_REQUEST', { reason: 'form_fields' });
    await end().catch(throwCallerError);
    const isOut = kind === 'sign_out' || (kind === 'session' && id === caller.principal.sessionId);
    if (!isOut) return reply.code(303).header('location', `${this.#options.base()}/account`).send();
    sessions.clear(reply);
    const done = page('You are signed out', html`<p><a href="account/sign-in">Sign in again</a></p>`, {
      root: 'account/',
    });
    return reply.headers(pageHeadersFor()).send(done);
  }
}
