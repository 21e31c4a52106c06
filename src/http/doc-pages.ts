import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { projectRoot } from '../paths.ts';
import { pathOf } from './request-context.ts';

/** Where `scripts/build-docs.mjs` renders the pages. */
const folder = path.join(projectRoot, 'public', 'docs', 'pages');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.webp': 'image/webp',
  '.yaml': 'application/yaml; charset=utf-8',
};

const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-cache',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  vary: 'accept-encoding',
};

interface File {
  etag: string;
  bytes: Buffer;
  /** The same with gzip. */
  compressed: Buffer;
}

/** A file of the documentation. */
interface Entry {
  address: string;
  name: string;
  type: string;
  /** Read when it is first asked for: a start should not wait for pages that nobody reads. */
  file?: File;
}

/**
 * Serves the documentation at `/docs/` and its table of contents for language models at `/llms.txt`. Pages have
 * addresses without an ending; their Markdown is beside them, as `….md`. Links in pages are relative, so an address
 * with a slash too many or too few leads to the right one.
 */
export function addDocPages(server: FastifyInstance): void {
  const entries = readEntries();
  const answer = (request: FastifyRequest, reply: FastifyReply) => {
    const asked = pathOf(request.url);
    // as the router reads it
    const entry = entries.get(withoutLastSlash(decodeURI(asked)));
    if (!entry) return reply.callNotFound();
    const other = correctedPath(asked, entry.address);
    if (other !== null) return reply.redirect(other, 308);
    entry.file ??= readFile(path.join(folder, entry.name));
    return send(entry.file, entry.type, request, reply);
  };
  // one route for all: with one for each of 300 files, a start takes a tenth longer
  for (const address of ['/llms.txt', '/docs', '/docs/*']) server.get(address, { config: { isPublic: true } }, answer);
}

const withoutLastSlash = (address: string): string => address.replace(/\/$/, '');

/** All files by their address, without the slash at its end. */
function readEntries(): ReadonlyMap<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[path.extname(name)];
    if (!type) continue;
    const at = name.replaceAll(path.sep, '/');
    const address = at === 'llms.txt' ? '/llms.txt' : `/docs/${at.replace(/(?:(?<=^|\/)index)?\.html$/, '')}`;
    entries.set(withoutLastSlash(address), { address, name, type });
  }
  return entries;
}

function readFile(file: string): File {
  const bytes = readFileSync(file);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { etag, bytes, compressed: readFileSync(`${file}.gz`) };
}

/** Where a request should have gone, relative to where it went, or `null` if it went to the address itself. */
function correctedPath(asked: string, address: string): string | null {
  const last = address.split('/').findLast((part) => part !== '')!;
  if (asked.endsWith('/') === address.endsWith('/')) return null;
  return address.endsWith('/') ? `${last}/` : `../${last}`;
}

function send(file: File, type: string, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  void reply.headers(headers).header('etag', file.etag);
  if (request.headers['if-none-match'] === file.etag) return reply.code(304).send();
  if (!/\bgzip\b/.test(String(request.headers['accept-encoding']))) return reply.type(type).send(file.bytes);
  return reply.type(type).header('content-encoding', 'gzip').send(file.compressed);
}
