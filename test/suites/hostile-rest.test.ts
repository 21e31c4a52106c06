import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { hostileHeads, hostilePaths } from '../support/hostile.ts';
import { answered, faultsOf, pollution } from '../support/hostile-answers.ts';
import { gentlestFirst, operations, routeOf } from '../support/operations.ts';
import { partsOf } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
/** Loses its workspace, its people and its session to the requests that are valid but for their oddness. */
let doomed: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  doomed = await createWorld(app);
});
afterAll(() => app.close());
afterEach(() => expect(pollution()).toBeNull());

// streams of events would stay open: they are tried with what does not start one
const ordered = gentlestFirst().filter(({ type }) => type !== 'subscription');

describe('never a 5xx, never a hang, always one of the two shapes', () => {
  test.each(ordered.map((operation) => [routeOf(operation), operation] as const))('%s', async (_title, operation) => {
    const valid = () => partsOf(operation, doomed, { token: doomed.accounts.owner.accessToken, requiredOnly: false });
    expect(await faultsOf(app, hostileHeads(operation, valid))).toEqual([]);
  });

  test('paths that no route has', async () => {
    const urls = [
      '/',
      '/v1',
      '/v1/',
      '//v1/auth/me',
      '/v1//auth/me',
      '/V1/auth/me',
      '/v1/auth/me/%00',
      '/%',
      '/%ff',
      '/..%2f',
      `/${'x'.repeat(20_000)}`,
      '/__proto__',
      '/v1/orgs//workspaces',
      '*',
      '/graphql/x',
    ];
    const requests = urls.flatMap((url) =>
      (['GET', 'POST', 'DELETE', 'OPTIONS'] as const).map((method) => ({
        what: `${method} ${url.slice(0, 40)}`,
        request: { method, url, headers: world.as('owner') },
      })),
    );
    expect(await faultsOf(app, requests)).toEqual([]);
  });

  test('authorization headers of every kind', async () => {
    const values = [
      'Bearer',
      'Bearer ',
      `Bearer ${'a'.repeat(100_000)}`,
      'Bearer a.b.c',
      'Bearer \u00e9',
      'Basic Og==',
      '\0',
      `Bearer ${Buffer.from('{"alg":"none"}').toString('base64url')}..`,
      `Bearer ${world.accounts.owner.accessToken}x`,
    ];
    const requests = values.map((authorization) => ({
      what: authorization.slice(0, 30),
      request: { url: '/v1/auth/me', headers: { authorization } },
    }));
    expect(await faultsOf(app, requests)).toEqual([]);
  });
});
describe('what an unknown id of a path gets', () => {
  test.each(
    operations
      .filter(({ path, type, isPublic }) => path.includes('{') && type === 'query' && !isPublic)
      .map((operation) => [routeOf(operation), operation] as const),
  )('%s: 403, 404 or 422 whatever stands there', async (_title, operation) => {
    const valid = () => partsOf(operation, world, { token: world.accounts.owner.accessToken });
    for (const { what, request } of hostilePaths(operation, valid)) {
      if (what.includes('%2') || what.endsWith('=')) continue;
      expect([400, 403, 404, 422], `${what}`).toContain((await answered(app, request)).statusCode);
    }
  });
});
