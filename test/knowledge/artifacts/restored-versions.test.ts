import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { type Artifact, getArtifact, newArtifact, putArtifact, shelfOf, versionsOf } from './artifacts.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const sha256 = (bytes: string) => createHash('sha256').update(bytes).digest('hex');
type Restored = Artifact & { sha256: string | null };

const restore = (id: string, body: object, { who = ann, headers = {} }: { who?: Person; headers?: object } = {}) =>
  app.server.inject({
    method: 'POST',
    url: `${shelfOf(ann)}/${id}/restore-version`,
    headers: { ...who.headers, ...headers },
    payload: body,
  });

async function upload(content: string, more: Record<string, string> = {}): Promise<Artifact> {
  const answer = await app.server.inject({
    method: 'POST',
    url: `${shelfOf(ann)}/upload`,
    headers: { ...ann.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['file', { name: 'a.txt', content, type: 'text/plain' }],
      ['name', 'File'],
      ...Object.entries(more),
    ]),
  });
  expect(answer.statusCode).toBe(201);
  return answer.json();
}
const filesOf = async (rootId: string) =>
  (
    await app.database.pool.query<{ state: string; key: string }>(
      `select distinct f.state, f.storage_key as key from files f join artifacts a on a.file_id = f.id
        where a.root_artifact_id = $1`,
      [rootId],
    )
  ).rows;

async function downloaded(id: string) {
  const { body } = await ann.call<{ download_url: string }>('GET', `${shelfOf(ann)}/${id}/download`);
  const { pathname, search } = new URL(body.download_url);
  return app.server.inject({ method: 'GET', url: `${pathname}${search}` });
}

test('the text of an old version is that of the next one; nothing else changes, and no version is lost', async () => {
  const made = await newArtifact(ann, { content: '# One', artifact_type: 'markdown', tags: ['a'] });
  const id = made.artifact_id;
  await putArtifact(ann, id, { content: '{}', artifact_type: 'json', tags: ['b'], name: 'Two' });
  const { artifact_id: old } = (await versionsOf(ann, id)).versions[1]!;
  const answer = await restore(old, { version: 1 });
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    expect.objectContaining({
      artifact_id: id,
      version: 3,
      is_latest: true,
      content: '# One',
      content_preview: '# One',
      artifact_type: 'markdown',
      mime_type: 'text/markdown',
      size_bytes: 5,
      sha256: sha256('# One'),
      name: 'Two',
      tags: ['b'],
    }),
  ]);
  expect((await versionsOf(ann, id)).versions.map(({ version, content }) => [version, content])).toEqual([
    [3, '# One'],
    [2, '{}'],
    [1, '# One'],
  ]);
  await app.jobsDone();
  expect((await eventsOf(app, id)).filter((type) => type !== 'artifact.indexed')).toEqual([
    'artifact.created',
    'artifact.version_created',
    'artifact.updated',
    'artifact.version_created',
    'artifact.updated',
  ]);
  expect((await changesOf(app, id)).find(({ metadata }) => 'restored_version' in (metadata as object))).toMatchObject({
    action: 'update',
    metadata: { restored_version: 1 },
  });
  expect((await getArtifact(ann, id)).body).toMatchObject({ is_indexed: true, chunk_count: 1 });
});

test('the latest version stays as it is, and one that is not there is refused', async () => {
  const { artifact_id: id } = await newArtifact(ann, { content: 'one' });
  expect((await restore(id, { version: 1 })).json()).toMatchObject({ version: 1, content: 'one' });
  for (const version of [2, 0])
    expect((await restore(id, { version })).json()).toMatchObject({ detail: [{ loc: ['body', 'version'] }] });
  await putArtifact(ann, id, { content: 'two' });
  const [, first] = (await versionsOf(ann, id)).versions;
  expect((await ann.call('DELETE', `${shelfOf(ann)}/${first!.artifact_id}`)).status).toBe(204);
  expect((await restore(id, { version: 1 })).statusCode).toBe(422);
  expect((await restore('art_missing', { version: 1 })).statusCode).toBe(404);
  const { headers } = await app.server.inject({ url: `${shelfOf(ann)}/${id}`, headers: ann.headers });
  expect((await restore(id, { version: 2 }, { headers: { 'if-match': '"1"' } })).statusCode).toBe(412);
  expect((await restore(id, { version: 2 }, { headers: { 'if-match': String(headers.etag) } })).statusCode).toBe(200);
});

test('a file is restored without a copy, and its bytes go with the last version that has them', async () => {
  const { artifact_id: id } = await upload('first');
  await upload('second', { root_artifact_id: id });
  await putArtifact(ann, id, { content: 'a text' });
  const restored = (await restore(id, { version: 1 })).json<Restored>();
  expect(restored).toMatchObject({
    version: 4,
    has_file: true,
    file_name: 'a.txt',
    content: null,
    sha256: sha256('first'),
  });
  expect(await filesOf(id)).toHaveLength(2);
  expect((await downloaded(id)).body).toBe('first');
  const { versions } = await versionsOf(ann, id);
  const remove = (artifactId: string) => app.database.pool.query('delete from artifacts where id = $1', [artifactId]);
  // retention removes the version that had it first
  await remove(versions.at(-1)!.artifact_id);
  await app.services.files.removeFiles();
  expect((await downloaded(id)).body).toBe('first');
  const before = await filesOf(id);
  await remove(id);
  await app.services.files.removeFiles();
  for (const { key } of before) await waitFor(async () => expect(await app.services.storage.exists(key)).toBe(false));
});

test('a version is restored while the row that had its file is removed', async () => {
  for (let round = 0; round < 10; round++) {
    const { artifact_id: id } = await upload('first');
    await putArtifact(ann, id, { content: 'a text' });
    const [, first] = (await versionsOf(ann, id)).versions;
    const [answer] = await Promise.all([
      restore(id, { version: 1 }),
      app.database.pool.query('delete from artifacts where id = $1', [first!.artifact_id]),
    ]);
    await app.services.files.removeFiles();
    if (answer.statusCode === 200) expect((await downloaded(id)).body).toBe('first');
    else expect(answer.statusCode).toBe(422);
  }
});

test('who may change an artifact may restore its versions', async () => {
  const member = await colleague(app, ann, 'member');
  const viewer = await colleague(app, ann, 'viewer');
  const editor = await colleague(app, ann, 'editor');
  const { artifact_id: id } = await newArtifact(ann, { content: 'one' });
  await putArtifact(ann, id, { content: 'two' });
  for (const who of [member, viewer])
    expect((await restore(id, { version: 1 }, { who })).json()).toMatchObject({
      status_code: 403,
      details: { required_permission: 'artifact:update' },
    });
  expect((await restore(id, { version: 1 }, { who: editor })).statusCode).toBe(200);
});

test('an artifact shows the digest of its text or file, and a download has it as a header', async () => {
  const shown = async (id: string) => {
    const { data } = await ann.ask<{ node: { sha256: string | null } }>(
      'query ($id: ID!) { node(id: $id) { ... on Artifact { sha256 } } }',
      { id },
    );
    return data.node.sha256;
  };
  const header = (bytes: string) => `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;
  const nothing = await newArtifact(ann);
  expect(await shown(nothing.artifact_id)).toBeNull();
  const text = await newArtifact(ann, { content: 'Zoë' });
  expect(await shown(text.artifact_id)).toBe(sha256('Zoë'));
  await putArtifact(ann, text.artifact_id, { content: 'other' });
  expect(await shown(text.artifact_id)).toBe(sha256('other'));
  expect(await shown((await versionsOf(ann, text.artifact_id)).versions[1]!.artifact_id)).toBe(sha256('Zoë'));
  expect((await downloaded(text.artifact_id)).headers['repr-digest']).toBe(header('other'));
  const file = await upload('a file');
  expect(await shown(file.artifact_id)).toBe(sha256('a file'));
  const { body } = await ann.call<{ download_url: string }>('GET', `${shelfOf(ann)}/${file.artifact_id}/download`);
  const { pathname, search } = new URL(body.download_url);
  const url = `${pathname}${search}`;
  for (const [method, headers] of [
    ['GET', {}],
    ['HEAD', {}],
    ['GET', { range: 'bytes=2-3' }],
  ] as const)
    expect((await app.server.inject({ method, url, headers })).headers['repr-digest']).toBe(header('a file'));
});
