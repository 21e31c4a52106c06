import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { changesOf, colleague, eventsOf, register } from '../../support/person.ts';
import { type ArtifactPage, getArtifact, newArtifact, putArtifact, shelfOf } from './artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const KIB = 1024;

test('a new artifact has every field of the spec, and is recorded', async () => {
  const ann = await register(app, { name: 'ann' });
  const { thread_id } = (await ann.call<{ thread_id: string }>('POST', `${ann.home}/namespaces/default/threads`, {}))
    .body;
  const given = {
    name: 'Plan',
    description: 'What we do',
    content: '# Plän',
    artifact_type: 'markdown',
    thread_id,
    summary: 'Short',
    keywords: ['garden'],
    tags: ['draft'],
    metadata: { page: 1 },
    source: 'agent',
    source_execution_id: 'run-1',
    source_step_id: 'step-1',
    source_tool: 'writer',
    ttl_seconds: 3600,
  };
  const { body, read, events } = await whileJobsWait(app, async () => {
    const made = await newArtifact(ann, given);
    const { artifact_id: id } = made;
    return { body: made, read: (await getArtifact(ann, id)).body, events: await eventsOf(app, id) };
  });
  expect(body).toEqual({
    ...given,
    artifact_id: expect.stringMatching(/^art_[0-9A-Z]{26}$/),
    workspace_id: ann.workspaceId,
    namespace_id: expect.stringMatching(/^ns_/),
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: body.created_at,
    version: 1,
    root_artifact_id: body.artifact_id,
    is_latest: true,
    replaced_by_version: null,
    content_preview: '# Plän',
    content_text: null,
    file_name: null,
    mime_type: 'text/markdown',
    size_bytes: 7,
    has_file: false,
    scope: 'thread',
    status: 'active',
    expires_at: expect.any(String),
    is_pinned: false,
    is_expired: false,
    is_indexed: false,
    indexed_at: null,
    index_collection: null,
    index_error: null,
    embedding_model_id: null,
    index_attempts: 0,
    chunk_count: 0,
    promoted_to_source_id: null,
  });
  expect(Date.parse(body.expires_at!) - Date.parse(body.created_at)).toBeGreaterThan(3_590_000);
  expect(read).toEqual(body);
  expect(events).toEqual(['artifact.created']);
  expect(await changesOf(app, body.artifact_id)).toMatchObject([
    { action: 'create', resourceType: 'artifact', orgId: ann.orgId, workspaceId: ann.workspaceId },
  ]);
});

test('a name is enough: a text without content', async () => {
  const ann = await register(app, { name: 'ann' });
  expect(await newArtifact(ann)).toMatchObject({
    artifact_type: 'text',
    content: null,
    content_preview: null,
    mime_type: null,
    size_bytes: 0,
    ttl_seconds: null,
    expires_at: null,
    scope: 'namespace',
    source: 'api',
    keywords: [],
    tags: [],
    metadata: {},
  });
});

test.each([
  [{ mime_type: 'text/csv; charset=utf-8' }, 'csv', 'text/csv; charset=utf-8'],
  [{ mime_type: 'application/vnd.api+json' }, 'json', 'application/vnd.api+json'],
  [{ mime_type: 'text/x-python' }, 'code', 'text/x-python'],
  [{ mime_type: 'application/octet-stream' }, 'text', 'application/octet-stream'],
  [{ artifact_type: 'html' }, 'html', 'text/html'],
  [{ artifact_type: 'poem' }, 'poem', 'text/plain'],
  [{ artifact_type: 'code', mime_type: 'text/html' }, 'code', 'text/html'],
  [{}, 'text', 'text/plain'],
])('type and media type of %j', async (given, artifact_type, mime_type) => {
  const ann = await register(app, { name: 'ann' });
  expect(await newArtifact(ann, { content: 'x', ...given })).toMatchObject({ artifact_type, mime_type });
});

test('what a body has wrong is said at its place, all at once', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<{ detail: { loc: unknown[]; type: string; ctx: unknown }[] }>(
    'POST',
    shelfOf(ann),
    {
      content: `${'ü'.repeat(512 * KIB)}.`,
      artifact_type: 'A type',
      mime_type: 'plain',
      ttl_seconds: 59,
      tags: [''],
    },
  );
  expect([status, body.detail.map(({ loc, type }) => [loc.slice(1).join('.'), type])]).toEqual([
    422,
    [
      ['name', 'missing'],
      ['content', 'string_too_long'],
      ['artifact_type', 'string_pattern_mismatch'],
      ['mime_type', 'string_pattern_mismatch'],
      ['tags.0', 'string_too_short'],
      ['ttl_seconds', 'greater_than_equal'],
    ],
  ]);
  expect(body.detail[1]).toMatchObject({ ctx: { max_bytes: 1_048_576 } });
  const whole = await newArtifact(ann, { content: 'ü'.repeat(512 * KIB) });
  expect([whole.size_bytes, whole.content!.length, whole.content_preview!.length]).toEqual([1_048_576, 512 * KIB, 500]);
  const { artifact_id } = whole;
  for (const change of [{ name: null }, { status: 'expired' }, { is_pinned: null }, { ttl_seconds: 31_536_001 }])
    expect((await putArtifact(ann, artifact_id, change)).status, JSON.stringify(change)).toBe(422);
});

describe('a list', () => {
  test('has the latest versions, newest first, by thread and by types', async () => {
    const ann = await register(app, { name: 'ann' });
    const threads = `${ann.home}/namespaces/default/threads`;
    const { thread_id } = (await ann.call<{ thread_id: string }>('POST', threads, {})).body;
    const one = await newArtifact(ann, { content: 'a', artifact_type: 'code' });
    const two = await newArtifact(ann, { content: 'b', artifact_type: 'markdown', thread_id });
    const three = await newArtifact(ann, { content: 'c', thread_id });
    await putArtifact(ann, one.artifact_id, { content: 'A' });
    const idsIn = async (url: string) => {
      const { status, body } = await ann.call<ArtifactPage>('GET', url);
      return status === 200 ? [body.total, ...body.artifacts.map(({ artifact_id }) => artifact_id)] : status;
    };
    const [a, b, c] = [one, two, three].map(({ artifact_id }) => artifact_id);
    const shelf = shelfOf(ann);
    expect(await idsIn(shelf)).toEqual([3, c, b, a]);
    expect(await idsIn(`${shelf}?artifact_types=code,text`)).toEqual([2, c, a]);
    expect(await idsIn(`${shelf}?thread_id=${thread_id}`)).toEqual([2, c, b]);
    expect(await idsIn(`${shelf}?thread_id=${thread_id}&artifact_types=markdown`)).toEqual([1, b]);
    expect(await idsIn(`${threads}/${thread_id}/artifacts`)).toEqual([2, c, b]);
    expect(await idsIn(`${threads}/${thread_id}/artifacts?artifact_types=code`)).toEqual([0]);
    expect(await idsIn(`${shelf}?thread_id=thr_unknown`)).toBe(404);
    expect(await idsIn(`${threads}/thr_unknown/artifacts`)).toBe(404);
    expect(await idsIn(`${shelf}?artifact_types=`)).toEqual([3, c, b, a]);
  });

  test('shows texts up to 8 KiB, and of longer ones how they begin; one alone has everything', async () => {
    const ann = await register(app, { name: 'ann' });
    const [short, long] = ['a'.repeat(8 * KIB), 'ü'.repeat(4 * KIB + 1)];
    const { artifact_id } = await newArtifact(ann, { content: long });
    await newArtifact(ann, { content: short });
    const { body } = await ann.call<ArtifactPage>('GET', shelfOf(ann));
    expect(body.artifacts).toMatchObject([
      { content: short, size_bytes: 8 * KIB },
      { content: null, size_bytes: 8 * KIB + 2, content_preview: 'ü'.repeat(500) },
    ]);
    expect((await getArtifact(ann, artifact_id)).body.content).toBe(long);
    const { data } = await ann.ask<{ node: { content: string; rootArtifact: { content: null } } }>(
      'query ($id: ID!) { node(id: $id) { ... on Artifact { content rootArtifact { content } } } }',
      { id: artifact_id },
    );
    expect(data.node).toEqual({ content: long, rootArtifact: { content: null } });
  });

  test('a preview ends before half a character', async () => {
    const ann = await register(app, { name: 'ann' });
    const { content_preview } = await newArtifact(ann, { content: `${'a'.repeat(499)}😀` });
    expect(content_preview).toBe('a'.repeat(499));
  });
});

test('references are strict: threads of other namespaces and organizations are not found', async () => {
  const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
  const { body: other } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Other' });
  const threadIn = async (person: typeof ann, namespace: string) =>
    (await person.call<{ thread_id: string }>('POST', `${person.home}/namespaces/${namespace}/threads`, {})).body
      .thread_id;
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  for (const thread_id of [await threadIn(ann, other.namespace_id), await threadIn(eve, 'default'), 'thr_none']) {
    const missing = { status: 404, body: { details: { resource_type: 'thread', resource_id: thread_id } } };
    expect(await ann.call('POST', shelfOf(ann), { name: 'x', thread_id })).toMatchObject(missing);
    expect(await putArtifact(ann, artifact_id, { thread_id })).toMatchObject(missing);
    expect(await ann.call('POST', shelfOf(ann), { name: 'x', root_artifact_id: artifact_id, thread_id })).toMatchObject(
      missing,
    );
  }
  const inOther = `${ann.home}/namespaces/${other.namespace_id}/artifacts`;
  expect((await ann.call('GET', `${inOther}/${artifact_id}`)).status).toBe(404);
  expect((await ann.call('POST', inOther, { name: 'x', root_artifact_id: artifact_id })).status).toBe(404);
  expect((await eve.call('GET', `${shelfOf(eve)}/${artifact_id}`)).status).toBe(404);
});

test('an artifact outlives its thread, in the namespace', async () => {
  const ann = await register(app, { name: 'ann' });
  const threads = `${ann.home}/namespaces/default/threads`;
  const { thread_id } = (await ann.call<{ thread_id: string }>('POST', threads, {})).body;
  const { artifact_id } = await newArtifact(ann, { thread_id });
  expect((await ann.call('DELETE', `${threads}/${thread_id}`)).status).toBe(204);
  expect((await getArtifact(ann, artifact_id)).body).toMatchObject({ thread_id: null, scope: 'namespace' });
});

test('members change and delete what they created; editors everything; viewers nothing', async () => {
  const ann = await register(app, { name: 'ann' });
  const [viewer, member, editor] = await Promise.all(
    (['viewer', 'member', 'editor'] as const).map((role) => colleague(app, ann, role)),
  );
  const shelf = shelfOf(ann);
  const made = await newArtifact(member!, { content: 'a' }, shelf);
  const hers = await newArtifact(ann, { content: 'a' });
  const call = async (who: typeof ann, method: 'PUT' | 'DELETE' | 'POST', id: string, body?: object) => {
    const answer = await who.call<{ details?: object }>(method, `${shelf}${id}`, body);
    return answer.status === 403 ? answer.body.details : answer.status;
  };
  const refused = (verb: string) => ({ required_permission: `artifact:${verb}` });
  expect(await call(viewer!, 'POST', '', { name: 'x' })).toEqual(refused('create'));
  expect(await call(member!, 'PUT', `/${made.artifact_id}`, { content: 'b' })).toBe(200);
  expect(await call(member!, 'PUT', `/${hers.artifact_id}`, { content: 'b' })).toEqual(refused('update'));
  // a new version is a change, by whatever way
  const version = (root_artifact_id: string) => ({ name: 'x', content: 'c', root_artifact_id });
  expect(await call(member!, 'POST', '', version(hers.artifact_id))).toEqual(refused('update'));
  expect(await call(member!, 'POST', '', version(made.artifact_id))).toBe(201);
  expect(await call(editor!, 'POST', '', version(made.artifact_id))).toBe(201);
  expect(await call(member!, 'DELETE', `/${hers.artifact_id}`)).toEqual(refused('delete'));
  expect(await call(member!, 'POST', `/${made.artifact_id}/promote`, {})).toEqual(refused('promote'));
  expect(await call(editor!, 'POST', `/${made.artifact_id}/promote`, {})).toBe(200);
  // what a member may delete goes with a source only if somebody may delete that
  const promoted = `/${made.artifact_id}`;
  expect(await call(member!, 'DELETE', promoted)).toEqual({ required_permission: 'source:delete' });
  expect(await call(editor!, 'DELETE', promoted)).toBe(204);
  expect((await getArtifact(ann, hers.artifact_id)).body).toMatchObject({ content: 'a', version: 1 });
});
