import { describe, expect, test } from 'vitest';
import { requestFor, UnusableAction } from '../../../src/tools/tool-instances/action-request.ts';
import { addressBelow } from '../../../src/tools/tool-proxy/proxied-address.ts';
import { answeredHeaders, sentHeaders } from '../../../src/tools/tool-proxy/proxied-headers.ts';
import { basesOf } from '../../../src/tools/tool-proxy/tool-base.ts';

const base = new URL('https://api.test/v1/');
const none = new Map<string, string>();
const below = (path: string, query = '', credentials: ReadonlyMap<string, string> = none, from = base) => {
  const url = addressBelow(from, path, query, credentials);
  return typeof url === 'string' ? url : url.href;
};

describe('an address below a base', () => {
  test.each([
    ['things', 'https://api.test/v1/things'],
    ['', 'https://api.test/v1/'],
    ['a/b/', 'https://api.test/v1/a/b/'],
    ['groups%2Fname/projects', 'https://api.test/v1/groups%2Fname/projects'],
    ['a%20b%C3%A4', 'https://api.test/v1/a%20b%C3%A4'],
    ["x;v=1/(a),b'c:d@e", "https://api.test/v1/x;v=1/(a),b'c:d@e"],
    ['file.txt/...', 'https://api.test/v1/file.txt/...'],
    ['100%25', 'https://api.test/v1/100%25'],
    ['100%25users', 'https://api.test/v1/100%25users'],
    ['a%3Fb%23c', 'https://api.test/v1/a%3Fb%23c'],
  ])('is %s as it was sent', (path, url) => {
    expect(below(path)).toBe(url);
  });

  test.each([
    '..',
    '../x',
    'a/../../x',
    '.',
    './x',
    'a/./b',
    '%2e%2e/x',
    '%2E%2E%2Fx',
    '.%2e/x',
    'a/%2e%2e%2f%2e%2e%2fx',
    '..%2fx',
    '..%5cx',
    '..\\x',
    '\\\\evil.test/x',
    '%5c%5cevil.test',
    '/evil.test/x',
    '//evil.test/x',
    '%2fevil.test',
    '%2F%2Fevil.test/x',
    'a//b',
    'a/%2f/b',
    '%252e%252e/x',
    '%25252e%25252e%25252fx',
    '%2525252525252e',
    '..;/x',
    '..;a=b/x',
    '..%3f/x',
    '..%23/x',
    '..%20/x',
    '%20../x',
    '.%20;a/x',
    ';/evil.test',
    '%25u002e%25u002e/x',
    '%25U002e%25U002e%2fx',
    '%2e%2e%3b/x',
    '%c0%ae%c0%ae/x',
    '%c0%af',
    '%e0%80%ae%e0%80%ae/x',
    '%ff',
    'a%00b',
    'a%0d%0ahost:evil.test',
    'a%09b',
    'a b',
    'a\tb',
    'ä',
    'a#b',
    'a?b',
    '%zz',
    '%2',
    'a<b>',
    '{x}',
    `${'a'.repeat(8_193)}`,
  ])('is none for %s', (path) => {
    expect(below(path)).toBe('path');
  });

  test.each(['a#b', 'a=b c', 'a=ä', 'a=\u0000', 'x'.repeat(8_193)])('is none for the query %j', (query) => {
    expect(below('x', query)).toBe('query');
  });

  test('names no other host, whatever the base is', () => {
    for (const path of ['@evil.test/', ':80', 'https://evil.test/', 'https:evil.test', '@evil.test:x@y'])
      for (const from of [base, new URL('https://api.test/')]) {
        const url = addressBelow(from, path, '', none);
        expect(typeof url === 'string' || (url.host === 'api.test' && url.username === ''), path).toBe(true);
      }
  });

  test('has the query as it was sent, and the credentials in place of what has their names', () => {
    const key = new Map([['api_key', 'a&b=ä']]);
    expect(below('x', 'b=%20&a=1&a=2&c')).toBe('https://api.test/v1/x?b=%20&a=1&a=2&c');
    expect(below('x', 'api_key=mine&a=1&api%5Fkey=mine&api_key', key)).toBe(
      'https://api.test/v1/x?a=1&api_key=a%26b%3D%C3%A4',
    );
    expect(below('x', '', key)).toBe('https://api.test/v1/x?api_key=a%26b%3D%C3%A4');
  });
});

describe('the bases of an instance', () => {
  const action = (url_template: string, more: object = {}) => ({ name: 'run', url_template, ...more });
  const bases = (actions: ReturnType<typeof action>[], configuration = {}, secrets = {}) =>
    basesOf({ actions, configuration, secrets }).map(({ url }) => url.href);

  test('are what the configuration says, or the host of a template', () => {
    expect(
      bases(
        [
          action('{{base_url}}/things/{{id}}', { parameters: [{ name: 'id' }] }),
          action('https://api.test/a/b'),
          action('https://api.test/c'),
          action('https://{{region}}.other.test/x?y={{z}}'),
          { name: 'without' } as never,
        ],
        { base_url: 'https://gate.test/tenants/7', region: 'eu' },
      ),
    ).toEqual(['https://gate.test/tenants/7/', 'https://api.test/', 'https://eu.other.test/']);
  });

  test('are never chosen by a parameter, and need what they name', () => {
    const parameters = [{ name: 'host' }, { name: 'base_url' }];
    expect(
      bases(
        [
          action('https://{{host}}/x', { parameters }),
          action('{{base_url}}/x', { parameters }),
          action('https://{{missing}}.test/x'),
          action('{{missing}}/x'),
          action('https://user:pass@api.test/x'),
          action('ftp://api.test/x'),
        ],
        { base_url: 'https://own.test', host: 'own.test' },
      ),
    ).toEqual([]);
  });

  test.each([
    // what follows a placeholder at the beginning is a part of the host, too
    ['{{region}}.api.test/v1/x', { region: 'https://eu' }, 'https://eu.api.test/'],
    ['{{base_url}}:8443/v1/x', { base_url: 'https://api.test' }, 'https://api.test:8443/'],
    ['{{base_url}}?a=1', { base_url: 'https://api.test/v1' }, 'https://api.test/v1/'],
    ['{{base_url}}', { base_url: 'https://api.test/v1' }, 'https://api.test/v1/'],
    ['https://{{shop}}.shops.test/x', { shop: 'tea-1' }, 'https://tea-1.shops.test/'],
    // no value ends the host that the tool says
    ['https://{{shop}}.shops.test/x', { shop: 'evil.test/' }, null],
    ['https://{{shop}}.shops.test/x', { shop: 'evil.test?' }, null],
    ['https://{{shop}}.shops.test/x', { shop: 'evil.test#' }, null],
    ['https://{{shop}}.shops.test/x', { shop: 'evil.test:8443\\' }, null],
    ['https://{{shop}}.shops.test/x', { shop: 'user@evil.test/' }, null],
    ['https://api{{shop}}/x', { shop: '@evil.test' }, null],
    ['{{region}}{{shop}}.shops.test/x', { region: 'https://', shop: 'evil.test/' }, null],
  ])('are at the host where the action %s goes with %j', (template, configuration, base) => {
    expect(bases([action(template)], configuration)).toEqual(base === null ? [] : [base]);
    const parts = { action: action(template), parameters: {}, configuration, secrets: {}, credentials: [] };
    const sent = () => new URL(requestFor(parts).url).origin;
    if (base === null) expect(sent).toThrow(UnusableAction);
    else expect(sent()).toBe(new URL(base).origin);
  });

  test('have a secret that stands in a path', () => {
    const url = 'https://api.test/bot{{token}}/send';
    expect(bases([action(url)], {}, { token: 'a/b' })).toEqual(['https://api.test/bota%2Fb/']);
  });
});

test('the host of a base is shown as the template has it if a secret is a part of it', () => {
  const secrets = { tenant: 'of-theirs', whole: 'https://of-theirs.test/x', port: 8443, token: 'of-theirs' };
  const shown = (url_template: string, configuration: object = {}) => {
    const action = { name: 'run', url_template };
    const [base] = basesOf({ actions: [action], configuration: { ...configuration }, secrets });
    const parts = { action, parameters: {}, configuration: { ...configuration }, secrets, credentials: [] };
    const sent = requestFor(parts);
    expect(sent.shownHost ?? new URL(sent.url).host).toBe(base!.shownHost);
    return base!.shownHost;
  };
  expect(shown('https://{{tenant}}.hooks.test/a?b={{c}}')).toBe('{{tenant}}.hooks.test');
  expect(shown('{{whole}}/y')).toBe('{{whole}}');
  expect(shown('https://hooks.test:{{port}}/y')).toBe('hooks.test:{{port}}');
  expect(shown('https://hooks.test/bot{{token}}/y')).toBe('hooks.test');
  expect(shown('https://{{tenant}}.hooks.test/a', { tenant: 'of-all' })).toBe('of-all.hooks.test');
  expect(shown('{{base}}/y', { base: 'https://gate.test/x' })).toBe('gate.test');
});

describe('headers', () => {
  test('of a request go on without what is about the connection, the platform or the way', () => {
    const given = {
      accept: 'a/b',
      'content-type': 'text/plain',
      'x-api-version': '7',
      'if-match': '"1"',
      'idempotency-key': 'k',
      connection: 'keep-alive, X-Private',
      'x-private': '1',
      'keep-alive': '1',
      te: 'trailers',
      trailer: 'x',
      'transfer-encoding': 'chunked',
      upgrade: 'h2c',
      'http2-settings': 'x',
      expect: '100-continue',
      host: 'platform.test',
      'content-length': '4',
      authorization: 'Bearer ours',
      cookie: 'session=ours',
      'proxy-authorization': 'Basic ours',
      'x-csrf': '1',
      'x-trace-id': 'trace',
      'x-consistency': 'token',
      'x-tool-host': 'api.test',
      origin: 'https://platform.test',
      referer: 'https://platform.test/x',
      'sec-fetch-site': 'same-origin',
      forwarded: 'for=1.2.3.4',
      via: '1.1 x',
      'x-forwarded-for': '1.2.3.4',
      x_forwarded_for: '1.2.3.4',
      'x-real-ip': '1.2.3.4',
      'cf-connecting-ip': '1.2.3.4',
      traceparent: '00-1-2-00',
      baggage: 'user=1',
      'x-api-key': 'theirs',
      x_api_key: 'theirs',
    };
    expect(
      sentHeaders(
        given,
        new Map([
          ['accept', 'c/d'],
          ['x-default', '1'],
        ]),
        new Map([['x-api-key', 'ours']]),
      ),
    ).toEqual({
      accept: 'a/b',
      'content-type': 'text/plain',
      'x-api-version': '7',
      'if-match': '"1"',
      'idempotency-key': 'k',
      'x-default': '1',
      'x-api-key': 'ours',
    });
  });

  test('of an answer come back only if nobody acts upon them', () => {
    const clean = (text: string) => text.replaceAll('key-1', '********');
    const given = {
      'content-type': 'text/html',
      'content-length': '4',
      etag: '"1"',
      link: '<https://api.test/?page=2&key=key-1>; rel="next"',
      'x-github-media-type': 'v3',
      'retry-after': '3',
      'x-ratelimit-remaining': '5',
      'anthropic-ratelimit-tokens-limit': '9',
      'request-id': 'r1',
      location: 'https://evil.test/?key-1',
      connection: 'close, x-hop',
      'x-hop': '1',
      'set-cookie': ['a=1'],
      'www-authenticate': 'Basic',
      'access-control-allow-origin': '*',
      'content-security-policy': 'none',
      'x-frame-options': 'ALLOW',
      'x-accel-redirect': '/internal',
      'x-sendfile': '/etc/passwd',
      'x-trace-id': 'forged',
      'x-tool-status': '200',
      refresh: '0; url=https://evil.test',
      'clear-site-data': '*',
      'service-worker-allowed': '/',
      'strict-transport-security': 'max-age=0',
      'alt-svc': 'h3=":443"',
      'cache-control': 'public',
      server: 'x',
      sourcemap: '/x',
      'reporting-endpoints': 'x',
    };
    expect(answeredHeaders(302, given, { clean })).toEqual({
      'content-type': 'text/html',
      'content-length': '4',
      etag: '"1"',
      link: '<https://api.test/?page=2&key=********>; rel="next"',
      'x-github-media-type': 'v3',
      'retry-after': '3',
      'x-tool-ratelimit-remaining': '5',
      'anthropic-ratelimit-tokens-limit': '9',
      'request-id': 'r1',
      'x-tool-location': 'https://evil.test/?********',
      'x-tool-status': '302',
    });
  });
});
