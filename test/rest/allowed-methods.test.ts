import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { allowedMethods, rememberRoutes } from '../../rest/allowed-methods.ts';

const handler = async () => null;

function serverOf(...routes: [method: string | string[], url: string][]) {
  const server = Fastify();
  rememberRoutes(server);
  for (const [method, url] of routes) server.route({ method, url, handler, exposeHeadRoute: false });
  return server;
}

describe('the methods of a path', () => {
  const server = serverOf(
    ['POST', '/v1/items'],
    [['GET', 'DELETE'], '/v1/items/:item_id'],
    ['GET', '/v1/items/:item_id/parts'],
    ['PUT', '/v1/items/first'],
    ['GET', '/files/*'],
    ['GET', '/trees/:tree/*'],
    ['OPTIONS', '*'],
  );

  it.each([
    ['/v1/items', ['OPTIONS', 'POST']],
    ['/v1/items/', ['OPTIONS', 'POST']],
    ['/v1/items?a=/v1/x', ['OPTIONS', 'POST']],
    ['/v1/items/7', ['DELETE', 'GET', 'OPTIONS']],
    ['/v1/items/first', ['DELETE', 'GET', 'OPTIONS', 'PUT']],
    ['/v1/items/7/parts', ['GET', 'OPTIONS']],
    ['/files/a/b/c', ['GET', 'OPTIONS']],
    ['/files/', ['GET', 'OPTIONS']],
    ['/trees/oak/leaf', ['GET', 'OPTIONS']],
  ])('%s are those of all its routes, sorted', (url, methods) => {
    expect(allowedMethods(server, url)).toEqual(methods);
  });

  it.each(['/v1/other', '/v1', '/', '', '/v1/items/7/parts/1', '/v1/items/7/other', '/file', '/trees', '/v2/items'])(
    '%j are none: a route for every path does not make it known',
    (url) => {
      expect(allowedMethods(server, url)).toEqual([]);
    },
  );

  it('are none of a server whose routes nobody remembers', () => {
    expect(allowedMethods(Fastify(), '/v1/items')).toEqual([]);
  });

  it('may be that for other sites alone, which does not make it known', () => {
    expect(allowedMethods(serverOf(['OPTIONS', '/v1/items']), '/v1/items')).toEqual([]);
  });
});
