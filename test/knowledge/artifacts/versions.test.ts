import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { changesOf, eventsOf, register } from '../../support/person.ts';
import { type Artifact, getArtifact, newArtifact, putArtifact, shelfOf, versionsOf } from './artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** What identifies a version. */
const known = ({ version, content, is_latest, replaced_by_version, status }: Artifact) => ({
  version,
  content,
  is_latest,
  replaced_by_version,
  status,
});

const notIndexed = {
  is_indexed: false,
  indexed_at: null,
  index_collection: null,
  index_attempts: 0,
  chunk_count: 0,
};

test('another content is a new version of the same artifact; the old one gets an id of its own', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id: id } = await newArtifact(ann, { content: '{"a":1}', artifact_type: 'json', tags: ['one'] });
  await app.jobsDone();
  const made = (await getArtifact(ann, id)).body;
  const { status, body: changed } = await whileJobsWait(app, () =>
    putArtifact(ann, id, { content: '{"a":2}', name: 'Other', tags: ['two'] }),
  );
  expect(status).toBe(200);
  expect(changed).toEqual({
    ...made,
    ...notIndexed,
    name: 'Other',
    content: '{"a":2}',
    content_preview: '{"a":2}',
    tags: ['two'],
    version: 2,
    updated_at: expect.any(String),
  });
  await app.jobsDone();
  const indexed = {
    ...changed,
    is_indexed: true,
    indexed_at: expect.any(String),
    index_collection: 'full_text',
    index_attempts: 1,
    chunk_count: 1,
    updated_at: expect.any(String),
  };
  expect((await getArtifact(ann, id)).body).toEqual(indexed);
  const history = await versionsOf(ann, id);
  const [, old] = history.versions;
  expect(history).toEqual({
    artifact_id: id,
    current_version: 2,
    total: 2,
    has_more: false,
    next_cursor: null,
    versions: [
      indexed,
      {
        ...made,
        ...notIndexed,
        artifact_id: expect.stringMatching(/^art_/),
        is_latest: false,
        replaced_by_version: 2,
        status: 'superseded',
        root_artifact_id: id,
      },
    ],
  });
  expect(old!.artifact_id).not.toBe(id);
  expect((await getArtifact(ann, old!.artifact_id)).body).toEqual(old);
  expect(await versionsOf(ann, old!.artifact_id)).toEqual(history);
  expect(await eventsOf(app, id)).toEqual([
    'artifact.created',
    'artifact.indexed',
    'artifact.version_created',
    'artifact.updated',
    'artifact.indexed',
  ]);
  const told = await app.database.prisma.event.findFirst({
    where: { type: 'artifact.version_created', resourceId: id },
  });
  expect(told!.data).toEqual({ version: 2 });
  expect((await changesOf(app, id)).at(-1)).toMatchObject({
    action: 'update',
    metadata: { fields: ['name', 'content', 'tags'] },
  });
});

test('20 contents at once are a chain without gaps, and nothing is lost', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'begin' });
  const contents = Array.from({ length: 20 }, (_, index) => `content ${index}`);
  const answers = await Promise.all(contents.map((content) => putArtifact(ann, artifact_id, { content })));
  expect(answers.map(({ status }) => status)).toEqual(contents.map(() => 200));
  const { versions, current_version, total } = await versionsOf(ann, artifact_id);
  expect([current_version, total]).toEqual([21, 21]);
  expect(versions.map(({ version }) => version)).toEqual(Array.from({ length: 21 }, (_, index) => 21 - index));
  expect(versions.map(({ replaced_by_version }) => replaced_by_version)).toEqual([
    null,
    ...Array.from({ length: 20 }, (_, index) => 21 - index),
  ]);
  expect(new Set(versions.map(({ content }) => content))).toEqual(new Set(['begin', ...contents]));
  expect(versions.filter(({ is_latest }) => is_latest).map(({ artifact_id: id }) => id)).toEqual([artifact_id]);
  expect(new Set(versions.map(({ artifact_id: id }) => id)).size).toBe(21);
  expect(new Set(versions.map(({ root_artifact_id }) => root_artifact_id))).toEqual(new Set([artifact_id]));
});

test('other fields, and the same content again, make no version', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  const change = { name: 'b', description: 'b', summary: 'b', tags: ['b'], metadata: { b: 1 }, status: 'archived' };
  expect((await putArtifact(ann, artifact_id, change)).body).toMatchObject({ ...change, version: 1 });
  expect((await putArtifact(ann, artifact_id, { content: 'a' })).body.version).toBe(1);
  expect((await putArtifact(ann, artifact_id, {})).body).toMatchObject({ ...change, version: 1 });
  expect((await putArtifact(ann, artifact_id, { status: 'active' })).body.status).toBe('active');
  expect((await versionsOf(ann, artifact_id)).total).toBe(1);
  // nothing is a content too
  expect((await putArtifact(ann, artifact_id, { content: null })).body).toMatchObject({
    version: 2,
    content: null,
    content_preview: null,
    size_bytes: 0,
  });
});

test('a new text is what the last one was, unless somebody says what it is', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: '# a', artifact_type: 'markdown' });
  const put = async (change: object) => {
    const { artifact_type, mime_type } = (await putArtifact(ann, artifact_id, change)).body;
    return [artifact_type, mime_type];
  };
  expect(await put({ content: '# b' })).toEqual(['markdown', 'text/markdown']);
  expect(await put({ content: '<p>', mime_type: 'text/html' })).toEqual(['html', 'text/html']);
  expect(await put({ content: 'a,b', artifact_type: 'csv' })).toEqual(['csv', 'text/csv']);
  await put({ content: 'import os', mime_type: 'text/x-python' });
  expect(await put({ content: 'import sys' })).toEqual(['code', 'text/x-python']);
});

test('an old version has no content, thread, status or lifetime to change, but labels', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  await putArtifact(ann, artifact_id, { content: 'b' });
  const old = (await versionsOf(ann, artifact_id)).versions[1]!.artifact_id;
  const refused = {
    status: 409,
    body: {
      error: 'RESOURCE_CONFLICT',
      details: { resource_type: 'artifact', resource_id: old, reason: 'not_latest_version' },
    },
  };
  for (const change of [{ content: 'c' }, { status: 'archived' }, { ttl_seconds: 60 }, { is_pinned: true }])
    expect(await putArtifact(ann, old, change)).toMatchObject(refused);
  const { thread_id } = (await ann.call<{ thread_id: string }>('POST', `${ann.home}/namespaces/default/threads`, {}))
    .body;
  expect(await putArtifact(ann, old, { thread_id })).toMatchObject(refused);
  expect(await ann.call('POST', `${shelfOf(ann)}/${old}/promote`, {})).toMatchObject(refused);
  expect(await ann.call('POST', shelfOf(ann), { name: 'x', content: 'c', root_artifact_id: old })).toMatchObject(
    refused,
  );
  expect((await putArtifact(ann, old, { tags: ['first'] })).body).toMatchObject({ tags: ['first'], version: 1 });
  expect((await versionsOf(ann, artifact_id)).total).toBe(2);
});

test('POST with the root is a new version of it, with what else it says', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id, created_at } = await newArtifact(ann, { content: 'a', source: 'user', tags: ['kept'] });
  const next = await newArtifact(ann, { name: 'Next', content: 'b', source: 'agent', root_artifact_id: artifact_id });
  expect(next).toMatchObject({
    artifact_id,
    created_at,
    name: 'Next',
    content: 'b',
    version: 2,
    source: 'agent',
    tags: ['kept'],
  });
  expect((await versionsOf(ann, artifact_id)).versions[1]).toMatchObject({
    name: 'Plan',
    content: 'a',
    source: 'user',
  });
  expect(await ann.call('POST', shelfOf(ann), { name: 'x', root_artifact_id: 'art_none' })).toMatchObject({
    status: 404,
    body: { details: { resource_type: 'artifact', resource_id: 'art_none' } },
  });
});

test('versions come in pages', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: '1' });
  for (let version = 2; version <= 12; version++) await putArtifact(ann, artifact_id, { content: `${version}` });
  const seen: number[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page = await versionsOf(ann, artifact_id, `?limit=5${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    expect([page.total, page.has_more]).toEqual([12, page.next_cursor !== null]);
    seen.push(...page.versions.map(({ version }) => version));
    cursor = page.next_cursor;
  }
  // by number: as text, 9 would come before 10
  expect(seen).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
});

test('deleting an old version deletes that one; deleting the artifact deletes all', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  for (const content of ['b', 'c']) await putArtifact(ann, artifact_id, { content });
  const [, second, first] = (await versionsOf(ann, artifact_id)).versions.map((version) => version.artifact_id);
  const remove = async (id: string) => (await ann.call('DELETE', `${shelfOf(ann)}/${id}`)).status;
  expect(await remove(first!)).toBe(204);
  expect([(await getArtifact(ann, first!)).status, await remove(first!)]).toEqual([404, 404]);
  expect((await versionsOf(ann, artifact_id)).versions.map(({ version }) => version)).toEqual([3, 2]);
  expect(await eventsOf(app, first!)).toEqual(['artifact.deleted']);
  expect(await remove(artifact_id)).toBe(204);
  expect((await changesOf(app, artifact_id)).at(-1)).toMatchObject({ action: 'delete', metadata: { version: 3 } });
  for (const id of [artifact_id, second!]) expect((await getArtifact(ann, id)).status).toBe(404);
  expect((await putArtifact(ann, artifact_id, { name: 'x' })).status).toBe(404);
});

test('the version of a change is that of the whole resource: If-Match', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  const url = `${shelfOf(ann)}/${artifact_id}`;
  const { headers } = await app.server.inject({ url, headers: ann.headers });
  const put = (content: string) =>
    app.server.inject({
      method: 'PUT',
      url,
      headers: { ...ann.headers, 'if-match': String(headers.etag) },
      payload: { content },
    });
  const [one, two] = await Promise.all([put('b'), put('c')]);
  expect([one.statusCode, two.statusCode].toSorted((a, b) => a - b)).toEqual([200, 412]);
  expect((await versionsOf(ann, artifact_id)).total).toBe(2);
});

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), content: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('label' as const), tag: fc.constantFrom('x', 'y') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), at: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replace' as const), content: fc.constantFrom('a', 'b', 'c') }) },
);

test('whatever is done to an artifact, its versions are what a list of contents would be', async () => {
  const ann = await register(app, { name: 'ann' });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { artifact_id } = await newArtifact(ann, { content: 'a' });
      // newest first; what was removed is missing, and its number is not used again
      let model = [{ version: 1, content: 'a' }];
      for (const one of steps) {
        const [head, ...others] = model;
        if (one.do === 'label') await putArtifact(ann, artifact_id, { tags: [one.tag] });
        else if (one.do === 'remove') {
          if (others.length === 0) continue;
          const gone = others[one.at % others.length]!;
          const { versions } = await versionsOf(ann, artifact_id);
          const { artifact_id: id } = versions.find(({ version }) => version === gone.version)!;
          await ann.call('DELETE', `${shelfOf(ann)}/${id}`);
          model = model.filter((version) => version !== gone);
        } else {
          const { content } = one;
          if (one.do === 'put') await putArtifact(ann, artifact_id, { content });
          else await newArtifact(ann, { content, root_artifact_id: artifact_id });
          if (content !== head!.content) model = [{ version: head!.version + 1, content }, ...model];
        }
      }
      const { versions, current_version, total } = await versionsOf(ann, artifact_id);
      expect([current_version, total]).toEqual([model[0]!.version, model.length]);
      expect(versions.map(known)).toEqual(
        model.map(({ version, content }, index) => ({
          version,
          content,
          is_latest: index === 0,
          replaced_by_version: index === 0 ? null : version + 1,
          status: index === 0 ? 'active' : 'superseded',
        })),
      );
    }),
    { numRuns: 25 },
  );
});
