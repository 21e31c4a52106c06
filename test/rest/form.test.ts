import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { FileReceiver } from '../../rest/form.ts';
import { formParts } from '../../rest/form-parts.ts';
import { loadConfig } from '../../src/config.ts';
import { ApiError, forbidden } from '../../src/kernel/errors.ts';
import { TooManyBytes } from '../../src/platform/storage/meter.ts';
import { Storage } from '../../src/platform/storage/storage.ts';
import { FORM_TYPE, type FormPart, formOf } from '../support/form.ts';
import { removeFolders, type ToyServer, toyServer } from './toy.ts';

const documents = `
  # Adds a picture.
  mutation AddPicture($item_id: ID!, $body: PictureInput! @upload(file: "picture"))
    @rest(method: POST, path: "/v1/items/{item_id}/pictures", status: 201) {
    addPicture(id: $item_id, input: $body) @body
  }
`;
const LIMIT = 100_000;

const dataDir = mkdtempSync(path.join(os.tmpdir(), 'form-'));
const storage = new Storage(loadConfig({ DATA_DIR: dataDir }));
let received = 0;
/** Stores for everybody but strangers. */
const files: FileReceiver = {
  maxBytes: LIMIT,
  async receive(_context, request, { content }) {
    if (request.headers.authorization === 'stranger') throw forbidden('picture:create');
    const id = `p${++received}`;
    try {
      const { sizeBytes, sha256 } = await storage.put(`pictures/${id}`, content, { limitBytes: LIMIT });
      return { id, sizeBytes, sha256 };
    } catch (error) {
      throw error instanceof TooManyBytes ? new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: LIMIT }) : error;
    }
  },
  discard: (_request, id) => storage.remove(`pictures/${id}`),
};

let toy: ToyServer;
let fails: Error | null = null;
beforeAll(async () => {
  const addPicture = (_: unknown, args: { input: { picture: string } }) => {
    if (fails) throw fails;
    kept.push(args.input.picture);
    return args;
  };
  toy = await toyServer(documents, { resolvers: { Mutation: { addPicture } } }, { files });
});
const kept: string[] = [];
afterEach(async () => {
  fails = null;
  const stored: string[] = [];
  for await (const { key } of storage.list()) stored.push(key);
  // what no operation has kept is not stored
  expect(stored.sort()).toEqual(kept.map((id) => `pictures/${id}`).sort());
});
afterAll(async () => {
  await toy.server.close();
  await storage.close();
  rmSync(dataDir, { recursive: true });
  removeFolders();
});

const picture = { name: 'a.png', content: 'pixels', type: 'image/png' };
const send = (parts: readonly FormPart[], as: string | null = 'somebody', type = FORM_TYPE) =>
  toy.send({
    method: 'POST',
    url: '/v1/items/7/pictures',
    as,
    headers: { 'content-type': type },
    payload: formOf(parts),
  });
const places = (body: unknown) =>
  (body as { detail: { type: string; loc: unknown[] }[] }).detail.map(({ type, loc }) => [type, ...loc]);

test('the file is stored while it arrives, and the operation gets its id beside the fields, in any order', async () => {
  const fields: FormPart[] = [
    ['display_name', 'Nice'],
    ['count', '3'],
    ['tags', 'a, b'],
    ['metadata', '{"aB":1}'],
  ];
  for (const form of [
    [['picture', picture], ...fields],
    [...fields, ['picture', picture]],
    [['unknown', 'ignored'], ...fields.slice(0, 2), ['picture', picture], ...fields.slice(2)],
  ] as FormPart[][])
    expect(await send(form)).toMatchObject({
      status: 201,
      body: {
        id: '7',
        input: {
          picture: kept.at(-1),
          displayName: 'Nice',
          count: 3,
          tags: ['a', 'b'],
          metadata: { aB: 1 },
        },
      },
    });
  expect(kept).toHaveLength(3);
});

test('lists are repeated, between commas or JSON; an empty field is not there', async () => {
  const tagsOf = async (...values: string[]) => {
    const form: FormPart[] = values.map((value) => ['tags', value]);
    const { body } = await send([['display_name', 'x'], ...form, ['picture', picture]]);
    return (body as { input: { tags?: string[] } }).input.tags;
  };
  expect(await tagsOf('a', 'b')).toEqual(['a', 'b']);
  expect(await tagsOf('["a,b","c"]')).toEqual(['a,b', 'c']);
  expect(await tagsOf('a,,b ,')).toEqual(['a', 'b']);
  expect(await tagsOf('')).toBeUndefined();
});

test('fields are checked like every body, all at once, and nothing of the file is left', async () => {
  const wrong: FormPart[] = [
    ['count', '1.5'],
    ['metadata', '[1]'],
  ];
  for (const form of [
    [...wrong, ['picture', picture]],
    [['picture', picture], ...wrong],
  ] as FormPart[][]) {
    const { status, body } = await send(form);
    expect([status, places(body)]).toEqual([
      422,
      [
        ['missing', 'body', 'display_name'],
        ['int_parsing', 'body', 'count'],
        ['dict_type', 'body', 'metadata'],
      ],
    ]);
  }
  expect(places((await send([['display_name', 'x']])).body)).toEqual([['missing', 'body', 'picture']]);
});

test('nothing is stored for somebody who may not', async () => {
  const before = received;
  const form: FormPart[] = [
    ['display_name', 'x'],
    ['picture', picture],
  ];
  expect((await send(form, null)).status).toBe(401);
  expect(await send(form, 'stranger')).toMatchObject({
    status: 403,
    body: { details: { required_permission: 'picture:create' } },
  });
  // wrong input is said first
  expect((await send([['count', 'x'], ...form], 'stranger')).status).toBe(422);
  expect(received).toBe(before);
});

test('a file goes when the operation fails', async () => {
  fails = new ApiError('RESOURCE_CONFLICT', { reason: 'full' });
  const form: FormPart[] = [
    ['display_name', 'x'],
    ['picture', picture],
  ];
  expect((await send(form)).status).toBe(409);
  fails = new Error('a bug');
  expect((await send(form)).status).toBe(500);
});

test('a file may be as large as the limit, and no larger', async () => {
  const form = (bytes: number): FormPart[] => [
    ['picture', { content: randomBytes(bytes) }],
    ['display_name', 'x'],
  ];
  expect(await send(form(LIMIT + 1))).toMatchObject({ status: 413, body: { details: { limit_bytes: LIMIT } } });
  expect((await send(form(LIMIT))).status).toBe(201);
});

test.each<[string, FormPart[], number]>([
  ['a field __proto__', [['__proto__', 'x']], 400],
  ['a field constructor', [['constructor', 'x']], 400],
  ['a second file', [['picture', picture]], 422],
  ['a text as the file', [['picture', 'text']], 422],
  ['metadata with __proto__', [['metadata', '{"__proto__":{"x":1}}']], 422],
  ['metadata that is deep', [['metadata', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`]], 422],
  ['metadata that is no JSON', [['metadata', '{']], 422],
  ['a field that is huge', [['display_name', 'x'.repeat(300_000)]], 422],
  ['fields without number', Array.from({ length: 80 }, (_, index) => [`f${index}`, 'x'] as const), 400],
])('%s is refused', async (_what, parts, status) => {
  for (const form of [
    [['display_name', 'x'], ['picture', picture], ...parts],
    [...parts, ['display_name', 'x'], ['picture', picture]],
  ] as FormPart[][])
    expect((await send(form)).status).toBe(status);
  expect(({} as { x?: number }).x).toBeUndefined();
});

test('a part may be JSON by its own type, whatever its field is', async () => {
  const json = (content: string) => ({ text: content, type: 'application/json' });
  const form = (metadata: string): FormPart[] => [
    ['display_name', json('"Nice"')],
    ['metadata', json(metadata)],
    ['picture', picture],
  ];
  expect(await send(form('{"a":1}'))).toMatchObject({
    status: 201,
    body: { input: { displayName: 'Nice', metadata: { a: 1 } } },
  });
  for (const broken of ['{', '{"__proto__":{}}']) expect((await send(form(broken))).status).toBe(422);
});

const tooMany = [['too_many_values', 'body']];
const items = (count: number, between: string) => Array.from({ length: count }, () => '1').join(between);

test.each<[string, FormPart[]]>([
  ['keys', [['metadata', `{${items(20_001, ',').replaceAll('1', '"k":1')}}`]]],
  ['items between commas', [['tags', items(20_002, ',')]]],
  ['items of all lists together', Array.from({ length: 10 }, () => ['tags', `[${items(2_001, ',')}]`])],
  ['items of a part that is JSON', [['metadata', { text: `[${items(20_001, ',')}]`, type: 'application/json' }]]],
])('a form has a budget of values for all its parts: %s', async (_what, parts) => {
  const { status, body } = await send([...parts, ['picture', picture]]);
  expect([status, places(body)]).toEqual([422, tooMany]);
});

test('what comes after a second file is not parsed, while the first one is still being stored', async () => {
  const file = '--x\r\ncontent-disposition: form-data; name="picture"; filename="a"\r\n\r\ny\r\n';
  const raw = new PassThrough();
  Object.assign(raw, { headers: { 'content-type': 'multipart/form-data; boundary=x' } });
  const disk = new EventEmitter();
  const read = async () => {
    for await (const part of formParts(raw as unknown as IncomingMessage, { files: 1 })) {
      disk.emit('begins');
      if (part.kind === 'file') expect(await text(part.content)).toBe('y');
      await once(disk, 'ends');
    }
  };
  const begins = once(disk, 'begins');
  const reading = expect(read()).rejects.toMatchObject({ detail: [{ type: 'too_long', loc: ['body', 'file'] }] });
  raw.write(`${file}--x`);
  await begins;
  raw.write(file.slice(3).repeat(100));
  // nobody takes what comes after: it stays where it is
  while (raw.write(file.repeat(100))) await setImmediate();
  disk.emit('ends');
  await reading;
  expect(raw.writableLength).toBeGreaterThan(0);
});

test('a body that is no such form is refused', async () => {
  const whole: FormPart[] = [
    ['display_name', 'x'],
    ['picture', picture],
  ];
  expect(await send(whole, 'somebody', 'application/json')).toMatchObject({
    status: 415,
    body: { details: { expected: 'multipart/form-data' } },
  });
  for (const type of ['multipart/form-data', `multipart/form-data; boundary=${'b'.repeat(71)}`])
    expect(await send(whole, 'somebody', type)).toMatchObject({
      status: 400,
      body: { details: { reason: 'multipart_boundary' } },
    });
  const cut = formOf(whole);
  for (const length of [60, cut.length - 20]) {
    const headers = { 'content-type': FORM_TYPE };
    const payload = cut.subarray(0, length);
    const { status, body } = await toy.send({ method: 'POST', url: '/v1/items/7/pictures', headers, payload });
    expect([status, body]).toEqual([400, expect.objectContaining({ details: { reason: 'multipart' } })]);
  }
});

test('OpenAPI shows a form with a file', async () => {
  const { body } = await toy.send({ method: 'GET', url: '/openapi.json' });
  const { paths, components } = body as {
    paths: Record<string, { post: { requestBody: unknown } }>;
    components: { schemas: Record<string, { properties: object }> };
  };
  expect(paths['/v1/items/{item_id}/pictures']?.post.requestBody).toEqual({
    required: true,
    content: { 'multipart/form-data': { schema: { $ref: '#/components/schemas/PictureInputForm' } } },
  });
  expect(components.schemas.PictureInputForm?.properties).toMatchObject({
    picture: { type: 'string', format: 'binary' },
  });
});

test('the same form has the same facts, whatever id its file gets', async () => {
  const forms: (() => unknown)[] = [];
  toy.server.log.level = 'silent';
  const observed = await toyServer(
    documents,
    { resolvers: { Mutation: { addPicture: () => null } } },
    {
      files: {
        ...files,
        discard: async () => undefined,
        receive: async (_context, _request, { content }) => {
          const hash = createHash('sha256');
          for await (const chunk of content) hash.update(chunk as Buffer);
          return { id: String(++received), sizeBytes: 6, sha256: hash.digest('hex') };
        },
      },
      context: (request) => {
        forms.push(() => request.form?.facts);
        return {};
      },
    },
  );
  const ask = (content: string, name = 'x') =>
    observed.send({
      method: 'POST',
      url: '/v1/items/7/pictures',
      headers: { 'content-type': FORM_TYPE },
      payload: formOf([
        ['picture', { ...picture, content }],
        ['display_name', name],
      ]),
    });
  for (const form of [['one'], ['one'], ['two'], ['one', 'y']] as [string, string?][]) await ask(...form);
  await observed.server.close();
  const facts = forms.map((factsOf) => factsOf());
  expect(facts[1]).toEqual(facts[0]);
  expect(facts[2]).not.toEqual(facts[0]);
  expect(facts[3]).not.toEqual(facts[0]);
});
