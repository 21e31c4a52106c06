import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ToyServer } from './toy.ts';
import { removeFolders, toyServer } from './toy.ts';

let toy: ToyServer;
beforeAll(async () => {
  toy = await toyServer(
    `
    mutation Update($item_id: ID!, $body: UpdateItemInput! @body)
      @rest(method: PUT, path: "/v1/items/{item_id}") { updateItem(id: $item_id, input: $body) @body }
    mutation Remove($item_id: ID!)
      @rest(method: DELETE, path: "/v1/items/{item_id}", status: 204) { removeItem(id: $item_id) @body }
    mutation Post($item_id: ID!)
      @rest(method: POST, path: "/v1/items/{item_id}/touch") { removeItem(id: $item_id) @body @nothing }
    query Get($item_id: ID!) @rest(method: GET, path: "/v1/items/{item_id}") { echo(ids: [$item_id]) @body }
  `,
    {
      resolvers: {
        Query: { echo: (_: unknown, args: object) => args },
        Mutation: { updateItem: (_: unknown, { input }: { input: object }) => input, removeItem: () => true },
      },
    },
  );
});
afterAll(async () => {
  await toy.server.close();
  removeFolders();
});

const put = (
  payload: string | Buffer,
  headers: Record<string, string> = { 'content-type': 'application/json' },
  as: string | null = 'me',
) => toy.send({ method: 'PUT', url: '/v1/items/1', payload, headers, as });

describe('a JSON body', () => {
  it.each([
    ['{"tags": [1,}', 12, 'Expecting value'],
    ['{', 1, 'Expecting property name enclosed in double quotes'],
    ['nonsense', 0, 'Expecting value'],
    ['{"password":"hunter2"', 21, "Expecting ',' delimiter"],
    ['{"password":"hunter2', 12, 'Unterminated string starting at'],
    ['\ufeff{}', 0, 'Expecting value'],
  ])('that is malformed is refused with its position: %s', async (payload, position, error) => {
    const { status, body, text } = await put(payload);
    expect([status, body]).toEqual([
      422,
      {
        detail: [
          { type: 'json_invalid', loc: ['body', position], msg: 'JSON decode error', input: {}, ctx: { error } },
        ],
      },
    ]);
    expect(text).not.toContain('hunter2');
  });

  it('is checked before the caller is: malformed 422, then 401, then 422 for its content', async () => {
    expect((await put('{', undefined, null)).status).toBe(422);
    expect((await put('{"tags":1}', undefined, null)).status).toBe(401);
    expect((await put('{"tags":1}')).status).toBe(422);
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON;charset="UTF-8"',
    'application/merge-patch+json',
    'application/json ;charset=utf8',
  ])('may come as %s', async (type) => {
    expect((await put('{}', { 'content-type': type })).status).toBe(200);
  });

  it.each([
    ['text/plain', {}],
    ['application/x-www-form-urlencoded', {}],
    ['application/jsonx', {}],
    ['text/application/json', {}],
    ['application/json; charset=utf-16', {}],
    ['application/json;charset=utf-16', {}],
    ['application/json; charset =utf-16', {}],
    ['application/json; charset=utf-80', {}],
    ['application/json; charset=not-utf-8', {}],
    ['application/json', { 'content-encoding': 'gzip' }],
    ['nonsense', {}],
  ])('may not come as %s %j', async (type, headers) => {
    const { status, body } = await put('{}', { 'content-type': type, ...headers });
    expect([status, body]).toMatchObject([
      415,
      { error: 'UNSUPPORTED_MEDIA_TYPE', details: { expected: 'application/json' }, status_code: 415 },
    ]);
  });

  it('must say what it is', async () => {
    expect(
      (await toy.send({ method: 'PUT', url: '/v1/items/1', payload: Buffer.from('{}'), headers: {} })).status,
    ).toBe(415);
  });

  it('is UTF-8', async () => {
    expect((await put(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).body).toMatchObject({
      detail: [{ type: 'json_invalid', loc: ['body', 0], ctx: { error: 'The body is not valid UTF-8' } }],
    });
  });

  it('is at most 2 MiB long', async () => {
    const { status, body } = await put(`"${'x'.repeat(2 * 1024 * 1024)}"`);
    expect([status, body]).toMatchObject([
      413,
      { error: 'PAYLOAD_TOO_LARGE', details: { limit_bytes: 2 * 1024 * 1024 }, status_code: 413 },
    ]);
  });

  it.each([
    ['keys', `{${'"k":1,'.repeat(6_666)}"k":1}`],
    ['items', `{"tags":[${'1,'.repeat(20_000)}1]}`],
    ['objects', `{"tags":[${'{},'.repeat(10_000)}1]}`],
    ['brackets that are never closed', '['.repeat(900).repeat(25)],
  ])('has at most 20,000 values, of which a key counts as two more: %s', async (what, payload) => {
    const { status, body } = await put(payload);
    const refusal = what.startsWith('brackets')
      ? {
          type: 'recursion_loop',
          msg: 'JSON should be nested at most 64 levels deep',
          ctx: { max_depth: 64 },
        }
      : {
          type: 'too_many_values',
          msg: 'JSON should have at most 20000 values, where each key counts as 2 more',
          ctx: { max_values: 20_000 },
        };
    expect([status, body]).toEqual([422, { detail: [{ ...refusal, loc: ['body'], input: {} }] }]);
    expect((await put(`{"metadata":{"all":[${'1,'.repeat(19_990)}1]}}`)).status).toBe(200);
    expect((await put(`{"metadata":{"all":{${'"k":1,'.repeat(6_660)}"k":1}}}`)).status).toBe(200);
  });

  it.each([
    '{"__proto__":{"admin":true}}',
    '{"metadata":{"a":[{"__proto__":1}]}}',
    '{"metadata":{"\\u005f_proto__":1}}',
    '{"constructor":{"prototype":{"a":1}}}',
  ])('that reaches for a prototype is refused: %s', async (payload) => {
    const { status, body } = await put(payload);
    const key = payload.includes('proto__') ? '__proto__' : 'constructor';
    const msg = `Keys should be valid strings, ${key} is not allowed`;
    expect([status, body]).toEqual([422, { detail: [{ type: 'invalid_key', loc: ['body'], msg, input: {} }] }]);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('may have harmless keys named constructor or prototype', async () => {
    for (const metadata of [{ constructor: 'Ford' }, { constructor: { of: 'cars' } }, { car: { prototype: 'T' } }])
      expect((await put(JSON.stringify({ metadata }))).body).toEqual({ metadata });
  });

  it.each([
    ['lists', '['.repeat(10_000) + ']'.repeat(10_000)],
    ['objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['a free JSON value', `{"metadata":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`],
  ])('ten thousand levels deep is refused: %s', async (_what, payload) => {
    expect((await put(payload)).body).toMatchObject({
      detail: [{ type: 'recursion_loop', loc: ['body'], ctx: { max_depth: 64 } }],
    });
  });

  it('may be nested 64 levels deep, not 65', async () => {
    const nested = (levels: number) => `{"metadata":${'{"a":'.repeat(levels - 2)}{}${'}'.repeat(levels - 2)}}`;
    expect((await put(nested(64))).status).toBe(200);
    expect((await put(nested(65))).status).toBe(422);
  });
});

describe('an operation without a body', () => {
  it.each(['GET', 'DELETE', 'POST'] as const)('takes no notice of one: %s', async (method) => {
    const url = method === 'POST' ? '/v1/items/1/touch' : '/v1/items/1';
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
      const { status } = await toy.send({ method, url, payload: '{nonsense', headers: { 'content-type': type } });
      expect(status).toBe(method === 'DELETE' ? 204 : 200);
    }
  });

  it('leaves the connection usable', async () => {
    await toy.server.listen({ port: 0, host: '127.0.0.1' });
    const socket = connect((toy.server.server.address() as AddressInfo).port, '127.0.0.1');
    const body = 'x'.repeat(100_000);
    const request = (extra: string) =>
      `POST /v1/items/1/touch HTTP/1.1\r\nhost: x\r\nauthorization: me\r\n${extra}\r\n`;
    socket.write(
      `${request(`content-type: text/plain\r\ncontent-length: ${body.length}\r\n`)}${body}` +
        request('content-length: 0\r\nconnection: close\r\n'),
    );
    let answers = '';
    for await (const chunk of socket) answers += String(chunk);
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
  });
});
