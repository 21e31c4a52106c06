import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ArtifactFragment } from '../../../rest/generated/documents.ts';
import { newId } from '../../../src/kernel/ids.ts';
import { systemCaller } from '../../../src/kernel/system-caller.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOver } from '../../support/changes.ts';
import { whileJobsWait, whileRetriesWait } from '../../support/held-jobs.ts';
import { docxOf, pdfOf } from '../../support/made-files.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { waitFor } from '../../support/wait.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Artifact = RestBody<ArtifactFragment>;

const artifactsOf = (owner: Person) => `${owner.home}/namespaces/default/artifacts`;
const read = async (owner: Person, id: string) =>
  (await owner.call<Artifact>('GET', `${artifactsOf(owner)}/${id}`)).body;

/** Those that index an artifact: scheduled tasks have jobs at any time. */
const jobsOf = (id: string) =>
  app.services.sql.read('select key from jobs._private_jobs where key = $1', [`index ${id}`]);

async function made(owner: Person, body: object): Promise<string> {
  return (await owner.call<Artifact>('POST', artifactsOf(owner), body)).body.artifact_id;
}

/** Promises that the content of an artifact is indexed, as a change of its content does. */
async function enqueue(node: TestApp, id: string, version: number): Promise<void> {
  const content = { id, orgId: 'org_of_nobody', version, mimeType: null };
  await changesOver(node).run(systemCaller('test'), async (tx) =>
    node.services.artifactIndexer.contentChanged(tx, content),
  );
}

/** An artifact that is a file. @param storesBytes without it the store does not have them */
async function uploaded(owner: Person, mimeType: string, bytes: Buffer, storesBytes = true): Promise<string> {
  const id = await made(owner, { name: 'file' });
  const { sql, storage } = app.services;
  const { workspace_id: workspaceId } = await read(owner, id);
  const fileId = newId('file');
  const key = `${workspaceId.toLowerCase()}/${fileId}`;
  if (storesBytes) await storage.put(key, Readable.from([bytes]), { limitBytes: 1e9 });
  await sql.write(
    `insert into files (id, org_id, workspace_id, storage_key, size_bytes, file_name, state)
     values ($1, $2, $3, $4, $5, 'file', 'kept')`,
    [fileId, owner.orgId, workspaceId, key, bytes.length],
  );
  await sql.write('update artifacts set file_id = $2, mime_type = $3, size_bytes = $4 where id = $1', [
    id,
    fileId,
    mimeType,
    bytes.length,
  ]);
  await enqueue(app, id, 1);
  await app.jobsDone();
  return id;
}

/** Lets the waiting attempt begin, and waits for its end. */
async function nextAttempt(owner: Person, id: string, number: number): Promise<void> {
  await app.services.sql.write('update jobs._private_jobs set run_at = now() where run_at > now()', []);
  await waitFor(async () => {
    expect((await read(owner, id)).index_attempts).toBe(number);
    expect(await app.services.sql.read('select 1 from jobs._private_jobs where locked_at is not null', [])).toEqual([]);
  });
}

const chunksOf = async (id: string) =>
  app.services.sql.read<{ position: number; content: string; tokens: number }>(
    'select position, content, token_count as tokens from artifact_chunks where artifact_id = $1 order by position',
    [id],
  );

const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

test('indexes files of each kind, and shows their text', async () => {
  const ann = await register(app, { name: 'ann' });
  const files: [mimeType: string, bytes: Buffer, text: string][] = [
    ['application/pdf', pdfOf(['A page about larks']), 'A page about larks'],
    [DOCX, docxOf(['A paragraph about larks']), 'A paragraph about larks\n\n'],
    ['text/html', Buffer.from('<p>A page <b>about</b> larks'), 'A page about larks'],
    ['text/csv', Buffer.from('bird,count\nlark,3\n'), 'bird,count\nlark,3\n'],
  ];
  for (const [mimeType, bytes, text] of files) {
    const id = await uploaded(ann, mimeType, bytes);
    expect(await read(ann, id)).toMatchObject({
      content: null,
      content_text: text,
      content_preview: text,
      is_indexed: true,
      index_error: null,
      index_attempts: 1,
      chunk_count: 1,
    });
    expect(await chunksOf(id)).toEqual([{ position: 0, content: text.trim(), tokens: expect.any(Number) }]);
  }
  const image = await uploaded(ann, 'image/png', Buffer.from('no text'));
  expect(await read(ann, image)).toMatchObject({ is_indexed: true, content_text: '', chunk_count: 0 });
});

test('what has no text is indexed at once, without a job, and its source is ready', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await made(ann, { name: 'picture', content: 'x', mime_type: 'image/png' });
  expect(await read(ann, id)).toMatchObject({
    is_indexed: true,
    indexed_at: expect.any(String),
    index_collection: 'full_text',
    index_attempts: 0,
    chunk_count: 0,
  });
  await ann.call('POST', `${artifactsOf(ann)}/${id}/promote`, {});
  await ann.call('PUT', `${artifactsOf(ann)}/${id}`, { content: 'yz' });
  expect(await jobsOf(id)).toEqual([]);
  expect(
    await app.services.sql.read('select status, size_bytes::int as size from sources where artifact_id = $1', [id]),
  ).toEqual([{ status: 'ready', size: 2 }]);
});

test('a bomb stays an artifact that says why it is not indexed', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await uploaded(ann, DOCX, docxOf([' '.repeat(20 * 1024 * 1024)]));
  expect(await read(ann, id)).toMatchObject({
    is_indexed: false,
    indexed_at: null,
    index_error: 'The file unpacks to more than the limit of 100 times its size.',
    index_attempts: 1,
    chunk_count: 0,
    content_text: null,
  });
  expect(await eventsOf(app, id)).toEqual(['artifact.created', 'artifact.index_failed']);
  expect(await jobsOf(id)).toEqual([]);
});

test('tries again while the store does not answer, and indexes when it does', () =>
  whileRetriesWait(app.database.pool, async () => {
    const ann = await register(app, { name: 'ann' });
    const id = await uploaded(ann, 'text/plain', Buffer.from('late bytes'), false);
    expect(await read(ann, id)).toMatchObject({
      is_indexed: false,
      index_attempts: 1,
      index_error: 'The content could not be read.',
    });
    const [file] = await app.services.sql.read<{ key: string }>(
      'select f.storage_key as key from files f join artifacts a on a.file_id = f.id where a.id = $1',
      [id],
    );
    await app.services.storage.put(file!.key, Readable.from([Buffer.from('late bytes')]), { limitBytes: 100 });
    await nextAttempt(ann, id, 2);
    expect(await read(ann, id)).toMatchObject({
      is_indexed: true,
      index_attempts: 2,
      index_error: null,
      content_text: 'late bytes',
    });
  }));

test('gives up after five attempts', () =>
  whileRetriesWait(app.database.pool, async () => {
    const ann = await register(app, { name: 'ann' });
    const id = await uploaded(ann, 'text/plain', Buffer.from('never there'), false);
    for (let attempt = 2; attempt <= 5; attempt += 1) await nextAttempt(ann, id, attempt);
    expect(await read(ann, id)).toMatchObject({ is_indexed: false, index_error: 'The content could not be read.' });
    expect(await jobsOf(id)).toEqual([]);
    expect(await eventsOf(app, id)).toEqual(['artifact.created', 'artifact.index_failed']);
  }));

test('does nothing for a version that is not the latest, nor for a deleted artifact', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await made(ann, { name: 'v', content: 'first' });
  await ann.call('PUT', `${artifactsOf(ann)}/${id}`, { content: 'second' });
  await app.jobsDone();
  const indexed = await read(ann, id);
  await enqueue(app, id, 1);
  await app.jobsDone();
  expect(await read(ann, id)).toEqual(indexed);
  expect((await chunksOf(id)).map(({ content }) => content)).toEqual(['second']);
  await ann.call('DELETE', `${artifactsOf(ann)}/${id}`);
  await enqueue(app, id, 2);
  await app.jobsDone();
  expect(await chunksOf(id)).toEqual([]);
});

test('done twice is done once', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await made(ann, { name: 'twice', content: 'the same words' });
  await app.jobsDone();
  const [chunks, before] = [await chunksOf(id), await read(ann, id)];
  await enqueue(app, id, 1);
  await app.jobsDone();
  const after = await read(ann, id);
  expect(after).toMatchObject({ is_indexed: true, index_error: null, chunk_count: before.chunk_count });
  expect(after.indexed_at! > before.indexed_at!).toBe(true);
  expect(await chunksOf(id)).toEqual(chunks);
});

test('twenty changes at once end with the chunks of the last one', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await made(ann, { name: 'busy', content: 'version 0' });
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      ann.call('PUT', `${artifactsOf(ann)}/${id}`, { content: `version ${index + 1}` }),
    ),
  );
  await app.jobsDone();
  const { content, version, is_indexed: isIndexed } = await read(ann, id);
  expect([version, isIndexed]).toEqual([21, true]);
  expect((await chunksOf(id)).map((chunk) => chunk.content)).toEqual([content]);
});

test('the source of a promoted artifact follows', async () => {
  const ann = await register(app, { name: 'ann' });
  const id = await made(ann, { name: 'source', content: 'some words' });
  await app.jobsDone();
  await ann.call('POST', `${artifactsOf(ann)}/${id}/promote`, {});
  await ann.call('PUT', `${artifactsOf(ann)}/${id}`, { content: 'other words, and more of them' });
  await app.jobsDone();
  const [source] = await app.services.sql.read(
    'select status, chunk_count, token_count from sources where artifact_id = $1',
    [id],
  );
  expect(source).toEqual({ status: 'ready', chunk_count: 1, token_count: 7 });
});

test('words are forgotten when no chunk has them', async () => {
  const ann = await register(app, { name: 'ann' });
  const { sql, artifactIndexer } = app.services;
  const kept = await made(ann, { name: 'kept', content: 'Larks rising, with others' });
  const other = await register(app, { name: 'other' });
  await made(other, { name: 'elsewhere', content: 'Swifts' });
  const gone = await made(ann, { name: 'gone', content: `Larks and swifts ${letters(1_500).join(' ')}` });
  await app.jobsDone();
  const { namespace_id: namespaceId } = await read(ann, kept);
  const words = async () =>
    (
      await sql.read<{ word: string }>('select word from artifact_words where namespace_id = $1 order by word', [
        namespaceId,
      ])
    ).map(({ word }) => word);
  const all = await words();
  expect(all.length).toBeGreaterThan(1_500);
  const task = artifactIndexer.tasks.find(({ name }) => name === 'artifact_words')!;
  const run = () => task.run({}, { jobId: '1', number: 1, signal: new AbortController().signal });
  await run();
  expect(await words()).toEqual(all);
  await ann.call('DELETE', `${artifactsOf(ann)}/${gone}`);
  await run();
  expect(await words()).toEqual(['larks', 'others', 'rising', 'with']);
  expect(await sql.read('select 1 from artifact_words where word = $1', ['swifts'])).toHaveLength(1);
});

/** Different words without a common stem. */
const letters = (count: number): string[] =>
  Array.from(
    { length: count },
    (_, index) => `zz${index.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[+digit]!)}qq`,
  );

test('organizations take turns: what one adds waits for no crowd of another', async () => {
  const [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  const { ofAnn, ofBob } = await whileJobsWait(app, async () => {
    const crowd: string[] = [];
    for (let n = 0; n < 40; n++) crowd.push(await made(ann, { name: `part ${n}`, content: `words ${n}` }));
    const one = await made(bob, { name: 'one', content: 'a single text' });
    // as the workers take them: in which order they end is up to the machine
    const { rows } = await app.database.pool.query<{ key: string }>(
      `select key from jobs._private_jobs where key like 'index %' order by priority, run_at, id`,
    );
    expect(rows).toHaveLength(41);
    expect(rows.findIndex(({ key }) => key === `index ${one}`)).toBeLessThan(3);
    return { ofAnn: crowd, ofBob: one };
  });
  await app.jobsDone();
  const { rows } = await app.database.pool.query(`select id from artifacts where id = any($1) and is_indexed`, [
    [...ofAnn, ofBob],
  ]);
  expect(rows).toHaveLength(41);
});
