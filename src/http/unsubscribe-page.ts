import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { Services } from '../graphql/context.ts';
import { projectRoot } from '../paths.ts';
import { throwCallerError } from '../platform/postgres/faults.ts';
import { pageHeaders } from './account-pages.ts';

const textOf = (page: string) => readFileSync(path.join(projectRoot, 'public', 'account', `${page}.html`), 'utf8');

/** The field of RFC 8058, and a token of the link if a program puts it there. */
const MAX_FORM = 16_384;

/**
 * Serves the link that ends mails: GET shows a page with a button and changes nothing, because scanners of mails follow
 * links; POST ends them, by the button or by a mail program (RFC 8058). Both need no sign-in.
 * @param acceptForms has forms without files read
 */
export function addUnsubscribePage(
  server: FastifyInstance,
  { unsubscribing }: Pick<Services, 'unsubscribing'>,
  acceptForms: (scope: FastifyInstance) => void,
): void {
  const [ask, done, failed] = [textOf('unsubscribe'), textOf('unsubscribed'), textOf('unsubscribe-failed')];
  // the page posts its form to where it is
  const policy = pageHeaders['content-security-policy'].replace("form-action 'none'", "form-action 'self'");
  const headers = { ...pageHeaders, 'content-security-policy': policy, 'content-type': 'text/html; charset=utf-8' };
  const url = '/account/unsubscribe';
  server.get(url, (_request, reply) => reply.headers(headers).send(ask));
  void server.register(async (scope) => {
    acceptForms(scope);
    scope.post<{ Querystring: { token?: unknown } }>(url, { bodyLimit: MAX_FORM }, async (request, reply) => {
      const { token } = request.query;
      const isDone =
        typeof token === 'string' && (await unsubscribing.end(request.caller, token).catch(throwCallerError));
      return reply
        .code(isDone ? 200 : 400)
        .headers(headers)
        .send(isDone ? done : failed);
    });
  });
}
