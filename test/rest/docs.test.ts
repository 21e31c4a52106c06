import type { FastifyInstance } from 'fastify';
import Fastify from 'fastify';
import helmet from 'helmet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerErrorShapes } from '../../rest/errors.ts';
import { Facade } from '../../rest/facade.ts';
import { fastifyOptions, restPlugin } from '../../rest/plugin.ts';
import { folderOf, removeFolders, toyRunner, toySchema } from './toy.ts';

let server: FastifyInstance;
/** The paths that strangers may ask for. */
const open: unknown[] = [];

async function serverOf(title: string): Promise<FastifyInstance> {
  const made = Fastify(fastifyOptions);
  made.addHook('onRoute', ({ url, config }) => void (config?.isPublic && open.push(url)));
  const onFault = (error: unknown) => {
    throw error;
  };
  registerErrorShapes(made, { onFault });
  const protect = helmet();
  made.addHook('onRequest', ({ raw }, reply, done) => protect(raw, reply.raw, () => done()));
  const schema = toySchema();
  await made.register(restPlugin, {
    facade: new Facade(schema, folderOf('query Health @rest(method: GET, path: "/v1/health") { health @body }')),
    runner: toyRunner(schema),
    principal: () => null,
    context: () => ({}),
    onFault,
    info: { title, version: '1', description: 'A toy.' },
  });
  await made.ready();
  return made;
}

/** The logo that the page shows. */
async function logoOf(of: FastifyInstance): Promise<string> {
  const script = (await of.inject('/docs/api/static/swagger-initializer.js')).body;
  const [, logo = ''] = /data:image\/svg\+xml;base64,([\w+/=]+)/.exec(script) ?? [];
  return Buffer.from(logo, 'base64').toString();
}

beforeAll(async () => {
  server = await serverOf('Shop');
});
afterAll(async () => {
  await server.close();
  removeFolders();
});

describe('the API reference', () => {
  it('serves the document to anybody', async () => {
    const answer = await server.inject('/openapi.json');
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.json()).toMatchObject({
      openapi: '3.1.0',
      paths: { '/v1/health': { get: { operationId: 'Health' } } },
    });
    expect((await server.inject('/docs/api/json')).json()).toEqual(answer.json());
  });

  it('loads nothing from outside, and its policy forbids it', async () => {
    const page = await server.inject({ url: '/docs/api/' });
    expect(page.statusCode).toBe(200);
    const assets = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url);
    expect(assets.length).toBeGreaterThan(3);
    for (const url of assets) {
      expect(url).not.toMatch(/^(?:https?:)?\/\//);
      expect((await server.inject(new URL(url, 'http://x/docs/api/').pathname)).statusCode).toBe(200);
    }
    const policy = String(page.headers['content-security-policy']);
    expect(policy).not.toMatch(/https:|upgrade-insecure-requests|swagger\.io/);
    expect(policy).toBe(
      "default-src 'self'; base-uri 'self'; font-src 'self' data:; frame-ancestors 'self'; img-src 'self' data:; " +
        "object-src 'none'; script-src 'self' ; script-src-attr 'none'; style-src 'self' ;",
    );
  });

  it('may be read without signing in', async () => {
    expect(open).toContain('/openapi.json');
  });

  it('shows all operations folded, each with an address, and asks nobody whether the document is valid', async () => {
    const script = (await server.inject('/docs/api/static/swagger-initializer.js')).body;
    expect(script).toContain('{"docExpansion":"none","deepLinking":true,"validatorUrl":null}');
  });

  it('has the colours of the product, and wraps long paths', async () => {
    const css = (await server.inject('/docs/api/static/theme/reference.css')).body;
    expect(css).toContain('.swagger-ui .topbar { background: #10273d; }');
    expect(css).toContain('.swagger-ui .opblock-summary-path { word-break: break-word; }');
  });

  it('has the logo of the product as its icon', async () => {
    const icon = await server.inject('/docs/api/static/theme/icon.svg');
    expect(icon.headers['content-type']).toBe('image/svg+xml');
    expect(icon.body).toBe(
      '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" viewBox="0 0 40 40">' +
        '<rect width="40" height="40" rx="9" fill="#0b5cad"/><path d="M20 7 33 14 20 21 7 14Z" fill="#fff"/>' +
        '<path d="M7 20l13 7 13-7M7 26l13 7 13-7" fill="none" stroke="#9cc9ff" stroke-width="2.6" ' +
        'stroke-linejoin="round"/></svg>',
    );
    expect((await server.inject('/docs/api/')).body).toContain(
      '<link rel="icon" type="image/svg+xml" href="./static/theme/icon.svg" sizes="any" />',
    );
  });

  it('carries the name of the product, not that of a framework', async () => {
    const page = await server.inject('/docs/api/');
    expect(page.body).toContain('<title>Shop: reference</title>');
    expect(page.body).not.toMatch(/<title>[^<]*swagger/i);
    expect(page.body).not.toContain('favicon-32x32.png');
    expect(await logoOf(server)).toContain('>Shop</text>');
  });

  it('has a logo as wide as the name, whatever is in it', async () => {
    const logo = await logoOf(server);
    expect(logo).toMatch(/^<svg [^>]*width="100" height="40" viewBox="0 0 100 40"><rect .*<\/svg>$/);
    expect(logo).toContain('<text x="52" y="27" textLength="44" lengthAdjust="spacingAndGlyphs" font-family=');
    expect(logo).toContain('font-size="20" font-weight="600" fill="#fff">');
    const other = await serverOf('R&D <now> &');
    expect(await logoOf(other)).toContain('>R&amp;D &lt;now> &amp;</text>');
    expect(await logoOf(other)).toMatch(/^<svg [^>]*width="177" .* textLength="121"/);
    expect((await other.inject('/docs/api/')).statusCode).toBe(200);
    await other.close();
  });

  it('answers an unknown asset in the shape of every error', async () => {
    const answer = await server.inject('/docs/api/static/nope.js');
    expect([answer.statusCode, answer.json()]).toMatchObject([404, { error: 'RESOURCE_NOT_FOUND' }]);
  });
});
