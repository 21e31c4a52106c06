import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { projectRoot } from '../paths.ts';
import { CALLBACK, OWN_CALLBACK } from '../tools/connections/own-client.ts';
import { pageHeaders } from './account-pages.ts';
import { type ConnectReturns, isOfEndUser } from './connect-pages.ts';

const publicFile = (...parts: string[]): string => readFileSync(path.join(projectRoot, 'public', ...parts), 'utf8');

/** With the usual policy the page would lose the window that opened it. */
const headers = { ...pageHeaders, 'cross-origin-opener-policy': 'unsafe-none' };

/**
 * Serves `/connections/callback` and `/connections/own-callback`, to which providers send users back. The page is the
 * same for every code. It exchanges the code with the token of the application that opened it, which must be of the
 * service's own origin or one of `CORS_ORIGINS`; `*` names none. What comes back for an end user is finished at once,
 * without a script.
 */
export function addCallbackPage(
  server: FastifyInstance,
  { corsOrigins, ofEndUsers }: { corsOrigins: readonly string[]; ofEndUsers: ConnectReturns },
): void {
  const origins = corsOrigins.filter((origin) => origin !== '*' && /^https?:\/\/[\w.:[\]-]+$/.test(origin));
  const page = publicFile('connections', 'callback.html').replace('{{origins}}', origins.join(' '));
  const serve = (url: string, text: string, type: string) =>
    server.get(url, (_request, reply) => reply.headers(headers).type(`${type}; charset=utf-8`).send(text));
  for (const place of [CALLBACK, OWN_CALLBACK])
    server.get(place, { exposeHeadRoute: false }, (request, reply) => {
      if (isOfEndUser((request.query as Record<string, unknown>).state)) return ofEndUsers.answer(request, reply);
      return reply.headers(headers).type('text/html; charset=utf-8').send(page);
    });
  serve('/connections/assets/callback.js', publicFile('connections', 'callback.js'), 'text/javascript');
  serve('/connections/assets/account.css', publicFile('account', 'account.css'), 'text/css');
}
