import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isSameSecret } from '../access/random-token.ts';
import { isFromSameOrigin } from '../access/same-origin.ts';
import type { Services } from '../graphql/context.ts';
import { html, onward, page, pageHeadersFor } from '../identity/pages/page.ts';
import { ApiError } from '../kernel/errors.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';
import { authTypeOf, type ConnectEnd, scopesOf } from '../tools/connect-links/connect-links.ts';
import type { OpenLink } from '../tools/connect-links/open-links.ts';
import { END_USER_STATE, isOfOwnClient } from '../tools/connections/oauth-states.ts';
import { OWN_CALLBACK } from '../tools/connections/own-client.ts';
import { keyFieldsOf } from '../tools/tools/tool-shapes.ts';

interface ConnectPageOptions {
  services: Pick<Services, 'connectLinks'>;
  /** As the operator has set it. */
  publicUrl: string | undefined;
  /** Has forms without files read. */
  acceptForms: (scope: FastifyInstance) => void;
}

const MAX_FORM = 32_768;
const KEY = /^[!-~]+(?: [!-~]+)*$/;
const MAX_KEY = 8_192;
/** Where the style of the pages is, from `/connect` and from `/connections/callback`. */
const AT_CONNECT = { root: 'account/' };
const AT_CALLBACK = { root: '' };

// the address of the page has the secret of the link: nobody else gets it, not even as where somebody came from
const HEADERS = { ...pageHeadersFor(), 'referrer-policy': 'no-referrer' };

/** Whether a state that a provider sends back is that of an end user, and not that of a member. */
export const isOfEndUser = (state: unknown): state is string =>
  typeof state === 'string' && state.startsWith(END_USER_STATE);

const GONE = 'This link cannot be used. It may have expired, or it was used before, or in another browser.';

const gonePage = (at: { root: string }): string =>
  page('This link does not work', html`<p>${GONE}</p><p>Go back to where you got it, and ask for a new one.</p>`, at);

const SENTENCES: Readonly<Record<ConnectEnd['status'], (tool: string) => string>> = {
  connected: (tool) => `Your account at ${tool} is connected. You can close this page.`,
  denied: (tool) => `${tool} did not grant access. Nothing is connected. You can close this page.`,
  failed: (tool) => `${tool} could not be connected. You can close this page, and try again later.`,
};
const TITLES = { connected: 'Connected', denied: 'Not connected', failed: 'Not connected' } as const;

/**
 * Serves `/connect`, the page behind connect links. It runs no script. A look at it changes nothing: scanners of mails
 * follow links, too. Only its own form goes on, and only in the browser that it was shown in.
 */
export function addConnectPages(server: FastifyInstance, options: ConnectPageOptions): void {
  const pages = new ConnectPages(options);
  server.get('/connect', { exposeHeadRoute: false }, (request, reply) => pages.show(request, reply));
  void server.register(async (scope) => {
    options.acceptForms(scope);
    scope.post('/connect', { bodyLimit: MAX_FORM }, (request, reply) => pages.go(request, reply));
  });
}

/** What a provider sends back with the browser of an end user. */
export class ConnectReturns {
  readonly #links: Services['connectLinks'];

  constructor({ connectLinks }: Pick<Services, 'connectLinks'>) {
    this.#links = connectLinks;
  }

  async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { state, code, iss } = request.query as Record<string, unknown>;
    // a code at the address of the other client is not of the server that was asked
    const isAtOwn = request.routeOptions.url === OWN_CALLBACK;
    if (isOfOwnClient(String(state)) !== isAtOwn) return ended(reply, null, AT_CALLBACK);
    const back = { state: String(state), code: shortText(code), iss: issuerIn(iss) };
    const end = await this.#links.finish(request.caller, back).catch(throwCallerError);
    return ended(reply, end, AT_CALLBACK);
  }
}

const shortText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= 4_096 ? value : null;

/** Who a provider says that it is. What is no one text is nobody, and not the same as no word of it. */
export const issuerIn = (iss: unknown): string | null => (iss === undefined ? null : (shortText(iss) ?? ''));

class ConnectPages {
  readonly #options: ConnectPageOptions;

  constructor(options: ConnectPageOptions) {
    this.#options = options;
  }

  async show(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { link } = request.query as Record<string, unknown>;
    const open = await this.#open(request, link);
    if (!open || typeof link !== 'string') return gone(reply);
    return this.#shown(request, reply, { open, secret: link });
  }

  async go(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const fields = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const secret = fields.get('link') ?? '';
    const browser = request.caller.request.browser?.token ?? null;
    const open = await this.#open(request, secret);
    if (!open || browser === null || !this.#isOwn(request, open, fields.get('form_token'))) return gone(reply);
    const { connectLinks } = this.#options.services;
    // the cookie lasts from here as long as a sign-in at a provider takes
    request.caller.request.browser?.mark();
    if (authTypeOf(open.target) === 'oauth2') {
      const address = await connectLinks.begin(request.caller, open, browser).catch(conflictAsGone);
      return address === null ? gone(reply) : reply.headers(HEADERS).send(onward(address, AT_CONNECT.root));
    }
    const key = (fields.get('api_key') ?? '').trim();
    if (!KEY.test(key) || key.length > MAX_KEY) {
      const problem = 'This is no key: it has visible characters, and no line breaks.';
      return this.#shown(request, reply.code(422), { open, secret, problem });
    }
    const end = await connectLinks.connectByKey(request.caller, open, browser, key).catch(throwCallerError);
    return ended(reply, end, AT_CONNECT);
  }

  async #open(request: FastifyRequest, secret: unknown): Promise<OpenLink | null> {
    if (typeof secret !== 'string' || secret.length > 128) return null;
    return this.#options.services.connectLinks.open(request.caller, secret).catch(throwCallerError);
  }

  /**
   * Whether the form is that of our own page in this browser: nobody has another one finish a link by a form of their
   * own. Without a referrer, browsers send `Origin: null`; then `Sec-Fetch-Site` says where the form was.
   */
  #isOwn({ caller, headers }: FastifyRequest, { link }: OpenLink, given: string | null): boolean {
    const browser = caller.request.browser?.token ?? '';
    const isRight = isSameSecret(given ?? '', this.#options.services.connectLinks.formToken(link, browser));
    const site = headers['sec-fetch-site'];
    const isElsewhere =
      (site !== undefined && site !== 'same-origin') ||
      (headers.origin !== undefined &&
        headers.origin !== 'null' &&
        !isFromSameOrigin(headers, this.#options.publicUrl));
    return isRight && !isElsewhere;
  }

  #shown(
    request: FastifyRequest,
    reply: FastifyReply,
    { open, secret, problem = '' }: { open: OpenLink; secret: string; problem?: string },
  ): FastifyReply {
    const browser = request.caller.request.browser?.mark() ?? '';
    const formToken = this.#options.services.connectLinks.formToken(open.link, browser);
    return reply.headers(HEADERS).send(connectPage(open, { secret, formToken, problem }));
  }
}

function connectPage(
  open: OpenLink,
  { secret, formToken, problem }: { secret: string; formToken: string; problem: string },
): string {
  const { link, target, organization } = open;
  const { tool, instance } = target;
  const name = link.endUserName ?? link.endUserEmail ?? link.endUserId;
  const more = [link.endUserName === null ? null : link.endUserEmail].filter((text) => text !== null);
  const isKey = authTypeOf(target) === 'api_key';
  const scopes = isKey ? [] : scopesOf(target);
  const host = link.returnTo === null ? null : new URL(link.returnTo).host;
  const content = html`
      <p><strong>${organization}</strong> asks to use an account of yours at <strong>${tool.name}</strong>, for
        “${instance.name}”.</p>
      <p>The account will be used for <strong>${name}</strong>${more.map((text) => html` (${text})`)}. Go on only
        if that is you, and if you began this yourself.</p>
      ${
        scopes.length > 0 &&
        html`<p id="scopes">It asks ${tool.name} for these permissions:</p>
      <ul aria-labelledby="scopes">${scopes.map((scope) => html`<li><code>${scope}</code></li>`)}</ul>`
      }
      ${host !== null && html`<p>At the end you come back to <strong>${host}</strong>.</p>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <form method="post" action="connect">
        <input type="hidden" name="link" value="${secret}" />
        <input type="hidden" name="form_token" value="${formToken}" />
        ${isKey && keyField(open)}
        <button type="submit">${isKey ? 'Connect' : `Go on to ${tool.name}`}</button>
      </form>`;
  return page(`Connect ${tool.name}`, content, AT_CONNECT);
}

function keyField({ target: { tool } }: OpenLink) {
  const [field] = keyFieldsOf(tool.credentialSchema as object[]);
  return html`<label for="api-key">${field?.display_name ?? 'API key'}</label>
        <input id="api-key" name="api_key" type="password" autocomplete="off" required maxlength="${MAX_KEY}" />`;
}

const gone = (reply: FastifyReply): FastifyReply => reply.code(404).headers(HEADERS).send(gonePage(AT_CONNECT));

function ended(reply: FastifyReply, end: ConnectEnd | null, at: { root: string }): FastifyReply {
  if (!end) return reply.code(404).headers(HEADERS).send(gonePage(at));
  if (end.returnTo !== null) return reply.headers(HEADERS).send(onward(end.returnTo, at.root));
  return reply.headers(HEADERS).send(page(TITLES[end.status], html`<p>${SENTENCES[end.status](end.toolName)}</p>`, at));
}

/** The instance lost its client meanwhile: the end user can only ask for another link. */
function conflictAsGone(error: unknown): null {
  if (error instanceof ApiError && error.code === 'RESOURCE_CONFLICT') return null;
  throwCallerError(error);
}
