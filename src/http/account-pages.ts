import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { projectRoot } from '../paths.ts';

const folder = path.join(projectRoot, 'public', 'account');

/**
 * The pages that links in mails open, and those for who cannot sign in (that to sign in is in `session-pages.ts`). A
 * page shows a button or a form. Only its script, on a
 * click, uses up the token of the link.
 */
const pages = ['verify-email', 'reset-password', 'accept-invitation', 'forgot-password', 'register'];
const assets = {
  'account.js': 'text/javascript; charset=utf-8',
  'sign-in.js': 'text/javascript; charset=utf-8',
  'passkeys.js': 'text/javascript; charset=utf-8',
  'factors.js': 'text/javascript; charset=utf-8',
  'account.css': 'text/css; charset=utf-8',
};

/**
 * Only the page's own script and style run, nothing frames it, and the link with its token is not sent anywhere else.
 */
export const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
};

/** The policy of a page that runs a script of its own, and sends its forms to this service without one. */
export const formPageHeaders = {
  ...pageHeaders,
  'content-security-policy': pageHeaders['content-security-policy'].replace("form-action 'none'", "form-action 'self'"),
  'referrer-policy': 'same-origin',
};

/**
 * Serves the pages behind the links in mails: `/account/verify-email`, `/account/reset-password`,
 * `/account/accept-invitation`; and `/account/forgot-password`, `/account/register`. They are the same for every token,
 * so a mail scanner that follows a link neither uses
 * up its token nor learns anything.
 */
export function addAccountPages(server: FastifyInstance): void {
  const serve = (url: string, file: string, type: string) => {
    const text = readFileSync(path.join(folder, file), 'utf8');
    server.get(url, (_request, reply) => reply.headers(pageHeaders).type(type).send(text));
  };
  for (const page of pages) serve(`/account/${page}`, `${page}.html`, 'text/html; charset=utf-8');
  for (const [file, type] of Object.entries(assets)) serve(`/account/assets/${file}`, file, type);
}
