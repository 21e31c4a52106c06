import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, type FormPart, formOf } from '../../support/form.ts';
import { type Person, register } from '../../support/person.ts';

let app: TestApp;
let ann: Person;
let artifacts: string;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
  artifacts = `${ann.home}/namespaces/default/artifacts`;
});
afterAll(() => app.close());

const BYTES = 'Some bytes, of which a digest is known.';
const digest = (algorithm: string, bytes: string | Buffer = BYTES) =>
  createHash(algorithm).update(bytes).digest('base64');
const SHA256 = createHash('sha256').update(BYTES).digest('hex');

/** Rows and objects: of what was refused, there is neither. */
async function kept(): Promise<unknown> {
  const { rows } = await app.database.pool.query('select id from files order by id');
  const objects: string[] = [];
  for await (const { key } of app.services.storage.list()) objects.push(key);
  return { rows, objects: objects.sort() };
}

async function put(headers: Record<string, string>, input: object = {}) {
  const body = { file_name: 'a.txt', ...input };
  const { url } = (await ann.call<{ url: string }>('POST', `${ann.home}/namespaces/default/uploads`, body)).body;
  return app.server.inject({ method: 'PUT', url: new URL(url).pathname, payload: BYTES, headers });
}

const form: FormPart[] = [
  ['name', 'x'],
  ['file', { name: 'a.txt', content: BYTES, type: 'text/plain' }],
];
const post = (payload: Buffer, headers: Record<string, string> = {}) =>
  app.server.inject({
    method: 'POST',
    url: `${artifacts}/upload`,
    headers: { ...ann.headers, 'content-type': FORM_TYPE, ...headers },
    payload,
  });
/** The form, with headers of the part that is the file. */
const withPartHeaders = (headers: Record<string, string>) => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(
    formOf(form)
      .toString()
      .replace('content-type: text/plain\r\n', `content-type: text/plain\r\n${lines.join('')}`),
  );
};

const right: Record<string, string>[] = [
  { 'Content-Digest': `sha-256=:${digest('sha256')}:` },
  { 'Repr-Digest': `sha-512=:${digest('sha512')}:, sha-256=:${digest('sha256')}:` },
  { 'Content-Digest': `md5=:${digest('md5')}:;a="b,c";d, unknown=("x" 1);e, other=?1, sha=:${digest('sha1')}:` },
  { 'Content-Digest': 'unixsum=:AAA=:, crc32c="not of this world, but a text"' },
  { Digest: `SHA-256=${digest('sha256')},md5=${digest('md5')},unixsum=30637` },
  { 'Content-MD5': digest('md5') },
];
const wrong: [Record<string, string>, string][] = [
  [{ 'Content-Digest': `sha-256=:${digest('sha256', 'other')}:` }, 'sha-256'],
  [{ 'Repr-Digest': `sha-256=:${digest('sha256')}:, sha-512=:${digest('sha512', 'other')}:` }, 'sha-512'],
  [{ Digest: `sha=${digest('sha1', 'other')}` }, 'sha'],
  [{ 'Content-MD5': digest('md5', 'other') }, 'md5'],
];
const unreadable: Record<string, string>[] = [
  { 'Content-Digest': 'sha-256' },
  { 'Content-Digest': digest('sha256') },
  { 'Content-Digest': `sha-256=:${digest('md5')}:` },
  { 'Content-Digest': `sha-256=:${digest('sha256')}:,` },
  { 'Repr-Digest': `sha-256="${digest('sha256')}"` },
  { Digest: `sha-256=${digest('sha256')}, =` },
  { 'Content-MD5': 'no digest' },
];
const refusal = (details: object) => ({ error: 'INVALID_REQUEST', details: expect.objectContaining(details) });

describe('of a file that is sent by itself', () => {
  test.each(right)('a right digest is accepted: %j', async (headers) => {
    const answer = await put(headers);
    expect([answer.statusCode, answer.json<{ sha256: string }>().sha256]).toEqual([200, SHA256]);
  });

  test.each(wrong)('a wrong digest is refused, and nothing is kept: %j', async (headers, algorithm) => {
    const before = await kept();
    const answer = await put(headers);
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      expect.objectContaining(refusal({ reason: 'digest_mismatch', field: Object.keys(headers)[0], algorithm })),
    ]);
    expect(await kept()).toEqual(before);
  });

  test.each(unreadable)('a digest that cannot be read is refused: %j', async (headers) => {
    const before = await kept();
    const answer = await put(headers);
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      expect.objectContaining(refusal({ reason: 'digest', field: Object.keys(headers)[0] })),
    ]);
    expect(await kept()).toEqual(before);
  });

  test('the digest that was announced is that of the file', async () => {
    expect((await put({}, { sha256: SHA256.toUpperCase() })).statusCode).toBe(200);
    const before = await kept();
    const refused = await put({}, { sha256: '0'.repeat(64) });
    expect([refused.statusCode, refused.json()]).toEqual([
      400,
      expect.objectContaining(refusal({ reason: 'digest_mismatch', field: 'sha256' })),
    ]);
    expect(await kept()).toEqual(before);
  });

  test('a part of a file is not taken for the whole', async () => {
    const answer = await put({ 'content-range': `bytes 0-${BYTES.length - 1}/100` });
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      expect.objectContaining(refusal({ reason: 'content_range' })),
    ]);
  });
});

describe('of a file in a form', () => {
  test.each(right)('a right digest of the part is accepted: %j', async (headers) => {
    expect((await post(withPartHeaders(headers))).statusCode).toBe(201);
  });

  test.each(wrong)('a wrong digest of the part is refused, and nothing is kept: %j', async (headers, algorithm) => {
    const before = await kept();
    const answer = await post(withPartHeaders(headers));
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      expect.objectContaining(refusal({ reason: 'digest_mismatch', algorithm })),
    ]);
    expect(await kept()).toEqual(before);
  });

  test.each(unreadable)('a digest of the part that cannot be read is refused: %j', async (headers) => {
    const before = await kept();
    const answer = await post(withPartHeaders(headers));
    expect([answer.statusCode, answer.json()]).toEqual([400, expect.objectContaining(refusal({ reason: 'digest' }))]);
    expect(await kept()).toEqual(before);
  });

  test('a digest of the request is that of the whole body, with its boundaries', async () => {
    const body = Buffer.concat([formOf(form), Buffer.from('\r\nan epilogue')]);
    const of = (bytes: Buffer | string) => ({ 'content-digest': `sha-256=:${digest('sha256', bytes)}:` });
    expect((await post(body, of(body))).statusCode).toBe(201);
    const before = await kept();
    for (const bytes of [formOf(form), BYTES]) {
      const answer = await post(body, of(bytes));
      expect([answer.statusCode, answer.json()]).toEqual([
        400,
        expect.objectContaining(refusal({ reason: 'digest_mismatch', field: 'Content-Digest' })),
      ]);
    }
    expect((await post(body, { digest: 'sha-256=?' })).statusCode).toBe(400);
    expect(await kept()).toEqual(before);
    expect((await ann.call<{ total: number }>('GET', artifacts)).body.total).toBe(right.length + 1);
  });
});
