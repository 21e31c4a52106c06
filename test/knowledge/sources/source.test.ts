import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SourceFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { changesOf, eventsOf, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';
import { getArtifact, newArtifact, putArtifact, shelfOf, versionsOf } from '../artifacts/artifacts.ts';

type Source = RestBody<SourceFragment>;

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

test('a source is created, read, listed, changed and deleted', async () => {
  const ann = await register(app, { name: 'ann' });
  const url = `${ann.home}/sources`;
  const { status, body } = await ann.call<Source>('POST', url, { name: 'Handbook', namespace_id: 'default' });
  expect(status).toBe(201);
  expect(body).toEqual({
    source_id: expect.stringMatching(/^src_/),
    org_id: ann.orgId,
    workspace_id: ann.workspaceId,
    namespace_id: expect.stringMatching(/^ns_/),
    artifact_id: null,
    name: 'Handbook',
    description: null,
    source_type: 'manual',
    status: 'pending',
    chunk_count: 0,
    token_count: 0,
    size_bytes: 0,
    created_by: ann.userId,
    created_at: expect.any(String),
    updated_at: expect.any(String),
  });
  const one = `${url}/${body.source_id}`;
  expect((await ann.call('GET', one)).body).toEqual(body);
  const { body: whole } = await ann.call<Source>('POST', url, { name: 'Whole', source_type: 'crawl' });
  expect(whole).toMatchObject({ namespace_id: null, source_type: 'crawl' });
  const listed = async (query = '') =>
    (await ann.call<{ sources: Source[] }>('GET', `${url}${query}`)).body.sources.map(({ name }) => name);
  expect(await listed()).toEqual(['Whole', 'Handbook']);
  expect(await listed(`?namespace_id=${body.namespace_id}`)).toEqual(['Handbook']);
  expect((await ann.call('GET', `${url}?namespace_id=ns_none`)).status).toBe(404);
  const change = { description: 'How we work' };
  expect((await ann.call('PUT', one, change)).body).toMatchObject({ ...change, name: 'Handbook' });
  expect([(await ann.call('DELETE', one)).status, (await ann.call('GET', one)).status]).toEqual([204, 404]);
  expect(await eventsOf(app, body.source_id)).toEqual(['source.created', 'source.updated', 'source.deleted']);
});

test('a promoted artifact is a source of the workspace, once', async () => {
  const ann = await register(app, { name: 'ann' });
  // before it is indexed
  const { made, source_id } = await whileJobsWait(app, async () => {
    const made = await newArtifact(ann, { content: 'abc', description: 'What we know' });
    const one = `${shelfOf(ann)}/${made.artifact_id}`;
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => ann.call<{ promoted_to_source_id: string }>('POST', `${one}/promote`, {})),
    );
    const [first] = answers;
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(body).toEqual({
        artifact_id: made.artifact_id,
        promoted_to_source_id: first!.body.promoted_to_source_id,
        status: 'promoted',
      });
    }
    const source_id = first!.body.promoted_to_source_id;
    const { body } = await ann.call<Source>('GET', `${ann.home}/sources/${source_id}`);
    expect(body).toMatchObject({
      name: 'Plan',
      description: 'What we know',
      source_type: 'artifact',
      artifact_id: made.artifact_id,
      namespace_id: null,
      status: 'pending',
      size_bytes: 3,
    });
    expect((await getArtifact(ann, made.artifact_id)).body).toMatchObject({
      promoted_to_source_id: source_id,
      scope: 'workspace',
      version: 1,
    });
    expect(await eventsOf(app, made.artifact_id)).toEqual(['artifact.created', 'artifact.promoted']);
    expect(await eventsOf(app, source_id)).toEqual(['source.created']);
    expect((await changesOf(app, made.artifact_id)).filter(({ action }) => action === 'promote')[0]).toMatchObject({
      metadata: { source_id },
    });
    return { made, source_id };
  });
  await putArtifact(ann, made.artifact_id, { content: 'abcde' });
  expect((await ann.call('GET', `${ann.home}/sources/${source_id}`)).body).toMatchObject({ size_bytes: 5 });
});

test('a promotion says what the source is called', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'abc', description: 'x' });
  const given = { name: 'Knowledge', description: null };
  const { body } = await ann.call<{ promoted_to_source_id: string }>(
    'POST',
    `${shelfOf(ann)}/${artifact_id}/promote`,
    given,
  );
  expect((await ann.call('GET', `${ann.home}/sources/${body.promoted_to_source_id}`)).body).toMatchObject(given);
});

test('an artifact outlives its source and may be promoted again; a source goes with it, or is spared', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'abc' });
  const one = `${shelfOf(ann)}/${artifact_id}`;
  const promote = async () =>
    (await ann.call<{ promoted_to_source_id: string }>('POST', `${one}/promote`, {})).body.promoted_to_source_id;
  const [source] = [await promote()];
  expect((await ann.call('DELETE', `${ann.home}/sources/${source}`)).status).toBe(204);
  expect((await getArtifact(ann, artifact_id)).body).toMatchObject({
    promoted_to_source_id: null,
    scope: 'namespace',
  });
  const again = await promote();
  expect(again).not.toBe(source);
  const refused = await ann.call('DELETE', `${one}?only_unused=true`);
  expect([refused.status, refused.body]).toEqual([
    409,
    expect.objectContaining({
      error: 'RESOURCE_CONFLICT',
      details: {
        resource_type: 'artifact',
        resource_id: artifact_id,
        reason: 'in_use',
        references: [{ resource_type: 'source', resource_id: again }],
      },
    }),
  ]);
  expect((await ann.call('GET', `${ann.home}/sources/${again}`)).status).toBe(200);
  expect((await getArtifact(ann, artifact_id)).status).toBe(200);
  // an old version is no source
  await putArtifact(ann, artifact_id, { content: 'new' });
  const [, old] = (await versionsOf(ann, artifact_id)).versions;
  expect((await ann.call('DELETE', `${shelfOf(ann)}/${old!.artifact_id}`)).status).toBe(204);
  expect((await ann.call('DELETE', one)).status).toBe(204);
  expect((await ann.call('GET', `${ann.home}/sources/${again}`)).status).toBe(404);
  expect(await eventsOf(app, again)).toEqual(['source.created', 'source.deleted']);
});

test('the graph leads from namespaces and threads to artifacts, versions and sources', async () => {
  const ann = await register(app, { name: 'ann' });
  const { thread_id } = (await ann.call<{ thread_id: string }>('POST', `${ann.home}/namespaces/default/threads`, {}))
    .body;
  const { artifact_id } = await newArtifact(ann, { content: 'a', thread_id });
  await putArtifact(ann, artifact_id, { content: 'b' });
  await ann.call('POST', `${shelfOf(ann)}/${artifact_id}/promote`, {});
  await ann.call('POST', `${ann.home}/sources`, { name: 'Own', namespace_id: 'default' });
  const { data } = await ann.ask(
    `query ($orgId: ID!, $workspaceId: ID!) {
      namespace(orgId: $orgId, workspaceId: $workspaceId, id: "default") {
        artifacts { totalCount nodes {
          thread { id artifacts { nodes { id } } }
          versions { totalCount nodes { version content rootArtifact { version } } }
          promotedToSource { artifact { id } }
          createdByUser { id }
        } }
        sources { nodes { name namespace { slug } } }
      }
      sources(orgId: $orgId, workspaceId: $workspaceId) { nodes { name } }
    }`,
    { orgId: ann.orgId, workspaceId: ann.workspaceId },
  );
  expect(data).toEqual({
    namespace: {
      artifacts: {
        totalCount: 1,
        nodes: [
          {
            thread: { id: thread_id, artifacts: { nodes: [{ id: artifact_id }] } },
            versions: {
              totalCount: 2,
              nodes: [
                { version: 2, content: 'b', rootArtifact: { version: 2 } },
                { version: 1, content: 'a', rootArtifact: { version: 2 } },
              ],
            },
            promotedToSource: { artifact: { id: artifact_id } },
            createdByUser: { id: ann.userId },
          },
        ],
      },
      sources: { nodes: [{ name: 'Own', namespace: { slug: 'default' } }] },
    },
    sources: { nodes: [{ name: 'Own' }, { name: 'Plan' }] },
  });
});
