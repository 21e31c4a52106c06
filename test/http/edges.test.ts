import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';

const ORIGIN = 'https://app.example.test';

let app: TestApp;
let url: string;
beforeAll(async () => {
  app = await startTestApp({ env: { CORS_ORIGINS: `${ORIGIN},https://other.example.test` } });
  url = await app.listen();
});
afterAll(() => app.close());

describe('a page of another origin', () => {
  const preflight = (method: string, origin: string, path = '/v1/users/me/preferences') =>
    app.server.inject({
      method: 'OPTIONS',
      url: path,
      headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'authorization' },
    });

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])('that is allowed may send %s', async (method) => {
    for (const path of ['/v1/users/me/preferences', '/v1/orgs/org_x', '/graphql']) {
      const { statusCode, headers } = await preflight(method, ORIGIN, path);
      expect(statusCode).toBe(204);
      expect(headers['access-control-allow-origin']).toBe(ORIGIN);
      expect(String(headers['access-control-allow-methods']).split(/, */)).toContain(method);
      expect(headers['access-control-allow-headers']).toBe('authorization');
    }
  });

  it('that is not allowed is named nowhere', async () => {
    for (const origin of ['https://evil.example.test', `${ORIGIN}.evil.test`, 'null']) {
      expect((await preflight('PUT', origin)).headers['access-control-allow-origin']).toBeUndefined();
      const answer = await app.server.inject({ url: '/v1/auth/config', headers: { origin } });
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    }
    const answer = await app.server.inject({ url: '/v1/auth/config', headers: { origin: ORIGIN } });
    expect(answer.headers['access-control-allow-origin']).toBe(ORIGIN);
  });
});

describe('what the router refuses', () => {
  it.each(['/v1/orgs/%ZZ/workspaces', `/v1/orgs/${'x'.repeat(2_000)}/workspaces`])(
    'has a trace id, too: %s',
    async (path) => {
      const answer = await app.server.inject({ url: path, headers: { 'x-trace-id': 'mine' } });
      expect(answer.statusCode).toBeGreaterThanOrEqual(400);
      expect(answer.statusCode).toBeLessThan(500);
      expect(answer.headers['x-trace-id']).toBe('mine');
      expect((await app.server.inject(path)).headers['x-trace-id']).toMatch(/^[0-9a-f-]{36}$/);
    },
  );
});

describe('the header block of a request', () => {
  const withHeader = (bytes: number) => fetch(`${url}/v1/auth/config`, { headers: { 'x-padding': 'x'.repeat(bytes) } });

  it('may have 20 KB', async () => {
    expect((await withHeader(20_000)).status).toBe(200);
  });

  it('is refused beyond 32 KiB, in the shape of every error', async () => {
    const answer = await withHeader(40_000);
    expect(answer.status).toBe(431);
    expect(await answer.json()).toMatchObject({ error: 'INVALID_REQUEST', details: { reason: 'headers_too_large' } });
  });
});
