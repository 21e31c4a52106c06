import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { formParts, type FormPart as Part } from '../../rest/form-parts.ts';
import { FORM_TYPE, type FormPart, formOf } from '../support/form.ts';

type Limits = Parameters<typeof formParts>[1];

const requestOf = (contentType = FORM_TYPE) => {
  const raw = new PassThrough();
  Object.assign(raw, { headers: { 'content-type': contentType } });
  return raw as PassThrough & IncomingMessage;
};
const sent = (body: Buffer | string, contentType?: string) => {
  const raw = requestOf(contentType);
  raw.end(body);
  return raw;
};

/** The parts as they are read, with what is in files. */
async function partsIn(raw: IncomingMessage, limits: Limits = {}) {
  const parts: unknown[] = [];
  for await (const part of formParts(raw, limits)) parts.push(await whole(part));
  return parts;
}
const whole = async (part: Part) =>
  part.kind === 'field' ? part : { ...part, content: String(await buffer(part.content)) };

const refused = (reason: string) => expect.objectContaining({ code: 'INVALID_REQUEST', details: { reason } }) as Error;
const file: FormPart = ['picture', { name: 'a.png', content: 'pixels', type: 'image/png' }];

it('fields and files come in their order, with what their parts say', async () => {
  const json = { text: '{}', type: 'application/json' };
  expect(await partsIn(sent(formOf([['a', '1'], file, ['a', ''], ['meta', json]])))).toEqual([
    { kind: 'field', name: 'a', text: '1', isCut: false, contentType: 'text/plain' },
    {
      kind: 'file',
      name: 'picture',
      content: 'pixels',
      fileName: 'a.png',
      contentType: 'image/png',
      headers: {
        'content-disposition': ['form-data; name="picture"; filename="a.png"'],
        'content-type': ['image/png'],
      },
    },
    { kind: 'field', name: 'a', text: '', isCut: false, contentType: 'text/plain' },
    { kind: 'field', name: 'meta', text: '{}', isCut: false, contentType: 'application/json' },
  ]);
});

it('all headers of a file are told, and not those of another part', async () => {
  const head = (name: string, more: string) =>
    `--x\r\ncontent-disposition: form-data; name="${name}"; filename="f"\r\n${more}\r\n`;
  const body = `${head('a', 'Content-Digest: one\r\n')}1\r\n${head('b', 'x-own: two\r\n')}2\r\n--x--\r\n`;
  const parts = await partsIn(sent(body, 'multipart/form-data; boundary=x'));
  expect(parts).toMatchObject([
    { name: 'a', content: '1', headers: { 'content-digest': ['one'] } },
    { name: 'b', content: '2', headers: { 'x-own': ['two'] } },
  ]);
  expect(Object.keys((parts[1] as { headers: object }).headers)).toEqual(['content-disposition', 'x-own']);
});

it('a part that is a file by its type only has no file name', async () => {
  const body =
    '--x\r\ncontent-disposition: form-data; name="a"\r\ncontent-type: application/octet-stream\r\n\r\n1\r\n--x--\r\n';
  expect(await partsIn(sent(body, 'multipart/form-data; boundary=x'))).toMatchObject([
    { kind: 'file', name: 'a', fileName: '', content: '1' },
  ]);
});

it('a text that is too long says that it was cut', async () => {
  expect(await partsIn(sent(formOf([['a', '12345']])), { fieldSize: 3 })).toMatchObject([{ text: '123', isCut: true }]);
});

it('a body without a byte is a form without parts', async () => {
  expect(await partsIn(sent(''))).toEqual([]);
  expect(await partsIn(sent(formOf([])))).toEqual([]);
});

it.each<[string, FormPart[], Limits]>([
  [
    'multipart_fields',
    [
      ['a', '1'],
      ['b', '2'],
      ['c', '3'],
    ],
    { fields: 2 },
  ],
  [
    'multipart_parts',
    [
      ['a', '1'],
      ['b', '2'],
      ['c', '3'],
    ],
    { parts: 2 },
  ],
  ['multipart_field_name', [['toString', '1']], {}],
  ['multipart_field_name', [['__proto__', { content: 'a file' }]], {}],
])('what is too much or dangerous ends the form: %s', async (reason, parts, limits) => {
  await expect(partsIn(sent(formOf(parts)), limits)).rejects.toEqual(refused(reason));
});

it('a form has one file, and the refusal says where another one was', async () => {
  await expect(partsIn(sent(formOf([file, file])), { files: 1 })).rejects.toMatchObject({
    detail: [
      {
        type: 'too_long',
        loc: ['body', 'file'],
        msg: 'The form should have at most 1 file',
        input: null,
        ctx: { max_length: 1 },
      },
    ],
  });
});

it('parts are given as they arrive, each when it is asked for', async () => {
  const raw = requestOf();
  const form = formOf([
    ['a', '1'],
    ['b', '2'],
    ['c', '3'],
  ]);
  const parts = formParts(raw, {});
  const first = parts.next();
  const half = form.indexOf('name="b"');
  raw.write(form.subarray(0, half));
  expect((await first).value).toMatchObject({ name: 'a' });
  const second = parts.next();
  raw.end(form.subarray(half));
  expect((await second).value).toMatchObject({ name: 'b' });
  expect((await parts.next()).value).toMatchObject({ name: 'c' });
  expect(await parts.next()).toEqual({ done: true, value: undefined });
});

it('a form that is cut off is none, whatever had come before', async () => {
  const form = formOf([['a', '1'], file, ['b', '2']]);
  for (const length of [1, 40, form.indexOf('pixels') + 3, form.length - 10])
    await expect(partsIn(sent(form.subarray(0, length)))).rejects.toEqual(refused('multipart'));
});

it('a client that leaves ends the form, and the file that was arriving', async () => {
  const raw = requestOf();
  const form = formOf([file]);
  const parts = formParts(raw, {});
  const first = parts.next();
  raw.write(form.subarray(0, form.indexOf('pixels') + 3));
  const { value } = (await first) as { value: Part };
  raw.destroy();
  await expect(whole(value)).rejects.toEqual(refused('multipart'));
  await expect(parts.next()).rejects.toEqual(refused('multipart'));
});

it('a file that nobody reads yet ends nothing when its client leaves', async () => {
  const raw = requestOf();
  const parts = formParts(raw, {});
  const first = parts.next();
  const form = formOf([file]);
  raw.write(form.subarray(0, form.indexOf('pixels') + 3));
  await first;
  raw.destroy();
  await expect(parts.next()).rejects.toEqual(refused('multipart'));
});

it('who stops reading leaves the rest of the body where it is', async () => {
  const raw = requestOf();
  const form = formOf([
    ['a', '1'],
    ['b', '2'],
  ]);
  raw.write(form.subarray(0, form.indexOf('name="b"')));
  for await (const part of formParts(raw, {})) {
    expect(part).toMatchObject({ name: 'a' });
    break;
  }
  expect([raw.listenerCount('data'), raw.listenerCount('close')]).toEqual([0, requestOf().listenerCount('close')]);
  raw.end('the rest');
  expect(String(await buffer(raw))).toBe('the rest');
});
