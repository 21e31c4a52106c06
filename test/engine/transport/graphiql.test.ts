import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { parse, validate } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schema } from '../../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const page = (headers: Record<string, string> = {}) =>
  app.server.inject({ url: '/graphql', headers: { accept: 'text/html', ...headers } });

describe('GraphiQL', () => {
  it('runs its own script, and nothing from elsewhere', async () => {
    const { headers, body } = await page();
    const policy = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map((part) => [part.split(' ')[0], part.split(' ').slice(1).join(' ')]),
    );
    expect(policy.get('default-src')).toBe("'none'");
    expect(policy.get('connect-src')).toBe("'self'");
    expect(policy.get('frame-ancestors')).toBe("'none'");
    const script = body.slice(body.indexOf('<script>') + '<script>'.length, body.lastIndexOf('</script>'));
    expect(policy.get('script-src')).toBe(`'sha256-${createHash('sha256').update(script).digest('base64')}'`);
    expect(String(headers['content-security-policy'])).not.toMatch(/https?:|\*|unsafe-eval/);
  });

  it('opens with a query over several lines that the schema knows, and a place for the token', async () => {
    const { body } = await page();
    const options = JSON.parse(
      /renderYogaGraphiQL\(\s*window[^,]*,\s*(\{.*\}),?\s*\);\s*<\/script>/.exec(body)![1]!,
    ) as {
      defaultQuery: string;
      defaultHeaders: string;
    };
    expect(options.defaultQuery.split('\n').length).toBeGreaterThan(10);
    expect(validate(schema, parse(options.defaultQuery))).toEqual([]);
    expect(JSON.parse(options.defaultHeaders)).toEqual({ authorization: expect.stringMatching(/^Bearer /) });
  });

  it('is sent compressed to whom understands that', async () => {
    const { rawPayload, headers } = await page({ 'accept-encoding': 'gzip, br' });
    expect(headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(rawPayload).toString()).toBe((await page()).body);
    expect(rawPayload.length).toBeLessThan(4_000_000);
  });

  it('is for browsers: others get an answer', async () => {
    const answer = await app.server.inject({
      url: '/graphql?query={__typename}',
      headers: { accept: 'application/json' },
    });
    expect(answer.json()).toEqual({ data: { __typename: 'Query' } });
  });
});
