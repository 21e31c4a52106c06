import type { FastifyInstance } from 'fastify';
import Fastify from 'fastify';
import helmet from 'helmet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerErrorShapes } from '../../rest/errors.ts';
import { fastifyOptions, restPlugin } from '../../rest/plugin.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

let server: FastifyInstance;
beforeAll(async () => {
  server = Fastify(fastifyOptions);
  const onFault = (error: unknown) => {
    throw error;
  };
  registerErrorShapes(server, { onFault });
  const protect = helmet();
  server.addHook('onRequest', ({ raw }, reply, done) => protect(raw, reply.raw, () => done()));
  await server.register(restPlugin, {
    schema: toySchema(),
    operationsDir: folderOf('query Health @rest(method: GET, path: "/v1/health") { health @body }'),
    principal: () => null,
    context: () => ({}),
    onFault,
    info: { title: 'Shop', version: '1', description: 'A toy.' },
  });
  await server.ready();
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
    expect((await server.inject('/docs/json')).json()).toEqual(answer.json());
  });

  it('loads nothing from outside, and its policy forbids it', async () => {
    const page = await server.inject({ url: '/docs/' });
    expect(page.statusCode).toBe(200);
    const assets = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url);
    expect(assets.length).toBeGreaterThan(3);
    for (const url of assets) {
      expect(url).not.toMatch(/^(?:https?:)?\/\//);
      expect((await server.inject(new URL(url, 'http://x/docs/').pathname)).statusCode).toBe(200);
    }
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("default-src 'self'");
    expect(policy).not.toMatch(/https:|upgrade-insecure-requests|swagger\.io/);
  });

  it('carries the name of the product, not that of a framework', async () => {
    const page = await server.inject('/docs/');
    expect(page.body).toContain('<title>Shop: reference</title>');
    expect(page.body).not.toMatch(/<title>[^<]*swagger/i);
    expect(page.body).not.toContain('favicon-32x32.png');
    const script = (await server.inject('/docs/static/swagger-initializer.js')).body;
    const [, logo = ''] = /data:image\/svg\+xml;base64,([\w+/=]+)/.exec(script) ?? [];
    expect(Buffer.from(logo, 'base64').toString()).toContain('>Shop</text>');
  });

  it('answers an unknown asset in the shape of every error', async () => {
    const answer = await server.inject('/docs/static/nope.js');
    expect([answer.statusCode, answer.json()]).toMatchObject([404, { error: 'RESOURCE_NOT_FOUND' }]);
  });
});
