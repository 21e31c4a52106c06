import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { changesOf, colleague, eventsOf, type Person, register } from '../../support/person.ts';
import { type Artifact, getArtifact, newArtifact, putArtifact, shelfOf, versionsOf } from './artifacts.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

interface Deleted {
  artifact_id: string;
  namespace_id: string;
  deleted_at: string;
  deleted_by: string | null;
  restorable_until: string;
}
interface DeletedPage {
  total: number;
  next_cursor: string | null;
  artifacts: Deleted[];
}

const deletedIn = async (who: Person, place = `${ann.home}/namespaces/default`, query = '') =>
  (await who.call<DeletedPage>('GET', `${place}/deleted-artifacts${query}`)).body;
const idsIn = async (who: Person, place?: string) =>
  (await deletedIn(who, place)).artifacts.map(({ artifact_id }) => artifact_id);
const remove = async (id: string, who = ann) =>
  expect((await who.call('DELETE', `${shelfOf(ann)}/${id}`)).status).toBe(204);
const restore = (id: string, who = ann, headers: object = {}) =>
  app.server.inject({
    method: 'POST',
    url: `${shelfOf(ann)}/${id}/restore`,
    headers: { ...who.headers, ...headers },
  });
const age = (id: string, interval: string) =>
  app.database.pool.query(
    `update artifacts set deleted_at = deleted_at - $2::interval
      where root_artifact_id = $1 and deleted_at is not null`,
    [id, interval],
  );
const found = async (query: string) => {
  await app.jobsDone();
  const { body } = await ann.call<{ results: { artifact: Artifact }[] }>('POST', `${shelfOf(ann)}/query`, { query });
  return body.results.map(({ artifact }) => artifact.artifact_id);
};

test('a deleted artifact comes back as it was, with its versions, a record and an event', async () => {
  const { artifact_id: id } = await newArtifact(ann, { content: 'one', tags: ['a'] });
  await putArtifact(ann, id, { content: 'quokkas everywhere' });
  expect(await found('quokkas')).toEqual([id]);
  const { body: before } = await getArtifact(ann, id);
  await remove(id);
  expect((await getArtifact(ann, id)).status).toBe(404);
  expect(await found('quokkas')).toEqual([]);
  const answer = await restore(id);
  expect([answer.statusCode, answer.json()]).toMatchObject([200, { artifact_id: id, content: 'quokkas everywhere' }]);
  expect(await found('quokkas')).toEqual([id]);
  const times = { updated_at: expect.any(String), indexed_at: expect.any(String) };
  expect((await getArtifact(ann, id)).body).toEqual({ ...before, ...times });
  expect((await versionsOf(ann, id)).versions.map(({ version, content }) => [version, content])).toEqual([
    [2, 'quokkas everywhere'],
    [1, 'one'],
  ]);
  expect((await changesOf(app, id)).at(-1)).toMatchObject({
    action: 'restore',
    resourceType: 'artifact',
    workspaceId: ann.workspaceId,
    userId: ann.userId,
    metadata: { version: 2 },
  });
  expect((await eventsOf(app, id)).filter((type) => !/updated|indexed/.test(type))).toEqual([
    'artifact.created',
    'artifact.version_created',
    'artifact.deleted',
    'artifact.restored',
  ]);
  expect(await idsIn(ann)).not.toContain(id);
});

test('its file is still there, also by a link of before', async () => {
  const upload = await app.server.inject({
    method: 'POST',
    url: `${shelfOf(ann)}/upload`,
    headers: { ...ann.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['file', { name: 'a.txt', content: 'the bytes', type: 'text/plain' }],
      ['name', 'File'],
    ]),
  });
  const { artifact_id: id } = upload.json<Artifact>();
  const link = async () => {
    const { body } = await ann.call<{ download_url: string }>('GET', `${shelfOf(ann)}/${id}/download`);
    const { pathname, search } = new URL(body.download_url);
    return `${pathname}${search}`;
  };
  const before = await link();
  await remove(id);
  expect((await app.server.inject({ url: before })).statusCode).toBe(404);
  await app.retention.run();
  expect((await restore(id)).json()).toMatchObject({ has_file: true, file_name: 'a.txt' });
  for (const url of [before, await link()]) expect((await app.server.inject({ url })).body).toBe('the bytes');
});

test('lists say what can be restored, when and by whom it was deleted, and until when', async () => {
  const who = await register(app, { name: 'lister' });
  const shelf = shelfOf(who);
  const other = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'B' });
  const there = `${who.home}/namespaces/${other.body.namespace_id}`;
  const one = await newArtifact(who, { content: 'abc', name: 'One' });
  const two = await newArtifact(who, { name: 'Two' });
  const elsewhere = await newArtifact(who, { name: 'There' }, `${there}/artifacts`);
  await newArtifact(who, { name: 'Living' });
  for (const id of [one.artifact_id, two.artifact_id]) await who.call('DELETE', `${shelf}/${id}`);
  await who.call('DELETE', `${there}/artifacts/${elsewhere.artifact_id}`);
  const here = await deletedIn(who, `${who.home}/namespaces/default`);
  expect(here).toMatchObject({ total: 2, has_more: false, next_cursor: null });
  const at = here.artifacts[1]!.deleted_at;
  expect(here.artifacts[1]).toEqual({
    artifact_id: one.artifact_id,
    org_id: who.orgId,
    workspace_id: who.workspaceId,
    namespace_id: one.namespace_id,
    name: 'One',
    artifact_type: 'text',
    version: 1,
    is_latest: true,
    root_artifact_id: one.artifact_id,
    file_name: null,
    mime_type: 'text/plain',
    size_bytes: 3,
    created_by: who.userId,
    created_at: one.created_at,
    updated_at: expect.any(String),
    deleted_at: expect.stringMatching(/Z$/),
    deleted_by: who.userId,
    restorable_until: new Date(Date.parse(at) + 30 * 86_400_000).toISOString(),
  });
  const page = await deletedIn(who, who.home, '?limit=2');
  expect(page.artifacts.map(({ artifact_id }) => artifact_id)).toEqual([elsewhere.artifact_id, two.artifact_id]);
  const rest = await deletedIn(who, who.home, `?limit=2&cursor=${page.next_cursor}`);
  expect(rest.artifacts.map(({ artifact_id }) => artifact_id)).toEqual([one.artifact_id]);
  expect(page.artifacts[0]!.namespace_id).toBe(other.body.namespace_id);
  const { data } = await who.ask(
    `query ($orgId: ID!, $workspaceId: ID!) {
      workspaceDeletedArtifacts(orgId: $orgId, workspaceId: $workspaceId, first: 1) {
        totalCount nodes { id deletedByUser { username } rootArtifact { id } namespace { name } }
      }
    }`,
    { orgId: who.orgId, workspaceId: who.workspaceId },
  );
  expect(data).toEqual({
    workspaceDeletedArtifacts: {
      totalCount: 3,
      nodes: [
        {
          id: elsewhere.artifact_id,
          deletedByUser: { username: who.username },
          rootArtifact: null,
          namespace: { name: 'B' },
        },
      ],
    },
  });
});

test('30 days after its deletion it is gone', async () => {
  const [kept, gone] = [await newArtifact(ann), await newArtifact(ann)].map(({ artifact_id }) => artifact_id);
  for (const id of [kept!, gone!]) await remove(id);
  await age(kept!, '29 days 23 hours');
  await age(gone!, '30 days');
  expect(await idsIn(ann)).toContain(kept);
  expect(await idsIn(ann)).not.toContain(gone);
  expect((await restore(gone!)).json()).toMatchObject({
    status_code: 404,
    details: { resource_type: 'artifact', resource_id: gone },
  });
  await app.retention.run();
  expect((await restore(kept!)).statusCode).toBe(200);
});

test('one that would have been removed for its expiry does not come back', async () => {
  const { artifact_id: id } = await newArtifact(ann, { ttl_seconds: 60 });
  await remove(id);
  await app.database.pool.query(`update artifacts set expires_at = now() - interval '8 days' where id = $1`, [id]);
  expect(await idsIn(ann)).not.toContain(id);
  expect((await restore(id)).statusCode).toBe(404);
});

test('a version that was deleted by itself comes back by itself, and not with its artifact', async () => {
  const { artifact_id: id } = await newArtifact(ann, { content: 'one' });
  await putArtifact(ann, id, { content: 'two' });
  await putArtifact(ann, id, { content: 'three' });
  const numbers = async () => (await versionsOf(ann, id)).versions.map(({ version }) => version);
  const { artifact_id: first } = (await versionsOf(ann, id)).versions.find(({ version }) => version === 1)!;
  await remove(first);
  expect(await idsIn(ann)).toContain(first);
  await remove(id);
  // it is not there without its artifact
  expect(await idsIn(ann)).not.toContain(first);
  expect((await restore(first)).statusCode).toBe(404);
  expect((await restore(id)).statusCode).toBe(200);
  expect(await numbers()).toEqual([3, 2]);
  expect((await restore(first)).json()).toMatchObject({ artifact_id: first, version: 1, content: 'one' });
  expect(await numbers()).toEqual([3, 2, 1]);
  expect((await eventsOf(app, first)).at(-1)).toBe('artifact.restored');
});

test('who may delete it may see and restore it: members only what they created', async () => {
  const [member, viewer, editor] = [
    await colleague(app, ann, 'member'),
    await colleague(app, ann, 'viewer'),
    await colleague(app, ann, 'editor'),
  ];
  const { artifact_id: annes } = await newArtifact(ann);
  const { artifact_id: own } = await newArtifact(member, {}, shelfOf(ann));
  await remove(annes);
  await remove(own);
  expect(await idsIn(member)).toEqual([own]);
  expect(await idsIn(member, ann.home)).toEqual([own]);
  expect(await idsIn(editor)).toEqual(expect.arrayContaining([own, annes]));
  for (const place of [ann.home, `${ann.home}/namespaces/default`])
    expect(await viewer.call('GET', `${place}/deleted-artifacts`)).toMatchObject({
      status: 403,
      body: { details: { required_permission: 'artifact:delete' } },
    });
  for (const who of [member, viewer])
    expect((await restore(annes, who)).json()).toMatchObject({
      status_code: 403,
      details: { required_permission: 'artifact:delete' },
    });
  expect((await restore(own, member)).statusCode).toBe(200);
  expect((await restore(annes, editor)).statusCode).toBe(200);
});

test('what is not deleted stays as it is, and an unexpected version is refused', async () => {
  const { artifact_id: id } = await newArtifact(ann, { content: 'text' });
  await app.jobsDone();
  const before = (await getArtifact(ann, id)).body;
  expect((await restore(id)).json()).toMatchObject({ artifact_id: id, updated_at: before.updated_at });
  expect(await eventsOf(app, id)).not.toContain('artifact.restored');
  const { headers } = await app.server.inject({ url: `${shelfOf(ann)}/${id}`, headers: ann.headers });
  await remove(id);
  expect((await restore(id, ann, { 'if-match': String(headers.etag) })).statusCode).toBe(412);
  expect((await restore('art_missing')).statusCode).toBe(404);
  const answers = await Promise.all([restore(id), restore(id), restore(id)]);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  expect((await eventsOf(app, id)).filter((type) => type === 'artifact.restored')).toHaveLength(1);
});

test('what is deleted counts as stored, so that a limit does not stand in the way of a restore', async () => {
  const who = await register(app, { name: 'full' });
  const { artifact_id: id } = await newArtifact(who, { content: 'x'.repeat(100) });
  await who.call('DELETE', `${shelfOf(who)}/${id}`);
  await who.call('PUT', `${who.home}/storage`, { limit_bytes: 100 });
  const used = async () => (await who.call<{ used_bytes: number }>('GET', `${who.home}/storage`)).body.used_bytes;
  expect(await used()).toBe(100);
  expect((await who.call('POST', shelfOf(who), { name: 'More', content: 'x' })).status).toBe(409);
  expect((await who.call('POST', `${shelfOf(who)}/${id}/restore`)).status).toBe(200);
  expect(await used()).toBe(100);
});

test('a source that it was promoted to does not come back: it can be promoted again', async () => {
  const { artifact_id: id } = await newArtifact(ann, { content: 'text' });
  const promote = () => ann.call<{ promoted_to_source_id: string }>('POST', `${shelfOf(ann)}/${id}/promote`, {});
  const { promoted_to_source_id: first } = (await promote()).body;
  await remove(id);
  expect((await restore(id)).json()).toMatchObject({ promoted_to_source_id: null, scope: 'namespace' });
  expect((await ann.call('GET', `${ann.home}/sources/${first}`)).status).toBe(404);
  expect((await promote()).body.promoted_to_source_id).not.toBe(first);
});
