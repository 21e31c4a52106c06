import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import { Upload as TusUpload } from 'tus-js-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';

const LIMIT = 20 * 1024 * 1024;
const MIB = 1024 * 1024;
const TYPE = 'application/offset+octet-stream';

interface Upload {
  file: string;
  url: string;
}
interface Finished {
  artifact_id: string;
  sha256: string;
  size_bytes: number;
  mime_type: string;
}

let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const digestOf = (bytes: Buffer) => ({
  'content-digest': `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`,
});

describe.each(['folder', 's3'])('uploads in pieces to a %s', (kind) => {
  let app: TestApp;
  let ann: Person;
  let home: string;
  beforeAll(async () => {
    app = await startTestApp({ env: { MAX_UPLOAD_BYTES: String(LIMIT), ...(kind === 's3' ? s3.env : {}) } });
    await app.listen();
    ann = await register(app, { name: 'ann' });
    home = `${ann.home}/namespaces/default`;
  });
  afterAll(() => app.close());

  async function begin(input: object = {}): Promise<Upload> {
    const { status, body } = await ann.call<Upload>('POST', `${home}/uploads`, { file_name: 'a.bin', ...input });
    expect(status).toBe(201);
    return body;
  }
  const pathOf = ({ url }: Upload) => new URL(url).pathname;
  const patch = (upload: Upload, offset: number, payload: Buffer, headers: object = {}, at: TestApp = app) =>
    at.server.inject({
      method: 'PATCH',
      url: pathOf(upload),
      headers: { 'tus-resumable': '1.0.0', 'content-type': TYPE, 'upload-offset': String(offset), ...headers },
      payload,
    });
  const head = async (upload: Upload, at: TestApp = app) =>
    (await at.server.inject({ method: 'HEAD', url: pathOf(upload), headers: { 'tus-resumable': '1.0.0' } })).headers;
  const offsetOf = async (upload: Upload) => Number((await head(upload))['upload-offset']);
  const finish = ({ file }: Upload, more: object = {}) =>
    ann.call<Finished>('POST', `${home}/uploads/finish`, { file, name: 'x', ...more });
  async function download(artifactId: string): Promise<Buffer> {
    const { body } = await ann.call<{ download_url: string }>('GET', `${home}/artifacts/${artifactId}/download`);
    const { pathname, search } = new URL(body.download_url);
    const answer = await app.server.inject({ method: 'GET', url: `${pathname}${search}` });
    if (answer.statusCode !== 302) return answer.rawPayload;
    return Buffer.from(await (await fetch(answer.headers.location!)).arrayBuffer());
  }
  /** Sends the beginning of a piece, and breaks off once the service has written some of it. */
  async function breakOff(upload: Upload, bytes: Buffer, headers: object = {}): Promise<void> {
    const request = http.request(`${app.url}${pathOf(upload)}`, {
      method: 'PATCH',
      headers: { 'content-type': TYPE, 'upload-offset': '0', 'content-length': 2 * bytes.length, ...headers },
    });
    const ended = new Promise((resolve) => request.on('error', resolve).on('close', resolve));
    await new Promise<void>((resolve) => request.write(bytes, () => resolve()));
    request.destroy();
    await ended;
  }
  /** Only files that artifacts have are left, and each has its bytes. */
  const expectWhole = async () => {
    const { rows } = await app.database.pool.query<{ state: string; key: string }>(
      'select state, storage_key as key from files',
    );
    expect(rows.map(({ state }) => state)).toEqual(rows.map(() => 'kept'));
    const keys: string[] = [];
    for await (const { key } of app.services.storage.list()) keys.push(key);
    expect(keys.sort()).toEqual(rows.map(({ key }) => key).sort());
  };

  test('pieces become one file, on any node, and nothing else is left', async () => {
    const bytes = randomBytes(5 * MIB);
    const upload = await begin({ size_bytes: bytes.length, sha256: sha256(bytes) });
    const other = await app.another(kind === 's3' ? s3.env : {});
    expect(await head(upload)).toMatchObject({
      'upload-offset': '0',
      'upload-length': String(bytes.length),
      'tus-resumable': '1.0.0',
      'cache-control': 'no-store',
      'upload-expires': expect.stringMatching(/GMT$/),
    });
    for (const [index, at] of [0, 2 * MIB, 4 * MIB].entries()) {
      const piece = bytes.subarray(at, at + 2 * MIB);
      const answer = await patch(upload, at, piece, digestOf(piece), index === 1 ? other : app);
      expect([answer.statusCode, answer.headers['upload-offset'], answer.body]).toEqual([
        204,
        String(at + piece.length),
        '',
      ]);
      expect(await offsetOf(upload)).toBe(at + piece.length);
    }
    const { status, body } = await finish(upload);
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({ size_bytes: bytes.length, sha256: sha256(bytes), file_name: 'a.bin' }),
    ]);
    expect((await download(body.artifact_id)).equals(bytes)).toBe(true);
    await waitFor(expectWhole);
    expect((await patch(upload, bytes.length, Buffer.alloc(0))).json()).toMatchObject({
      error: 'RESOURCE_CONFLICT',
      details: { reason: 'upload_in_use' },
    });
  });

  test('one piece of a text is the file, and a large one is stored bit by bit', async () => {
    const text = Buffer.from('# Title');
    const small = await begin({ file_name: 'notes.md', size_bytes: text.length });
    expect((await patch(small, 0, text)).statusCode).toBe(204);
    expect((await finish(small)).body).toMatchObject({ mime_type: 'text/markdown', size_bytes: 7 });
    const bytes = randomBytes(17 * MIB);
    const large = await begin({ sha256: sha256(bytes) });
    expect((await head(large))['upload-defer-length']).toBe('1');
    expect((await patch(large, 0, bytes)).headers['upload-offset']).toBe(String(bytes.length));
    expect((await finish(large)).status).toBe(422);
    expect(
      (await patch(large, bytes.length, Buffer.alloc(0), { 'upload-length': String(bytes.length) })).statusCode,
    ).toBe(204);
    const { body } = await finish(large);
    expect((await download(body.artifact_id)).equals(bytes)).toBe(true);
    await waitFor(expectWhole);
  });

  test('a connection that breaks leaves what has arrived, and the rest follows', async () => {
    const bytes = randomBytes(6 * MIB);
    const upload = await begin({ size_bytes: bytes.length });
    await breakOff(upload, bytes.subarray(0, 3 * MIB));
    const arrived = await waitUntil(() => offsetOf(upload));
    expect(arrived).toBeLessThanOrEqual(3 * MIB);
    expect((await patch(upload, arrived, bytes.subarray(arrived))).statusCode).toBe(204);
    const { body } = await finish(upload);
    expect(body.sha256).toBe(sha256(bytes));
    await waitFor(expectWhole);
  });

  test('of a piece with a digest, nothing counts before the last byte', async () => {
    const bytes = randomBytes(2 * MIB);
    const upload = await begin({ size_bytes: bytes.length });
    await breakOff(upload, bytes.subarray(0, MIB), digestOf(bytes));
    // its piece is removed once the service has noticed
    await waitFor(async () => {
      const { rows } = await app.database.pool.query('select 1 from files where part_of = $1', [upload.file]);
      expect(rows).toEqual([]);
    });
    const wrong = await patch(upload, 0, bytes, digestOf(bytes.subarray(1)));
    expect([wrong.statusCode, wrong.json()]).toEqual([
      400,
      expect.objectContaining({ details: expect.objectContaining({ reason: 'digest_mismatch' }) }),
    ]);
    expect(await offsetOf(upload)).toBe(0);
    expect((await patch(upload, 0, bytes, digestOf(bytes))).statusCode).toBe(204);
    expect((await finish(upload)).body.sha256).toBe(sha256(bytes));
    await waitFor(expectWhole);
  });

  test.each([1, 2])(
    'a file in %d pieces that is not the announced one is refused, and nothing is left',
    async (count) => {
      const bytes = randomBytes(MIB);
      const upload = await begin({ size_bytes: bytes.length, sha256: sha256(bytes.subarray(1)) });
      const size = bytes.length / count;
      const answers = [];
      for (let at = 0; at < bytes.length; at += size)
        answers.push(await patch(upload, at, bytes.subarray(at, at + size)));
      expect(answers.at(-1)!.json()).toMatchObject({
        status_code: 400,
        details: { reason: 'digest_mismatch', field: 'sha256' },
      });
      expect(await offsetOf(upload)).toBe(0);
      await waitFor(expectWhole);
      expect((await finish(upload)).status).toBe(422);
    },
  );

  test('of two clients at one address, the last one goes on, and their bytes do not mix', async () => {
    const [first, second] = [Buffer.alloc(4 * MIB, 'a'), Buffer.alloc(4 * MIB, 'b')];
    const upload = await begin({ size_bytes: 4 * MIB });
    const request = http.request(`${app.url}${pathOf(upload)}`, {
      method: 'PATCH',
      headers: { 'content-type': TYPE, 'upload-offset': '0', 'content-length': first.length },
    });
    const answered = new Promise<http.IncomingMessage>((resolve) => request.once('response', resolve));
    request.write(first.subarray(0, MIB));
    await waitUntil(async () => {
      const { rows } = await app.database.pool.query('select 1 from files where part_of = $1', [upload.file]);
      return rows.length > 0;
    });
    expect((await patch(upload, 0, second.subarray(0, MIB))).headers['upload-offset']).toBe(String(MIB));
    request.end(first.subarray(MIB));
    expect((await answered).statusCode).toBe(409);
    expect(await offsetOf(upload)).toBe(MIB);
    expect((await patch(upload, MIB, second.subarray(MIB))).statusCode).toBe(204);
    const { body } = await finish(upload);
    expect(body.sha256).toBe(sha256(second));
    await waitFor(expectWhole);
  });

  test('many clients at once make one file of one of them', async () => {
    const upload = await begin({ size_bytes: 4 });
    const texts = ['aaaa', 'bbbb', 'cccc', 'dddd', 'eeee'];
    const answers = await Promise.all(texts.map((text) => patch(upload, 0, Buffer.from(text))));
    const done = texts.filter((_, index) => answers[index]!.statusCode === 204);
    expect(answers.map(({ statusCode }) => statusCode).filter((status) => ![204, 409].includes(status))).toEqual([]);
    expect(done).toHaveLength(1);
    const { body } = await finish(upload);
    expect(body.sha256).toBe(sha256(Buffer.from(done[0]!)));
    await waitFor(expectWhole);
  });

  test('what does not follow, is too long or cannot be read is refused', async () => {
    const upload = await begin({ size_bytes: 10 });
    expect((await patch(upload, 0, Buffer.from('01234'))).statusCode).toBe(204);
    const rest = Buffer.from('56789');
    const answers = [
      await patch(upload, 0, rest),
      await patch(upload, 7, rest.subarray(3)),
      await patch(upload, 5, Buffer.from('5678901')),
      await patch(upload, 5, rest, { 'upload-offset': '-5' }),
      await patch(upload, 5, rest, { 'upload-length': '11' }),
      await patch(upload, 5, rest, { 'content-type': 'application/octet-stream' }),
      await patch(upload, 5, rest, { 'tus-resumable': '0.2.2' }),
      await patch({ ...upload, url: `${upload.url}A` }, 5, rest),
    ];
    expect(answers.map((answer) => [answer.statusCode, answer.json<{ details: object }>().details])).toEqual([
      [409, { reason: 'offset_mismatch', upload_offset: 5 }],
      [409, { reason: 'offset_mismatch', upload_offset: 5 }],
      [413, { limit_bytes: 10 }],
      [400, { reason: 'upload_offset' }],
      [400, { reason: 'upload_length' }],
      [415, { expected: TYPE }],
      [412, { supported: ['1.0.0'] }],
      [403, { required_permission: 'artifact:create' }],
    ]);
    expect(answers[6]!.headers['tus-version']).toBe('1.0.0');
    const open = await begin();
    expect((await patch(open, 0, rest, { 'upload-length': String(LIMIT + 1) })).statusCode).toBe(413);
    expect(await offsetOf(open)).toBe(0);
    // a body without a length ends where the file does
    const chunked = http.request(`${app.url}${pathOf(upload)}`, {
      method: 'PATCH',
      headers: { 'content-type': TYPE, 'upload-offset': '5', 'transfer-encoding': 'chunked' },
    });
    const answered = new Promise<http.IncomingMessage>((resolve) => chunked.once('response', resolve));
    chunked.end('5678901');
    expect((await answered).statusCode).toBe(413);
    expect((await ann.call('POST', `${home}/uploads`, { file_name: 'x', size_bytes: LIMIT + 1 })).body).toMatchObject({
      detail: [{ loc: ['body', 'size_bytes'] }],
    });
    expect((await finish(upload)).body).toMatchObject({ sha256: sha256(Buffer.from('0123456789')) });
    expect((await begin()).file).not.toBe(upload.file);
    await waitFor(expectWhole);
  });

  test('what nobody completes is removed, pieces and all', async () => {
    const upload = await begin({ size_bytes: 10 });
    await patch(upload, 0, Buffer.from('01234'));
    const unused = async () => {
      await app.services.files.sweepUnused();
      const { rows } = await app.database.pool.query('select id from files where id = $1 or part_of = $1', [
        upload.file,
      ]);
      return rows.length;
    };
    expect(await unused()).toBe(2);
    // younger than two hours after the end of the address
    await app.database.pool.query(`update files set created_at = now() - interval '25 hours'`);
    expect(await unused()).toBe(2);
    await app.database.pool.query(
      `update files set expires_at = now() - interval '1 second' where state = 'receiving'`,
    );
    expect(await unused()).toBe(0);
    await waitFor(expectWhole);
    expect((await finish(upload)).status).toBe(422);
  });

  test('what has arrived is completed by whoever uses it, if the last request could not', async () => {
    const bytes = randomBytes(MIB);
    const upload = await begin();
    await patch(upload, 0, bytes.subarray(0, 1_000));
    await patch(upload, 1_000, bytes.subarray(1_000));
    // as a node that was killed after the last piece leaves it
    await app.database.pool.query('update files set declared_bytes = $2 where id = $1', [upload.file, bytes.length]);
    expect(await head(upload)).toMatchObject({ 'upload-offset': String(bytes.length) });
    const finished = await Promise.all([finish(upload), finish(upload), finish(upload)]);
    expect(finished.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 422, 422]);
    const { body } = finished.find(({ status }) => status === 201)!;
    expect((await download(body.artifact_id)).equals(bytes)).toBe(true);
    await waitFor(expectWhole);
  });

  test('a client of tus sends a file in chunks, and goes on after it was stopped', async () => {
    const bytes = randomBytes(3 * MIB + 17);
    const upload = await begin({ file_name: 'a.bin' });
    const send = (isStopped: (sent: number) => boolean) =>
      new Promise<number>((resolve, reject) => {
        const client: TusUpload = new TusUpload(bytes, {
          uploadUrl: `${app.url}${pathOf(upload)}`,
          uploadLengthDeferred: true,
          chunkSize: MIB / 2,
          onError: reject,
          onSuccess: () => resolve(bytes.length),
          onChunkComplete(_size, sent) {
            if (isStopped(sent)) void client.abort().then(() => resolve(sent), reject);
          },
        });
        client.start();
      });
    expect(await send((sent) => sent >= MIB)).toBe(MIB);
    expect(await send(() => false)).toBe(bytes.length);
    const { body } = await finish(upload);
    expect(body.sha256).toBe(sha256(bytes));
    await waitFor(expectWhole);
  });
});

describe('from a page of another origin', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ env: { MAX_UPLOAD_BYTES: '1000', CORS_ORIGINS: 'https://app.example' } });
  });
  afterAll(() => app.close());

  test('scripts may send pieces, and read how far they are', async () => {
    const ann = await register(app, { name: 'ann' });
    const origin = 'https://app.example';
    const { body } = await ann.call<Upload>('POST', `${ann.home}/namespaces/default/uploads`, { file_name: 'a' });
    const url = new URL(body.url).pathname;
    const preflight = await app.server.inject({
      method: 'OPTIONS',
      url,
      headers: {
        origin,
        'access-control-request-method': 'PATCH',
        'access-control-request-headers': 'content-type,tus-resumable,upload-length,upload-offset',
      },
    });
    expect(preflight.statusCode).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-methods': expect.stringContaining('PATCH'),
      'access-control-allow-headers': 'content-type,tus-resumable,upload-length,upload-offset',
      'tus-version': '1.0.0',
      'tus-extension': 'expiration',
      'tus-max-size': '1000',
    });
    const answer = await app.server.inject({
      method: 'PATCH',
      url,
      headers: { origin, 'content-type': TYPE, 'upload-offset': '0' },
      payload: 'x',
    });
    expect(answer.statusCode).toBe(204);
    const exposed = String(answer.headers['access-control-expose-headers']).split(', ');
    for (const name of ['upload-offset', 'upload-expires', 'tus-resumable']) {
      expect(exposed).toContain(name);
      expect(answer.headers[name]).toBeDefined();
    }
    expect(exposed).toEqual(expect.arrayContaining(['upload-length', 'upload-defer-length', 'repr-digest']));
  });
});
