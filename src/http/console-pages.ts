import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { weightsOf } from '../access/browser.ts';
import { projectRoot } from '../paths.ts';

/** Where `scripts/build-console.mjs` puts the console. */
const folder = path.join(projectRoot, 'public', 'console');

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
};

const headers = {
  'x-content-type-options': 'nosniff',
  vary: 'accept-encoding',
};

const pageHeaders = {
  ...headers,
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  // nor is it kept to go back to after a sign-out
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
};

/** The name of an asset is made of its content: one that was read never has to be asked for again. */
const FOREVER = 'public, max-age=31536000, immutable';

const ENCODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
];

interface Asset {
  type: string;
  /** The bytes by the name of their encoding; the plain bytes have the name ''. */
  bytes: ReadonlyMap<string, Buffer>;
}

/**
 * Serves the console below `/console/`. Its one page answers every address there that names no file. It refers to its
 * files relatively, so that it works below any path of a proxy.
 */
export function addConsolePages(server: FastifyInstance): void {
  const assets = path.join(folder, 'assets');
  const names = new Set(existsSync(assets) ? readdirSync(assets) : []);
  const read = new Map<string, Asset>();
  let page: string | undefined;
  const config = { isPublic: true };
  const sendPage = (below: string, reply: FastifyReply) => {
    if (names.size === 0) return reply.callNotFound();
    page ??= readFileSync(path.join(folder, 'index.html'), 'utf8');
    const way = '../'.repeat(below.split('/').length - 1) || './';
    const text = page.replaceAll('"./assets/', `"${way}assets/`);
    return reply.headers(pageHeaders).type('text/html; charset=utf-8').send(text);
  };
  server.get('/console', { config }, (request, reply) => {
    const [asked = '', query] = request.url.split('?', 2);
    if (asked.endsWith('/')) return sendPage('', reply);
    return reply.redirect(query === undefined ? 'console/' : `console/?${query}`, 308);
  });
  server.get<{ Params: { name: string } }>('/console/assets/:name', { config }, (request, reply) => {
    const { name } = request.params;
    const type = TYPES[path.extname(name)];
    if (!type || !names.has(name)) return reply.callNotFound();
    const asset = read.get(name) ?? readAsset(name, type, names);
    read.set(name, asset);
    return send(asset, request, reply);
  });
  server.get('/console/*', { config }, (request, reply) => {
    const [asked = ''] = request.url.split('?', 1);
    const below = asked.slice('/console/'.length);
    // an address of the page has no ending: what has one is a file that is not there
    return below.startsWith('assets/') || /\.[^/]*$/.test(below) ? reply.callNotFound() : sendPage(below, reply);
  });
}

/** What the console asks, by ids: for services that take nothing else from browsers. */
export function consoleDocuments(): ReadonlyMap<string, string> {
  const file = path.join(folder, 'documents.json');
  if (!existsSync(file)) return new Map();
  return new Map(Object.entries(JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>));
}

/** @param names all files, so that nothing is looked for that is not there */
function readAsset(name: string, type: string, names: ReadonlySet<string>): Asset {
  const variants = ENCODINGS.filter(({ ending }) => names.has(name + ending));
  const bytes = new Map([['', readFileSync(path.join(folder, 'assets', name))]]);
  for (const variant of variants)
    bytes.set(variant.name, readFileSync(path.join(folder, 'assets', name + variant.ending)));
  return { type, bytes };
}

function send({ type, bytes }: Asset, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const accepted = weightsOf(String(request.headers['accept-encoding'] ?? ''));
  const encoding = ENCODINGS.find(({ name }) => bytes.has(name) && (accepted.get(name) ?? 0) > 0)?.name ?? '';
  void reply.headers(headers).header('cache-control', FOREVER).type(type);
  if (encoding !== '') void reply.header('content-encoding', encoding);
  return reply.send(bytes.get(encoding));
}
