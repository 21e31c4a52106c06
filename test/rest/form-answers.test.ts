import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FileReceiver, FormFile } from '../../rest/form.ts';
import { ApiError } from '../../src/kernel/errors.ts';
import { FORM_TYPE, type FormPart, formOf } from '../support/form.ts';
import { removeFolders, type ToyServer, toyServer } from './toy.ts';

const documents = `
  mutation AddPicture($item_id: ID!, $limit: Int, $body: PictureInput! @upload(file: "picture"))
    @rest(method: POST, path: "/v1/items/{item_id}/pictures", status: 201) {
    addPicture(id: $item_id, input: $body) @body
    other: addPicture(id: "0", input: { picture: "none", displayName: "none", count: $limit })
  }
  mutation AddPictureOf($owner: ID!, $body: PictureInput! @upload(file: "picture"))
    @rest(method: POST, path: "/v1/pictures", status: 201) {
    addPicture(id: $owner, input: $body) @body
  }
`;
const MAX_BYTES = 1_000;

const sha256 = (content: string | Buffer, as: 'hex' | 'base64' = 'hex') =>
  createHash('sha256').update(content).digest(as);

/** The files that were received, and the ids of those that were given up again. */
let received: (Omit<FormFile, 'content'> & { content: string })[];
let discarded: string[];
/** What the operation got, and what the request said of itself. */
let inputs: unknown[];
let requests: { form: { facts: unknown } | null }[];
let refusal: Error | null;
beforeEach(() => {
  received = [];
  discarded = [];
  inputs = [];
  requests = [];
  refusal = null;
});

const files: FileReceiver = {
  maxBytes: MAX_BYTES,
  async receive(_context, _request, { content, ...said }) {
    if (refusal) throw refusal;
    const bytes = await buffer(content);
    if (bytes.length > MAX_BYTES) throw new ApiError('PAYLOAD_TOO_LARGE', { limit_bytes: MAX_BYTES });
    received.push({ ...said, content: String(bytes) });
    return { id: `p${received.length}`, sizeBytes: bytes.length, sha256: sha256(bytes) };
  },
  discard: async (_request, id) => void discarded.push(id),
};

let toy: ToyServer;
let isFull = false;
beforeAll(async () => {
  const addPicture = (_: unknown, { id, input }: { id: string; input: object }) => {
    if (isFull) throw new ApiError('RESOURCE_CONFLICT', { reason: 'full' });
    if (id !== '0') inputs.push(input);
    return id;
  };
  const context = (request: (typeof requests)[number]) => {
    requests.push(request);
    return {};
  };
  toy = await toyServer(documents, { resolvers: { Mutation: { addPicture } } }, { files, context });
});
afterAll(async () => {
  await toy.server.close();
  removeFolders();
});

const picture: FormPart = ['picture', { name: 'a.png', content: 'pixels', type: 'image/png' }];
const name: FormPart = ['display_name', 'x'];

async function send(
  parts: readonly FormPart[] | Buffer,
  headers: Record<string, string> = {},
  url = '/v1/items/7/pictures',
): Promise<unknown[]> {
  const payload = Buffer.isBuffer(parts) ? parts : formOf(parts);
  const { status, body } = await toy.send({
    method: 'POST',
    url,
    headers: { 'content-type': FORM_TYPE, ...headers },
    payload,
  });
  const { error, details, detail } = body as Record<string, unknown>;
  return status === 201 ? [201] : [status, error ?? detail, ...(details ? [details] : [])];
}
const inputOf = async (...parts: FormPart[]) => {
  const answer = await send([name, ...parts, picture]);
  return answer[0] === 201 ? inputs.at(-1) : answer;
};
const invalid = (type: string, field: string, msg: string, more: object = {}) => [
  422,
  [{ type, loc: ['body', field], msg, input: null, ...more }],
];

describe('a file of a form', () => {
  it('is received with what its part says of it', async () => {
    expect(await send([picture, name])).toEqual([201]);
    expect(received).toEqual([{ content: 'pixels', fileName: 'a.png', contentType: 'image/png', digests: [] }]);
    expect(inputs).toEqual([{ picture: 'p1', displayName: 'x' }]);
    expect(discarded).toEqual([]);
  });

  it('brings the digest that its part claims', async () => {
    const value = sha256('pixels', 'base64');
    const form = String(formOf([name, picture])).replace(
      'image/png',
      `image/png\r\ncontent-digest: sha-256=:${value}:`,
    );
    expect(await send(Buffer.from(form))).toEqual([201]);
    expect(received[0]?.digests).toEqual([
      { algorithm: 'sha-256', value: Buffer.from(value, 'base64'), field: 'Content-Digest' },
    ]);
  });

  it('of another field is not received', async () => {
    expect(await send([name, ['other', { content: 'secret' }]])).toEqual([
      422,
      [{ type: 'missing', loc: ['body', 'picture'], msg: 'Field required', input: { display_name: 'x' } }],
    ]);
    expect(received).toEqual([]);
  });

  it('is given up if the operation fails, and only then', async () => {
    isFull = true;
    expect(await send([name, picture])).toEqual([409, 'RESOURCE_CONFLICT', { reason: 'full' }]);
    isFull = false;
    expect(discarded).toEqual(['p1']);
    expect((await send([picture, ['count', 'x']]))[0]).toBe(422);
    expect(discarded).toEqual(['p1', 'p2']);
    expect(await send([name, picture])).toEqual([201]);
    expect(discarded).toHaveLength(2);
  });

  it('is not received if something before it is wrong; what is missing may still come', async () => {
    const wrong = {
      type: 'int_parsing',
      loc: ['body', 'count'],
      msg: 'Input should be a valid integer, unable to parse string as an integer',
      input: 'x',
    };
    expect(await send([name, ['count', 'x'], picture])).toEqual([422, [wrong]]);
    expect(await send([name, picture], {}, '/v1/items/7/pictures?limit=y')).toEqual([
      422,
      [{ ...wrong, loc: ['query', 'limit'], input: 'y' }],
    ]);
    expect(await send([picture], {}, '/v1/items/%00/pictures')).toMatchObject([
      422,
      [{ loc: ['path', 'item_id'] }, { type: 'missing', loc: ['body', 'display_name'] }],
    ]);
    expect(await send([name, picture], {}, '/v1/pictures')).toMatchObject([
      422,
      [{ type: 'missing', loc: ['query', 'owner'] }],
    ]);
    expect(received).toEqual([]);
    expect(await send([picture, name])).toEqual([201]);
    expect(await send([picture, name], {}, '/v1/pictures?owner=1')).toEqual([201]);
  });

  it('is refused as its receiver does', async () => {
    refusal = new ApiError('FORBIDDEN', { required_permission: 'a:b' });
    expect(await send([name, picture])).toEqual([403, 'FORBIDDEN', { required_permission: 'a:b' }]);
    refusal = new Error('the disk is full');
    expect(await send([name, picture])).toEqual([500, 'INTERNAL_SERVER_ERROR', {}]);
    expect(toy.faults.splice(0)).toEqual([refusal]);
    refusal = new Error('Unexpected end of multipart data');
    expect(await send([name, picture])).toEqual([400, 'INVALID_REQUEST', { reason: 'multipart' }]);
    expect(discarded).toEqual([]);
  });

  it('may be as large as the receiver says', async () => {
    const of = (bytes: number): FormPart => ['picture', { content: 'x'.repeat(bytes) }];
    expect(await send([name, of(MAX_BYTES)])).toEqual([201]);
    expect(await send([name, of(MAX_BYTES + 1)])).toEqual([413, 'PAYLOAD_TOO_LARGE', { limit_bytes: MAX_BYTES }]);
    expect(await send([name, of(MAX_BYTES * 10)])).toEqual([413, 'PAYLOAD_TOO_LARGE', { limit_bytes: MAX_BYTES }]);
  });
});

describe('a field of a form', () => {
  it('is read as its type says', async () => {
    expect(await inputOf(['count', '3'], ['tags', ' a ,,b '], ['metadata', '{"aB":[1]}'])).toEqual({
      picture: 'p1',
      displayName: 'x',
      count: 3,
      tags: ['a', 'b'],
      metadata: { aB: [1] },
    });
    expect(await inputOf(['tags', ' ["a,b"]'], ['tags', 'c'], ['unknown', 'u'], ['count', ''])).toEqual({
      picture: 'p2',
      displayName: 'x',
      tags: ['a,b', 'c'],
    });
  });

  it('that comes again replaces what is no list', async () => {
    expect(await inputOf(['count', '1'], ['count', '2'])).toMatchObject({ count: 2 });
    const list: FormPart = ['tags', { text: '"a"', type: 'application/json' }];
    expect(await inputOf(['tags', 'b'], list)).toMatchObject([422, [{ type: 'list_type', input: 'a' }]]);
    expect(await inputOf(list, ['tags', 'b'])).toMatchObject({ tags: ['b'] });
  });

  it('that is no JSON is told as it was sent', async () => {
    expect(await inputOf(['metadata', '{'])).toEqual([
      422,
      [{ type: 'dict_type', loc: ['body', 'metadata'], msg: 'Input should be a valid dictionary', input: '{' }],
    ]);
    expect(await inputOf(['tags', '[1'])).toMatchObject([422, [{ type: 'list_type', input: '[1' }]]);
    expect(await inputOf(['metadata', '{"__proto__":1}'])).toMatchObject([422, [{ type: 'invalid_key' }]]);
    const json: FormPart = ['metadata', { text: '{', type: 'application/json; charset=utf-8' }];
    expect(await inputOf(json)).toMatchObject([422, [{ type: 'json_invalid', loc: ['body', 1] }]]);
  });

  it('cannot be the file', async () => {
    expect(await send([name, ['picture', 'text']])).toEqual(
      invalid('value_error', 'picture', 'Value error, a file is expected'),
    );
  });

  it('is not longer than 256 KiB, and all of them no longer than 1 MiB', async () => {
    const long = (bytes: number): FormPart => ['unknown', 'x'.repeat(bytes)];
    const limit = 256 * 1024;
    expect(await send([['display_name', 'x'.repeat(limit + 1)], picture])).toEqual(
      invalid('string_too_long', 'display_name', `String should have at most ${limit} characters`, {
        ctx: { max_length: limit },
      }),
    );
    expect(await send([long(limit), long(limit), long(limit), long(limit - 1), name, picture])).toEqual([201]);
    expect(await send([long(limit), long(limit), long(limit), long(limit), name, picture])).toEqual([
      413,
      'PAYLOAD_TOO_LARGE',
      { limit_bytes: 1024 * 1024 },
    ]);
  });

  it('is one of at most 64', async () => {
    const fields = (count: number) => Array.from({ length: count }, (): FormPart => ['unknown', 'x']);
    expect(await send([name, ...fields(63), picture])).toEqual([201]);
    expect(await send([name, ...fields(64), picture])).toEqual([
      400,
      'INVALID_REQUEST',
      { reason: 'multipart_fields' },
    ]);
  });
});

describe('a form', () => {
  it('has the same facts if it is the same form', async () => {
    await send([name, ['tags', 'a'], picture]);
    await send([picture, ['tags', 'a'], name]);
    const factsOf = ({ form }: (typeof requests)[number]) => form?.facts;
    const expected = { display_name: 'x', tags: ['a'], picture: ['a.png', 'image/png', sha256('pixels')] };
    expect(requests.map(factsOf)).toEqual([expected, expected]);
    await send([name]);
    expect(factsOf(requests.at(-1)!)).toEqual({ display_name: 'x', picture: [] });
  });

  it.each([
    'multipart/form-data; boundary=xyz',
    'multipart/form-data;boundary="xyz"',
    'Multipart/Form-Data ; charset=utf-8; Boundary = xyz',
    `multipart/form-data; boundary=${'b'.repeat(70)}`,
    `multipart/form-data; boundary="${'b'.repeat(70)}"`,
  ])('may come as %s', async (type) => {
    const boundary = /xyz|b{70}/.exec(type)?.[0];
    const payload = formOf([name, picture], boundary);
    expect(await send(payload, { 'content-type': type })).toEqual([201]);
  });

  it.each([
    ['multipart/form-data', 'multipart_boundary'],
    ['multipart/form-data; boundary=', 'multipart_boundary'],
    ['multipart/form-data; boundary=""', 'multipart_boundary'],
    [`multipart/form-data; boundary=${'b'.repeat(71)}`, 'multipart_boundary'],
    ['multipart/form-data; boundary=other', 'multipart'],
  ])('is refused without its boundary: %s', async (type, reason) => {
    expect(await send([name, picture], { 'content-type': type })).toEqual([400, 'INVALID_REQUEST', { reason }]);
    expect(received).toEqual([]);
  });

  it.each(['multipart/form-datax; boundary=x', 'multipart/mixed; boundary=x', 'x-multipart/form-data; boundary=x'])(
    'is nothing else: %s',
    async (type) => {
      expect(await send([name, picture], { 'content-type': type })).toEqual([
        415,
        'UNSUPPORTED_MEDIA_TYPE',
        { expected: 'multipart/form-data' },
      ]);
    },
  );

  it('that is absent has no fields', async () => {
    const { status, body } = await toy.send({ method: 'POST', url: '/v1/items/7/pictures' });
    expect([status, body]).toMatchObject([422, { detail: [{ type: 'missing', loc: ['body'] }] }]);
  });

  it('that says how large it is may not be larger than its file and its fields', async () => {
    const limit = MAX_BYTES + 64 * 256 * 1024;
    const claim = (bytes: number) => send([name, picture], { 'content-length': String(bytes) });
    expect(await claim(limit + 1)).toEqual([413, 'PAYLOAD_TOO_LARGE', { limit_bytes: MAX_BYTES }]);
    expect((await claim(limit))[0]).not.toBe(413);
  });

  it('is held against the digest in the headers of the request, which is that of the whole body', async () => {
    const form = Buffer.concat([formOf([name, picture]), Buffer.from('\r\nwhat comes after')]);
    const digest = (of: Buffer | string) => ({ 'content-digest': `sha-256=:${sha256(of, 'base64')}:` });
    expect(await send(form, digest(form))).toEqual([201]);
    expect(await send(form, digest('another'))).toEqual([
      400,
      'INVALID_REQUEST',
      { reason: 'digest_mismatch', field: 'Content-Digest', algorithm: 'sha-256' },
    ]);
    // it was received meanwhile
    expect([inputs.length, discarded]).toEqual([1, ['p2']]);
  });
});
