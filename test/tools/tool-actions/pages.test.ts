import type http from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { hostileTargets } from '../../support/hostile-targets.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { type Instance, instancesOf, type Json, newInstance, newTool, placesOf } from '../tool-instances/instances.ts';

type Handler = (url: URL, response: http.ServerResponse, body: string) => unknown;

let app: TestApp;
let target: TargetServer;
/** Must never be called. */
let inside: TargetServer;
let ann: Person;
let handler: Handler;
beforeAll(async () => {
  target = await startTarget((request, response, body) =>
    handler(new URL(request.url!, `http://127.0.0.1:${target.port}`), response, body),
  );
  inside = await startTarget((_request, response) => response.end('[]'));
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
});
beforeEach(async () => {
  target.requests.length = 0;
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await Promise.all([target.close(), inside.close()]);
});

interface Pages {
  count: number;
  items: number;
  has_more: boolean;
  ended: string;
}
interface Result extends Json {
  success: boolean;
  code: string;
  message: string;
  result: unknown;
  pages: Pages | null;
}

const baseUrl = () => `http://127.0.0.1:${target.port}`;
const ALL = [1, 2, 3, 4, 5].map((id) => ({ id }));

async function listOf(pagination: Json, action: Json = {}, more: Json[] = []): Promise<Instance> {
  const toolId = await newTool(ann, {
    config_schema: [{ name: 'base_url', type: 'string' }],
    credential_schema: [{ name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } }],
    action_schemas: [
      {
        name: 'list',
        method: 'GET',
        url_template: '{{base_url}}/things',
        response_result_path: '$.items',
        pagination,
        ...action,
      },
      ...more,
    ],
  });
  return newInstance(ann, toolId, { configuration: { base_url: baseUrl(), api_key: 'a-key-of-theirs' } });
}

const asked = ({ instance_id }: Instance, body: Json = {}) =>
  ann.call<Result>('POST', `${instancesOf(ann)}/${instance_id}/execute`, { action: 'list', max_pages: 10, ...body });
async function run(instance: Instance, body: Json = {}): Promise<Result> {
  const { status, body: result } = await asked(instance, body);
  expect(status, JSON.stringify(result)).toBe(200);
  return result;
}
const json = (response: http.ServerResponse, body: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(200, headers).end(JSON.stringify(body));
const paths = () => target.requests.map(({ path }) => path);
const ended = ({ pages }: Result) => [pages?.count, pages?.items, pages?.has_more, pages?.ended];

describe('the pages of a list', () => {
  const slice = (from: number) => ALL.slice(from, from + 2);
  const kinds: [string, Json, Handler, string[]][] = [
    [
      'by cursor',
      { type: 'cursor', cursor_param: 'after', cursor_response_path: '$.meta.next' },
      (url, response) => {
        const from = Number(url.searchParams.get('after') ?? 0);
        json(response, { items: slice(from), meta: { next: from < 4 ? String(from + 2) : null } });
      },
      ['/things', '/things?after=2', '/things?after=4'],
    ],
    [
      'by offset, until there are as many as the answer says',
      { type: 'offset', offset_param: 'skip', default_limit: 2, total_count_path: '$.total' },
      (url, response) => json(response, { items: slice(Number(url.searchParams.get('skip'))), total: ALL.length }),
      ['/things?skip=0&limit=2', '/things?skip=2&limit=2', '/things?skip=4&limit=2'],
    ],
    [
      'by offset, until a page is empty',
      { type: 'offset' },
      (url, response) => json(response, { items: slice(Number(url.searchParams.get('offset'))) }),
      [0, 2, 4, 5].map((offset) => `/things?offset=${offset}&limit=100`),
    ],
    [
      'by number',
      { type: 'page', default_per_page: 2, has_more_path: '$.more' },
      (url, response) => {
        const page = Number(url.searchParams.get('page'));
        json(response, { items: slice((page - 1) * 2), more: page < 3 });
      },
      [1, 2, 3].map((page) => `/things?page=${page}&per_page=2`),
    ],
    [
      'by links of the body',
      { type: 'next_link', next_link_path: '$.links.next' },
      (url, response) => {
        const from = Number(url.searchParams.get('from') ?? 0);
        json(response, { items: slice(from), links: from < 4 ? { next: `/others?from=${from + 2}` } : {} });
      },
      ['/things', '/others?from=2', '/others?from=4'],
    ],
    [
      'by links of the header',
      { type: 'next_link' },
      (url, response) => {
        const from = Number(url.searchParams.get('from') ?? 0);
        const link = `<${baseUrl()}/things?from=0>; rel="first", <${baseUrl()}/things?from=${from + 2}>; rel="next"`;
        json(response, { items: slice(from) }, from < 4 ? { link } : {});
      },
      ['/things', '/things?from=2', '/things?from=4'],
    ],
  ];

  test.each(kinds)('are read %s, with the credential each time', async (_name, pagination, answer, asks) => {
    handler = answer;
    const result = await run(await listOf(pagination));
    expect(result).toMatchObject({ success: true, code: 'ok', format: 'json', result: ALL, attempts: asks.length });
    expect(ended(result)).toEqual([asks.length, 5, false, 'end']);
    expect(paths()).toEqual(asks);
    expect(target.requests.map(({ headers }) => headers['x-api-key'])).toEqual(asks.map(() => 'a-key-of-theirs'));
    const [record] = await app.database.prisma.activity.findMany({
      where: { orgId: ann.orgId, action: 'execute' },
    });
    expect(record!.metadata).toMatchObject({ code: 'ok', pages: asks.length });
  });

  test('begin where the call says, and the cursor goes where the action names it', async () => {
    handler = (_url, response, body) => {
      const { start = 0 } = JSON.parse(body) as { start?: number };
      json(response, { items: slice(start), next_cursor: start < 4 ? start + 2 : '' });
    };
    const instance = await listOf(
      { type: 'cursor', cursor_param: 'start' },
      {
        method: 'POST',
        is_read_only: true,
        body_template: '{"start": {{start}}}',
        parameters: [{ name: 'start', type: 'integer' }],
      },
    );
    expect((await run(instance, { parameters: { start: 2 } })).result).toEqual(ALL.slice(2));
    expect(target.requests.map(({ body }) => body)).toEqual(['{"start": 2}', '{"start": 4}']);
    expect(paths()).toEqual(['/things', '/things']);
  });

  test('are one, as before, unless the call says how many', async () => {
    handler = (_url, response) => json(response, { items: ALL, next_cursor: 'more' });
    const instance = await listOf({ type: 'cursor' });
    expect(await run(instance, { max_pages: null })).toMatchObject({ result: ALL, pages: null });
    expect(paths()).toEqual(['/things']);
    const plain = await listOf({ type: 'none' });
    const { status, body } = await asked(plain);
    expect([status, placesOf(body)]).toEqual([422, [['max_pages', 'value_error']]]);
    expect(placesOf((await asked(instance, { max_pages: 101 })).body)).toEqual([['max_pages', 'less_than_equal']]);
  });

  test('have no item twice, and items are where the pagination says', async () => {
    handler = (url, response) => {
      const page = Number(url.searchParams.get('page'));
      // an item that was added meanwhile has moved the last one to the next page
      json(response, { data: { rows: [[{ key: 'a' }, { key: 'b' }], [{ key: 'b' }, { key: 'c' }], []][page - 1] } });
    };
    const instance = await listOf(
      { type: 'page', results_path: '$.data.rows', unique_key: 'key' },
      { response_result_path: '$.data', output_schema: { type: 'object' } },
    );
    expect((await run(instance)).result).toEqual([{ key: 'a' }, { key: 'b' }, { key: 'c' }]);
  });

  test.each([
    ['POST', {}],
    ['DELETE', { requires_confirmation: true }],
    ['GET', { is_read_only: false }],
    ['GET', { is_destructive: true, requires_confirmation: true }],
  ])('are not read by a %s that may change something: it is called once', async (method, more) => {
    handler = (_url, response) => json(response, { items: ALL, next: `${baseUrl()}/other` });
    const instance = await listOf({ type: 'next_link', next_link_path: '$.next' }, { method, ...more });
    for (const dry_run of [true, false]) {
      const { status, body } = await asked(instance, { dry_run });
      expect([status, body]).toMatchObject([422, { detail: [{ loc: ['body', 'max_pages'] }] }]);
    }
    expect(target.requests).toEqual([]);
  });

  test('of a list of which one is asked for are read, wherever the next one is', async () => {
    handler = (_url, response) => json(response, { items: ALL, next: 'https://elsewhere.example/' });
    const result = await run(await listOf({ type: 'next_link', next_link_path: '$.next' }), { max_pages: 1 });
    expect(result).toMatchObject({ success: true, result: ALL });
    expect(ended(result)).toEqual([1, 5, true, 'max_pages']);
  });

  test('ask for a confirmation that is for so many pages', async () => {
    handler = (_url, response) => json(response, { items: ALL, next_cursor: null });
    const instance = await listOf({ type: 'cursor', default_limit: 7 }, { requires_confirmation: true });
    const { confirmation, request } = await run(instance, { max_pages: 1 });
    expect(request).toMatchObject({ url: `${baseUrl()}/things?limit=7` });
    expect((await asked(instance, { max_pages: 2, confirmation })).status).toBe(422);
    const again = await run(instance, { max_pages: 1 });
    expect((await run(instance, { max_pages: 1, confirmation: again.confirmation })).result).toEqual(ALL);
  });
});

describe('providers that would go on for ever', () => {
  const endless: Handler = (url, response) => {
    const at = Number(url.searchParams.get('cursor') ?? 0);
    json(response, { items: [{ id: at }], next_cursor: at + 1 });
  };

  test('are asked for as many pages as the call and the action allow', async () => {
    handler = endless;
    const result = await run(await listOf({ type: 'cursor' }), { max_pages: 3 });
    expect(ended(result)).toEqual([3, 3, true, 'max_pages']);
    expect(result).toMatchObject({ success: true, result: [{ id: 0 }, { id: 1 }, { id: 2 }] });
    expect(ended(await run(await listOf({ type: 'cursor', max_pages: 2 })))).toEqual([2, 2, true, 'max_pages']);
  });

  test('and repeat themselves are asked no more', async () => {
    handler = (_url, response) => json(response, { items: [], next_cursor: 'same' });
    expect(ended(await run(await listOf({ type: 'cursor' })))).toEqual([2, 0, true, 'repeated']);
    handler = (_url, response) => json(response, { items: ALL });
    expect(ended(await run(await listOf({ type: 'offset' })))).toEqual([2, 5, true, 'repeated']);
    handler = (_url, response) => json(response, { items: [], next: '/things' });
    const linked = await listOf({ type: 'next_link', next_link_path: '$.next' });
    expect(ended(await run(linked))).toEqual([1, 0, true, 'repeated']);
  });

  test('give at most what is shown of a result, in whole items', async () => {
    handler = (url, response) => {
      const at = Number(url.searchParams.get('cursor') ?? 0);
      json(response, { items: [{ id: at, text: 'x'.repeat(100_000) }], next_cursor: at + 1 });
    };
    const result = await run(await listOf({ type: 'cursor' }));
    expect(ended(result)).toEqual([10, 10, true, 'max_pages']);
    expect(result).toMatchObject({ success: true, truncated: true });
    expect((result.result as Json[]).map(({ id }) => id)).toEqual([0, 1]);
  });

  test('stop the group of the action when they say so', async () => {
    const other = { name: 'other', method: 'GET', url_template: '{{base_url}}/other', rate_limit_group: 'g' };
    const instance = await listOf({ type: 'cursor' }, { rate_limit_group: 'g' }, [other]);
    handler = async (url, response) => {
      if (url.pathname === '/other') return response.writeHead(429, { 'retry-after': '60' }).end();
      await run(instance, { action: 'other', max_pages: null });
      return endless(url, response, '');
    };
    const result = await run(instance);
    expect(ended(result)).toEqual([1, 1, true, 'rate_limit']);
    expect((await asked(instance)).status).toBe(429);
  });
});

describe('a page that cannot be read', () => {
  const second =
    (answer: Handler): Handler =>
    (url, response, body) =>
      url.searchParams.has('cursor') || url.pathname !== '/things'
        ? answer(url, response, body)
        : json(response, { items: ALL, next_cursor: 'n' });

  test.each<[string, Handler, string]>([
    ['is refused', (_url, response) => response.writeHead(500).end('a-key-of-theirs is wrong'), 'http_500'],
    ['is huge', (_url, response) => json(response, { items: ['x'.repeat(2 * 1024 * 1024)] }), 'too_large'],
    ['is no JSON', (_url, response) => response.end('<html>'), 'schema_mismatch'],
    ['has no list', (_url, response) => json(response, { items: 5 }), 'schema_mismatch'],
    ['redirects inside', (_url, response) => response.writeHead(307, { location: insideUrl() }).end(), 'redirect'],
  ])('and %s leaves what was read before', async (_name, answer, code) => {
    handler = second(answer);
    const result = await run(await listOf({ type: 'cursor' }));
    expect(result).toMatchObject({ success: false, code, result: ALL });
    expect(ended(result)).toEqual([1, 5, true, 'failed']);
    expect(JSON.stringify(result)).not.toContain('a-key-of-theirs');
  });

  test.each([
    ['leads upwards', '..'],
    ['is half of a character', '\ud800'],
  ])('because its cursor %s in the path leaves what was read before', async (_name, cursor) => {
    handler = (url, response) =>
      url.pathname === '/things/start' ? json(response, { items: ALL, next_cursor: cursor }) : response.end('[]');
    const instance = await listOf(
      { type: 'cursor' },
      {
        url_template: '{{base_url}}/things/{{cursor}}',
        parameters: [{ name: 'cursor', type: 'string', default: 'start' }],
      },
    );
    const result = await run(instance);
    expect(result).toMatchObject({ success: false, code: 'schema_mismatch', result: ALL });
    expect(ended(result)).toEqual([1, 5, true, 'failed']);
  });

  const insideUrl = () => `http://localhost:${inside.port}/`;

  test('and no spelling of an address inside is called as a next page', async () => {
    // many spellings are one address once they are read
    const links = new Map(
      hostileTargets(inside.port)
        .filter(({ url }) => URL.canParse(url) && new URL(url).origin !== baseUrl())
        .map(({ url }) => [new URL(url).origin, url]),
    );
    expect(links.size).toBeGreaterThan(20);
    let link = '';
    handler = (_url, response) => json(response, { items: ALL, next: link });
    const instance = await listOf({ type: 'next_link', next_link_path: '$.next' });
    const seen = inside.connections;
    for (link of links.values()) expect((await run(instance)).pages?.ended, link).toBe('elsewhere');
    expect(inside.connections).toBe(seen);
  });

  test.each<[string, () => string]>([
    ['metadata', () => 'http://169.254.169.254/latest/meta-data'],
    ['another port', () => `http://127.0.0.1:${inside.port}/`],
    ['another name', () => `http://localhost:${target.port}/things`],
    ['a host without a scheme', () => `//127.0.0.1:${inside.port}/`],
    ['another scheme', () => `https://127.0.0.1:${target.port}/`],
    ['a user', () => `http://me:word@127.0.0.1:${target.port}/things`],
    ['a file', () => 'file:///etc/passwd'],
    ['nothing', () => 'http://['],
  ])('because its link leads to %s is not called', async (_name, link) => {
    handler = (_url, response) => json(response, { items: ALL, next: link() });
    const result = await run(await listOf({ type: 'next_link', next_link_path: '$.next' }));
    expect(result).toMatchObject({
      success: false,
      code: 'next_page_elsewhere',
      message: 'Tickets named a next page that is not on the host of the first one. It was not called.',
      result: ALL,
    });
    expect(ended(result)).toEqual([1, 5, true, 'elsewhere']);
    expect(target.requests).toHaveLength(1);
    expect(inside.requests).toEqual([]);
  });
});
