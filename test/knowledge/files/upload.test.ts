import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ArtifactFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { bucketsMade } from '../../support/buckets.ts';
import { FORM_TYPE, type FormPart, formOf } from '../../support/form.ts';
import { colleague, eventsOf, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';
import { waitFor } from '../../support/wait.ts';

const LIMIT = 3 * 1024 * 1024;
type Artifact = RestBody<ArtifactFragment>;

let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(() => s3.stop());

const artifactsOf = (person: Person) => `${person.home}/namespaces/default/artifacts`;
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const textFile = (content = 'hello', name = 'a.txt') => ({ name, content, type: 'text/plain' });

test('whoever keeps sending after a refusal is cut off', async () => {
  const app = await startTestApp({ env: { MAX_UPLOAD_BYTES: '1024' } });
  const { hostname, port } = new URL(await app.listen());
  const ann = await register(app, { name: 'ann' });
  const socket = net.connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.on('error', () => undefined); // it is cut off while it sends
  await once(socket, 'connect');
  socket.write(
    `POST ${artifactsOf(ann)}/upload HTTP/1.1\r\nhost: x\r\nauthorization: ${ann.headers.authorization}\r\n` +
      `content-type: ${FORM_TYPE}\r\ncontent-length: 90000000\r\n\r\n`,
  );
  const [answer] = await once(socket.setEncoding('utf8'), 'data');
  expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  const sending = setInterval(() => socket.writable && socket.write('x'), 50);
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(sending);
  await app.close();
});

describe.each(['folder', 's3'])('uploads to a %s', (kind) => {
  let app: TestApp;
  let ann: Person;
  beforeAll(async () => {
    app = await startTestApp({ env: { MAX_UPLOAD_BYTES: String(LIMIT), ...(kind === 's3' ? s3.env : {}) } });
    await app.listen();
    ann = await register(app, { name: 'ann' });
  });
  afterAll(() => app.close());

  const send = (
    parts: readonly FormPart[],
    { who = ann, headers = {}, type = FORM_TYPE }: { who?: Person; headers?: object; type?: string } = {},
  ) =>
    app.server.inject({
      method: 'POST',
      url: `${artifactsOf(who)}/upload`,
      headers: { ...who.headers, 'content-type': type, ...headers },
      payload: formOf(parts),
    });

  const rows = async () =>
    (await app.database.pool.query<{ state: string; key: string }>('select state, storage_key as key from files')).rows;
  const stored = async () => {
    const keys: string[] = [];
    for await (const { key } of app.services.storage.list()) keys.push(key);
    return keys.sort();
  };
  /** Every row that was kept has its bytes, and there is nothing else. */
  const expectWhole = async () => {
    const kept = await rows();
    expect(kept.map(({ state }) => state)).toEqual(kept.map(() => 'kept'));
    expect(await stored()).toEqual(kept.map(({ key }) => key).sort());
  };

  test('makes an artifact of a form', async () => {
    const bytes = randomBytes(70_000);
    const answer = await send([
      ['name', 'Numbers'],
      ['file', { name: 'numbers.bin', content: bytes, type: 'application/x-numbers' }],
      ['description', 'Only numbers'],
      ['tags', 'one, two'],
      ['metadata', '{"aB":[1,null]}'],
      ['ttl_seconds', '60'],
    ]);
    expect(answer.statusCode).toBe(201);
    const artifact = answer.json<Artifact>();
    expect(artifact).toMatchObject({
      artifact_id: expect.stringMatching(/^art_/),
      workspace_id: ann.workspaceId,
      name: 'Numbers',
      description: 'Only numbers',
      artifact_type: 'file',
      version: 1,
      is_latest: true,
      content: null,
      has_file: true,
      file_name: 'numbers.bin',
      mime_type: 'application/octet-stream',
      size_bytes: 70_000,
      tags: ['one', 'two'],
      metadata: { aB: [1, null] },
      ttl_seconds: 60,
      source: 'upload',
      created_by: ann.userId,
    });
    expect((await ann.call('GET', `${artifactsOf(ann)}/${artifact.artifact_id}`)).body).toEqual(artifact);
    expect(await eventsOf(app, artifact.artifact_id)).toEqual(['artifact.created']);
    const { rows: files } = await app.database.pool.query(
      'select f.* from files f join artifacts a on a.file_id = f.id where a.id = $1',
      [artifact.artifact_id],
    );
    expect(files).toEqual([
      expect.objectContaining({
        workspace_id: ann.workspaceId,
        state: 'kept',
        sha256: hashOf(bytes),
        size_bytes: '70000',
        mime_type: 'application/octet-stream',
        claimed_mime_type: 'application/x-numbers',
        created_by: ann.userId,
      }),
    ]);
    await expectWhole();
  });

  test('takes the parts in any order, and lists in any form', async () => {
    const first = await send([
      ['file', textFile('# Title', 'notes.md')],
      ['name', 'Notes'],
      ['tags', '["a,b","c"]'],
    ]);
    expect(first.json()).toMatchObject({ mime_type: 'text/markdown', artifact_type: 'markdown', tags: ['a,b', 'c'] });
    const second = await send([
      ['tags', 'a'],
      ['name', 'Notes'],
      ['tags', 'b'],
      ['description', ''],
      ['unknown', 'ignored'],
      ['file', textFile()],
    ]);
    expect(second.json()).toMatchObject({ mime_type: 'text/plain', tags: ['a', 'b'], description: null });
  });

  test('takes an empty file', async () => {
    const answer = await send([
      ['name', 'Nothing'],
      ['file', { name: 'nothing', content: '' }],
    ]);
    expect(answer.json()).toMatchObject({ size_bytes: 0, has_file: true, file_name: 'nothing' });
    await expectWhole();
  });

  test('makes a file the next version of an artifact', async () => {
    const first = (await ann.call<Artifact>('POST', artifactsOf(ann), { name: 'Report', content: 'old' })).body;
    const versions = [];
    for (const content of ['second', 'third'])
      versions.push(
        (
          await send([
            ['name', 'Report'],
            ['file', textFile(content)],
            ['root_artifact_id', first.artifact_id],
          ])
        ).json<Artifact>(),
      );
    expect(versions).toEqual([
      expect.objectContaining({ artifact_id: first.artifact_id, version: 2, has_file: true, content: null }),
      expect.objectContaining({ artifact_id: first.artifact_id, version: 3, has_file: true, size_bytes: 5 }),
    ]);
    const { body } = await ann.call<{ versions: Artifact[] }>(
      'GET',
      `${artifactsOf(ann)}/${first.artifact_id}/versions`,
    );
    expect(body.versions.map(({ version, has_file: hasFile }) => [version, hasFile])).toEqual([
      [3, true],
      [2, true],
      [1, false],
    ]);
    await expectWhole();
  });

  test('stores nothing for somebody who may not', async () => {
    const viewer = await colleague(app, ann, 'viewer');
    const stranger = await register(app, { name: 'stranger' });
    await bucketsMade(app); // of the workspaces of both
    await app.jobsDone(); // that read what tests before have uploaded
    // each node looks for its marker now and then
    const sent = () => s3.requests.filter((request) => !request.includes('service/marker')).length;
    const before = sent();
    const form: FormPart[] = [
      ['name', 'x'],
      ['file', textFile()],
    ];
    const url = `${artifactsOf(ann)}/upload`;
    const to = (who: Person | null, where = url) =>
      app.server.inject({
        method: 'POST',
        url: where,
        headers: { ...who?.headers, 'content-type': FORM_TYPE },
        payload: formOf(form),
      });
    expect(await to(null)).toMatchObject({ statusCode: 401 });
    expect((await to(viewer)).json()).toMatchObject({ details: { required_permission: 'artifact:create' } });
    expect((await to(stranger)).json()).toMatchObject({ details: { required_permission: 'organization:access' } });
    expect(await to(ann, url.replace('default', 'ns_missing'))).toMatchObject({ statusCode: 404 });
    expect(await to(ann, url.replace('default', 'a%00b'))).toMatchObject({ statusCode: 422 });
    expect(sent()).toBe(before);
    await expectWhole();
  });

  test('checks the fields like every body, and leaves nothing of a file that came with wrong ones', async () => {
    const wrong = await send([
      ['file', textFile()],
      ['ttl_seconds', '1.5'],
      ['metadata', '[1]'],
      ['tags', `["${'x'.repeat(65)}"]`],
    ]);
    expect(wrong.statusCode).toBe(422);
    expect(
      wrong.json<{ detail: { type: string; loc: unknown[] }[] }>().detail.map(({ type, loc }) => [type, loc]),
    ).toEqual([
      ['missing', ['body', 'name']],
      ['string_too_long', ['body', 'tags', 0]],
      ['dict_type', ['body', 'metadata']],
      ['int_parsing', ['body', 'ttl_seconds']],
    ]);
    expect((await send([['name', 'x']])).json()).toMatchObject({
      detail: [{ type: 'missing', loc: ['body', 'file'], input: { name: 'x' } }],
    });
    expect((await send([])).statusCode).toBe(422);
    await expectWhole();
  });

  test.each([
    ['a thread that is not there', { thread_id: 'thr_missing' }, 404],
    ['an artifact that is not there', { root_artifact_id: 'art_missing' }, 404],
  ])('leaves nothing of a file for %s', async (_what, fields, status) => {
    const answer = await send([['name', 'x'], ['file', textFile()], ...Object.entries(fields)]);
    expect(answer.statusCode).toBe(status);
    await expectWhole();
  });

  test('refuses a file that is one byte too large, and takes one that is not', async () => {
    const file = (size: number): FormPart[] => [
      ['name', 'x'],
      ['file', { content: randomBytes(size) }],
    ];
    const refused = await send(file(LIMIT + 1));
    expect([refused.statusCode, refused.json()]).toEqual([
      413,
      expect.objectContaining({ error: 'PAYLOAD_TOO_LARGE', details: { limit_bytes: LIMIT } }),
    ]);
    await expectWhole();
    expect((await send(file(LIMIT))).json()).toMatchObject({ size_bytes: LIMIT });
    await expectWhole();
  });

  test('answers over a real connection while the client is still sending too much', async () => {
    const body = formOf([
      ['name', 'x'],
      ['file', { content: randomBytes(2 * LIMIT) }],
    ]);
    const answer = await fetch(`${app.url}${artifactsOf(ann)}/upload`, {
      method: 'POST',
      headers: { ...ann.headers, 'content-type': FORM_TYPE },
      body: new Uint8Array(body),
    });
    expect([answer.status, await answer.json()]).toEqual([413, expect.objectContaining({ status_code: 413 })]);
    await expectWhole();
  });

  test('leaves nothing of an upload that breaks off, wherever that is', async () => {
    const body = formOf([
      ['name', 'x'],
      ['file', { content: randomBytes(LIMIT - 10) }],
    ]);
    for (let tenth = 0; tenth < 10; tenth++) {
      const url = new URL(`${app.url}${artifactsOf(ann)}/upload`);
      const request = http.request(url, {
        method: 'POST',
        headers: { ...ann.headers, 'content-type': FORM_TYPE, 'content-length': body.length },
      });
      const ended = new Promise((resolve) => request.on('error', resolve).on('close', resolve));
      await new Promise<void>((resolve) =>
        request.write(body.subarray(0, 100 + (body.length * tenth) / 10), () => resolve()),
      );
      request.destroy();
      await ended;
    }
    await waitFor(expectWhole);
    expect(s3.openUploads()).toEqual([]);
  });

  test('refuses whoever was removed while the file arrived, and leaves nothing', async () => {
    const bob = await colleague(app, ann, 'editor');
    const body = formOf([
      ['name', 'x'],
      ['file', { content: randomBytes(1_000) }],
    ]);
    const request = http.request(new URL(`${app.url}${artifactsOf(ann)}/upload`), {
      method: 'POST',
      headers: { ...bob.headers, 'content-type': FORM_TYPE, 'content-length': body.length },
    });
    const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
    request.write(body.subarray(0, body.length - 100));
    await waitFor(async () => expect((await rows()).map(({ state }) => state)).toContain('receiving'));
    const url = `/v1/orgs/${ann.orgId}/members/${bob.userId}`;
    expect(await app.server.inject({ method: 'DELETE', url, headers: ann.headers })).toMatchObject({ statusCode: 204 });
    request.end(body.subarray(body.length - 100));
    const [answer] = await answered;
    expect([answer.statusCode, JSON.parse(await text(answer))]).toEqual([
      403,
      expect.objectContaining({ details: { required_permission: 'organization:access' } }),
    ]);
    await expectWhole();
  });

  test('does the same request once', async () => {
    const form = (content: string, name = 'x'): FormPart[] => [
      ['file', textFile(content)],
      ['name', name],
    ];
    const headers = { 'idempotency-key': `${kind}-1` };
    const first = await send(form('one'), { headers });
    const again = await send(form('one'), { headers });
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.json()).toEqual(first.json());
    for (const other of [form('two'), form('one', 'y')])
      expect((await send(other, { headers })).json()).toMatchObject({ error: 'IDEMPOTENCY_CONFLICT' });
    await expectWhole();
  });

  test.each<[string, FormPart[], number, object?]>([
    ['a field __proto__', [['__proto__', 'x']], 400],
    ['a field constructor', [['constructor', 'x']], 400],
    [
      'a second file',
      [
        ['file', textFile()],
        ['file', textFile()],
      ],
      422,
    ],
    ['a text as the file', [['file', 'text']], 422],
    ['metadata with __proto__', [['metadata', '{"__proto__":{"x":1}}']], 422],
    ['metadata that is deep', [['metadata', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`]], 422],
    ['metadata that is no JSON', [['metadata', '{']], 422],
    ['a field that is huge', [['description', 'x'.repeat(300_000)]], 422],
    ['fields without number', Array.from({ length: 80 }, (_, index) => [`f${index}`, 'x'] as const), 400],
    ['NUL in a field', [['description', 'a\0b']], 422],
  ])('refuses %s, and leaves nothing', async (_what, parts, status) => {
    for (const form of [
      [['name', 'x'], ['file', textFile()], ...parts],
      [...parts, ['name', 'x'], ['file', textFile()]],
    ] as FormPart[][])
      expect((await send(form)).statusCode).toBe(status);
    expect(({} as { x?: number }).x).toBeUndefined();
    await expectWhole();
  });

  test('refuses bodies that are no such form', async () => {
    const url = `${artifactsOf(ann)}/upload`;
    const raw = (type: string, payload: string | Buffer) =>
      app.server.inject({ method: 'POST', url, headers: { ...ann.headers, 'content-type': type }, payload });
    const whole = formOf([
      ['name', 'x'],
      ['file', textFile()],
    ]);
    expect((await raw('application/json', '{}')).json()).toMatchObject({
      status_code: 415,
      details: { expected: 'multipart/form-data' },
    });
    const answers = [
      await raw('multipart/form-data', whole),
      await raw(`multipart/form-data; boundary=${'b'.repeat(71)}`, whole),
      await raw('multipart/form-data; boundary=', whole),
      await raw(FORM_TYPE, whole.subarray(0, whole.length - 20)),
      await raw(FORM_TYPE, whole.subarray(0, 60)),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([400, 400, 400, 400, 400]);
    expect((await raw('multipart/form-data; boundary=other', whole)).statusCode).toBeGreaterThanOrEqual(400);
    expect((await raw('multipart/form-data; boundary=other', whole)).statusCode).toBeLessThan(500);
    await expectWhole();
  });
});

describe('names of files', () => {
  let app: TestApp;
  let ann: Person;
  beforeAll(async () => {
    app = await startTestApp();
    ann = await register(app, { name: 'ann' });
  });
  afterAll(() => app.close());

  test.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\ann\\report.pdf', 'report.pdf'],
    ['a\u202egnp.exe', 'agnp.exe'],
    ['a\u0000b.txt', 'ab.txt'],
    ['..', 'file'],
    ['  spaces  inside .txt ', 'spaces inside .txt'],
    [`${'é'.repeat(300)}.docx`, `${'é'.repeat(125)}.docx`],
    ['.env', '.env'],
    ['Übersicht 2026.txt', 'Übersicht 2026.txt'],
  ])('%j is kept as %j', async (given, kept) => {
    const answer = await app.server.inject({
      method: 'POST',
      url: `${artifactsOf(ann)}/upload`,
      headers: { ...ann.headers, 'content-type': FORM_TYPE },
      payload: formOf([
        ['name', 'x'],
        ['file', { name: given.replaceAll('\\', '\\\\'), content: 'x' }],
      ]),
    });
    expect(answer.json()).toMatchObject({ file_name: kept });
  });

  test('the name of a file is no name in the store', async () => {
    const folder = path.join(app.dataDir, 'files', ann.workspaceId.toLowerCase());
    expect(existsSync(folder)).toBe(true);
    for (const name of readdirSync(folder)) expect(name).toMatch(/^file_[0-9A-Z]{26}$/);
  });
});
