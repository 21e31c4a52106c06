import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { prefersPage } from '../access/browser.ts';
import { projectRoot } from '../paths.ts';

const folder = path.join(projectRoot, 'public', 'start');
const assets = { 'start.css': 'text/css; charset=utf-8', 'icon.svg': 'image/svg+xml' };

const headers = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-cache',
  'x-frame-options': 'DENY',
};

export interface StartPageOptions {
  title: string;
  version: string;
  /** The address at which clients reach the service, if configured. */
  publicUrl: string | undefined;
  /** The listening address, for requests without a usable host. */
  listeningUrl: () => string;
  hasGraphiQL: boolean;
}

const GRAPHIQL =
  '<li><a href="/graphql">GraphiQL</a> <span>Ask the GraphQL schema in the browser.</span></li>\n          ';

/** What a program finds at `/`, as paths below the address of the service. */
const INDEX = {
  documentation: '/docs/',
  documentation_for_models: '/llms.txt',
  reference: '/docs/api',
  rest: '/v1',
  openapi: '/openapi.json',
  graphql: '/graphql',
  asyncapi: '/asyncapi.json',
  sign_in: '/account/sign-in',
  console: '/console/',
  health: '/healthz',
  readiness: '/readyz',
  metrics: '/metrics',
};

/**
 * Serves `/`: to browsers a page that says what this service is, with its endpoints and the first calls against this
 * very origin; to all other clients the same links as JSON.
 */
export function addStartPage(server: FastifyInstance, options: StartPageOptions): void {
  const page = readFileSync(path.join(folder, 'index.html'), 'utf8').replace(
    '{{graphiql}}',
    options.hasGraphiQL ? GRAPHIQL : '',
  );
  server.get('/', async (request, reply) => {
    reply.header('vary', 'accept');
    const origin = originOf(request, options);
    if (!prefersPage(request.headers.accept)) {
      const links = Object.entries(INDEX).map(([name, at]) => [name, `${origin}${at}`]);
      return { name: options.title, version: options.version, ...Object.fromEntries(links) };
    }
    const html = page.replaceAll('{{origin}}', origin);
    return reply.headers(headers).type('text/html; charset=utf-8').send(html);
  });
  for (const [file, type] of Object.entries(assets)) {
    const text = readFileSync(path.join(folder, file), 'utf8');
    server.get(`/start/${file}`, (_request, reply) => reply.headers(headers).type(type).send(text));
  }
}

/** A host that is safe in a page and in a shell without escaping. */
const HOST = /^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

function originOf({ headers: { host = '' }, protocol }: FastifyRequest, options: StartPageOptions): string {
  if (options.publicUrl) return options.publicUrl.replace(/\/$/, '');
  return HOST.test(host) ? `${protocol}://${host}` : options.listeningUrl();
}
