import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { colleague, type Person, register, signIn } from '../../support/person.ts';

const LIMIT = 100_000;
const NAMESPACE = 'orgId: $org, workspaceId: $workspace, namespaceId: "default"';
const CREATE = `mutation ($org: ID!, $workspace: ID!, $input: CreateUploadInput!) {
  createUpload(${NAMESPACE}, input: $input) { file url expiresAt maxBytes receivedBytes } }`;
const FINISH = `mutation ($org: ID!, $workspace: ID!, $input: UploadArtifactInput!) {
  finishUpload(${NAMESPACE}, input: $input) { id name version fileName mimeType sizeBytes hasFile } }`;

interface Upload {
  file: string;
  url: string;
  expiresAt: string;
  maxBytes: number;
  receivedBytes: number;
}
interface Finished {
  id: string;
  version: number;
}

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp({ env: { MAX_UPLOAD_BYTES: String(LIMIT) } });
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const place = { org: '', workspace: '' };
beforeAll(() => Object.assign(place, { org: ann.orgId, workspace: ann.workspaceId }));

async function begin(who = ann, input: object = { fileName: 'a.txt' }): Promise<Upload> {
  return (await who.ask<{ createUpload: Upload }>(CREATE, { ...place, input })).data.createUpload;
}
const put = (url: string, payload: Buffer | string, headers: Record<string, string> = {}) =>
  app.server.inject({ method: 'PUT', url: new URL(url).pathname, payload, headers });
const finish = (file: string, more: object = {}, who = ann) =>
  who.ask<{ finishUpload: Finished }>(FINISH, { ...place, input: { file, name: 'x', ...more } });
const files = async () => (await app.database.pool.query('select id, state from files order by id')).rows;

test('a file is sent to an address of its own, and becomes an artifact', async () => {
  const upload = await begin(ann, { fileName: '../x/a "b".md', contentType: 'text/html' });
  expect(upload).toMatchObject({ file: expect.stringMatching(/^file_/), maxBytes: LIMIT });
  expect(new URL(upload.url).pathname).toMatch(/^\/files\/uploads\/[\w-]+$/);
  expect(Math.abs(Date.parse(upload.expiresAt) - Date.now() - 86_400_000)).toBeLessThan(60_000);
  expect(await files()).toEqual([]);
  const sent = await put(upload.url, '# Title', { 'content-type': 'text/html' });
  expect([sent.statusCode, sent.json()]).toEqual([
    200,
    {
      file: upload.file,
      file_name: 'a "b".md',
      content_type: 'text/markdown',
      file_size_bytes: 7,
      sha256: createHash('sha256').update('# Title').digest('hex'),
    },
  ]);
  const { data } = await finish(upload.file);
  expect(data.finishUpload).toEqual({
    id: expect.stringMatching(/^art_/),
    name: 'x',
    version: 1,
    fileName: 'a "b".md',
    mimeType: 'text/markdown',
    sizeBytes: 7,
    hasFile: true,
  });
  expect(await files()).toEqual([{ id: upload.file, state: 'kept' }]);
  const next = await begin();
  await put(next.url, 'next');
  expect((await finish(next.file, { rootArtifactId: data.finishUpload.id })).data.finishUpload).toMatchObject({
    id: data.finishUpload.id,
    version: 2,
  });
});

test('an address ends with the session that asked for it', async () => {
  const again = await signIn(app, ann);
  const [ended, other] = [await begin(again), await begin()];
  expect((await again.call('POST', '/v1/auth/logout')).status).toBeLessThan(300);
  expect((await put(ended.url, 'x')).statusCode).toBe(403);
  expect((await put(other.url, 'x')).statusCode).toBe(200);
});

test('an address takes one file, and a file makes one artifact', async () => {
  const upload = await begin();
  const sent = await Promise.all(['one', 'two', 'six'].map((text) => put(upload.url, text)));
  expect(sent.map(({ statusCode }) => statusCode).sort((a, b) => a - b)).toEqual([200, 409, 409]);
  expect(sent.find(({ statusCode }) => statusCode === 409)?.json()).toMatchObject({
    details: { reason: 'upload_in_use' },
  });
  const finished = await Promise.all([1, 2, 3].map(() => finish(upload.file)));
  expect(finished.map(({ errors }) => errors?.[0]?.extensions.code ?? 'done').sort()).toEqual([
    'VALIDATION_ERROR',
    'VALIDATION_ERROR',
    'done',
  ]);
});

test('a file that is too large, or whose address is altered, is not stored', async () => {
  const before = await files();
  const upload = await begin();
  const large = await put(upload.url, randomBytes(LIMIT + 1));
  expect([large.statusCode, large.json()]).toEqual([413, expect.objectContaining({ details: { limit_bytes: LIMIT } })]);
  for (const url of [`${upload.url}A`, upload.url.slice(0, -4), upload.url.replace(/.{8}$/, 'AAAAAAAA')])
    expect((await put(url, 'x')).statusCode).toBe(403);
  expect(await files()).toEqual(before);
  expect((await put(upload.url, randomBytes(LIMIT))).statusCode).toBe(200);
});

test('an address ends with the rights of who asked for it, and its file is for nobody else', async () => {
  const bob = await colleague(app, ann, 'member');
  const viewer = await colleague(app, ann, 'viewer');
  const [mine, late] = [await begin(bob), await begin(bob)];
  expect((await put(mine.url, 'x')).statusCode).toBe(200);
  expect((await finish(mine.file)).errors?.[0]?.extensions.code).toBe('VALIDATION_ERROR');
  expect((await finish('file_missing')).errors?.[0]?.extensions.code).toBe('VALIDATION_ERROR');
  expect((await viewer.ask(CREATE, { ...place, input: { fileName: 'x' } })).errors?.[0]?.extensions.code).toBe(
    'FORBIDDEN',
  );
  expect((await finish(mine.file, {}, bob)).errors).toBeUndefined();
  await app.database.pool.query('update users set is_active = false where id = $1', [bob.userId]);
  expect((await put(late.url, 'x')).statusCode).toBe(403);
});

test('files that nobody uses are removed after hours, with their rows', async () => {
  const upload = await begin();
  await put(upload.url, 'x');
  const { files: service } = app.services;
  expect(await service.sweepUnused()).toBe(0);
  await app.database.pool.query(`update files set created_at = now() - interval '3 hours' where id = $1`, [
    upload.file,
  ]);
  await service.sweepUnused();
  expect(await files()).not.toContainEqual(expect.objectContaining({ id: upload.file }));
  expect((await finish(upload.file)).errors?.[0]?.extensions.code).toBe('VALIDATION_ERROR');
  const { rows } = await app.database.pool.query<{ key: string }>('select storage_key as key from files');
  const stored: string[] = [];
  for await (const { key } of app.services.storage.list()) stored.push(key);
  expect(stored.sort()).toEqual(rows.map(({ key }) => key).sort());
});

test('the bytes of an artifact go after its row', async () => {
  const upload = await begin();
  await put(upload.url, 'x');
  const { data } = await finish(upload.file);
  const { id } = data.finishUpload;
  await ann.call('DELETE', `${ann.home}/namespaces/default/artifacts/${id}`);
  await app.services.files.removeFiles();
  expect(await files()).toContainEqual({ id: upload.file, state: 'kept' });
  await app.database.pool.query('delete from artifacts where id = $1', [id]);
  await app.services.files.removeFiles();
  expect(await files()).not.toContainEqual(expect.objectContaining({ id: upload.file }));
});

const patch = ({ url }: Upload, offset: number, payload: Buffer) =>
  app.server.inject({
    method: 'PATCH',
    url: new URL(url).pathname,
    payload,
    headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) },
  });
/** What the service knows a file by whose upload goes on. */
const knownBy = (fileName: string, bytes: Buffer) => ({
  fileName,
  sizeBytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});
/** The newest piece of a file was begun so many seconds ago. */
const piecesBegun = ({ file }: Upload, secondsAgo: number) =>
  app.database.pool.query(`update files set created_at = now() - $2 * interval '1 second' where part_of = $1`, [
    file,
    secondsAgo,
  ]);

test('an unfinished upload goes on in another session of its user, for nobody else and no other file', async () => {
  const bytes = randomBytes(3_000);
  const known = knownBy('plan.bin', bytes);
  const resume = (who: Person, more: object = {}) => begin(who, { ...known, ...more, resume: true });
  const session = await signIn(app, ann);
  const first = await begin(session, known);
  expect((await resume(ann)).file).not.toBe(first.file); // nothing of it has arrived yet
  expect((await patch(first, 0, bytes.subarray(0, 1_000))).statusCode).toBe(204);
  await piecesBegun(first, 10);
  await session.call('POST', '/v1/auth/logout');
  expect((await patch(first, 1_000, bytes.subarray(1_000))).statusCode).toBe(403);
  const bob = await colleague(app, ann, 'member');
  const others = [
    await resume(bob),
    await begin(ann, known),
    await resume(ann, { fileName: 'other.bin' }),
    await resume(ann, { sizeBytes: 3_001 }),
    await resume(ann, { sha256: '0'.repeat(64) }),
  ];
  for (const { file, receivedBytes } of others) expect([file === first.file, receivedBytes]).toEqual([false, 0]);
  const again = await resume(ann, { sha256: known.sha256.toUpperCase() });
  expect(again).toMatchObject({ file: first.file, receivedBytes: 1_000 });
  expect(Date.parse(again.expiresAt)).toBe(Date.parse(first.expiresAt));
  expect((await patch(again, 1_000, bytes.subarray(1_000))).statusCode).toBe(204);
  // all of it is there, and nobody has made an artifact of it
  await piecesBegun(first, 10);
  expect(await resume(ann)).toMatchObject({ file: first.file, receivedBytes: 3_000 });
  expect((await finish(first.file)).data.finishUpload).toMatchObject({ sizeBytes: 3_000 });
  expect((await resume(ann)).file).not.toBe(first.file);
});

test('an upload that is being sent is left to who sends it, and one that can have no more pieces is left', async () => {
  const bytes = randomBytes(3_000);
  const known = knownBy('busy.bin', bytes);
  const resume = () => begin(ann, { ...known, resume: true });
  const first = await begin(ann, known);
  await patch(first, 0, bytes.subarray(0, 1_000));
  await piecesBegun(first, -3_600); // however long the next line takes, that is not five seconds ago
  const second = await resume();
  expect([second.file === first.file, second.receivedBytes]).toEqual([false, 0]);
  await piecesBegun(first, 10);
  expect((await resume()).file).toBe(first.file);
  // begun again from nothing: that one goes on, though less of it has arrived
  await patch(second, 0, bytes.subarray(0, 500));
  await piecesBegun(second, 10);
  expect(await resume()).toMatchObject({ file: second.file, receivedBytes: 500 });
  await fill(
    app,
    `insert into files (id, org_id, workspace_id, namespace_id, storage_key, file_name, state, part_of, created_at)
     select id || '_' || i, org_id, workspace_id, namespace_id, storage_key || i, file_name, 'receiving', id,
       now() - interval '1 minute'
     from files, generate_series(1, 10000) i where id = $1`,
    [second.file],
  );
  expect((await patch(second, 500, bytes.subarray(500))).json()).toMatchObject({
    details: { reason: 'limit_reached' },
  });
  expect((await resume()).file).toBe(first.file);
});

test('what goes on is found by its size and its checksum', async () => {
  for (const input of [{}, { sizeBytes: 3 }, { sha256: '0'.repeat(64) }]) {
    const { errors } = await ann.ask(CREATE, { ...place, input: { fileName: 'a', ...input, resume: true } });
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'VALIDATION_ERROR' });
    expect(JSON.stringify(errors)).toContain('resume');
  }
});

test('an upload whose address has ended begins anew', async () => {
  const known = { fileName: 'late.bin', sizeBytes: 4, sha256: '1'.repeat(64) };
  const first = await begin(ann, known);
  await patch(first, 0, Buffer.from('ab'));
  await piecesBegun(first, 10);
  await app.database.pool.query(`update files set expires_at = now() + interval '1 hour 59 minutes' where id = $1`, [
    first.file,
  ]);
  expect((await begin(ann, { ...known, resume: true })).file).not.toBe(first.file);
});
