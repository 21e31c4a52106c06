import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { type Person, register } from '../../support/person.ts';
import { logQueries, type QueryLog } from '../../support/query-log.ts';
import { newArtifact } from './artifacts.ts';

/** With the one that is copied, more than two statements remove. */
const OTHERS = 400;

let app: TestApp;
let log: QueryLog;
beforeAll(async () => {
  app = await startTestApp();
  log = logQueries(app.database.pool);
});
afterAll(() => app.close());

/** A namespace with more artifacts than one statement removes: each has an old version, a chunk and a file. */
async function bigNamespace(who: Person): Promise<{ namespaceId: string; url: string; first: string }> {
  const { body } = await who.call<{ namespace_id: string }>('POST', `${who.home}/namespaces`, { name: 'Big' });
  const url = `${who.home}/namespaces/${body.namespace_id}`;
  const { artifact_id: first } = await newArtifact(who, { content: 'words of a plan' }, `${url}/artifacts`);
  await app.jobsDone();
  await fill(
    app,
    `insert into files (id, org_id, workspace_id, namespace_id, storage_key, file_name, state, size_bytes)
      select f.id, org_id, workspace_id, namespace_id, lower(workspace_id) || '/' || f.id, 'f', 'kept', 1
      from artifacts a, generate_series(1, ${OTHERS}) n,
        lateral (select 'file_' || lpad(n::text, 20, '0') || right($1, 6) as id) f where a.id = $1`,
    [first],
  );
  await fill(
    app,
    `insert into artifacts (id, org_id, workspace_id, namespace_id, name, artifact_type, root_artifact_id, version,
        is_latest, replaced_by_version, file_id)
      select 'art_' || v || lpad(n::text, 19, '0') || right($1, 6), org_id, workspace_id, namespace_id, 'n' || n,
        'text', 'art_2' || lpad(n::text, 19, '0') || right($1, 6), v, v = 2, case v when 1 then 2 end,
        case v when 2 then 'file_' || lpad(n::text, 20, '0') || right($1, 6) end
      from artifacts, generate_series(1, ${OTHERS}) n, generate_series(2, 1, -1) v where id = $1`,
    [first],
  );
  await fill(
    app,
    `insert into artifact_chunks (artifact_id, org_id, workspace_id, namespace_id, position, content, token_count)
      select id, org_id, workspace_id, namespace_id, 0, 'x', 1 from artifacts
      where namespace_id = $1 and is_latest and id <> $2`,
    [body.namespace_id, first],
  );
  return { namespaceId: body.namespace_id, url, first };
}

/** How many versions, chunks and words a namespace has, and files that are kept. */
async function left(namespaceId: string): Promise<number[]> {
  const { artifact, artifactChunk, artifactWord, storedFile } = app.database.prisma;
  const where = { namespaceId };
  return Promise.all([
    artifact.count({ where }),
    artifactChunk.count({ where }),
    artifactWord.count({ where }),
    storedFile.count({ where: { ...where, state: 'kept' } }),
  ]);
}

/** How many statements removed heads while something ran. */
async function parts(work: () => Promise<unknown>): Promise<number> {
  return (await log.during(work)).filter((text) => text.startsWith('delete from artifacts where id = any')).length;
}

test('a namespace is deleted with many artifacts in parts, with an event for each and for each source', async () => {
  const who = await register(app, { name: 'ann' });
  const { namespaceId, url, first } = await bigNamespace(who);
  const promoted = await who.call<{ promoted_to_source_id: string }>('POST', `${url}/artifacts/${first}/promote`, {});
  const gone = await newArtifact(who, {}, `${url}/artifacts`);
  await who.call('DELETE', `${url}/artifacts/${gone.artifact_id}`);
  const kept = await newArtifact(who, { content: 'stays' });
  expect((await left(namespaceId)).slice(0, 2)).toEqual([2 * OTHERS + 2, OTHERS + 1]);
  let status = 0;
  const statements = await parts(async () => {
    ({ status } = await who.call('DELETE', url));
  });
  expect([status, statements]).toEqual([204, 3]);
  expect(await left(namespaceId)).toEqual([0, 0, 0, 0]);
  const events = await app.database.prisma.event.groupBy({
    by: ['type'],
    where: { orgId: who.orgId, type: { endsWith: '.deleted' } },
    _count: true,
  });
  expect(Object.fromEntries(events.map(({ type, _count }) => [type, _count]))).toEqual({
    'artifact.deleted': OTHERS + 2,
    'namespace.deleted': 1,
    'source.deleted': 1,
  });
  const source = { resourceId: promoted.body.promoted_to_source_id, type: 'source.deleted', namespaceId: null };
  expect(await app.database.prisma.event.count({ where: source })).toBe(1);
  await app.jobsDone();
  expect((await who.call('GET', `${who.home}/namespaces/default/artifacts/${kept.artifact_id}`)).status).toBe(200);
});

test('a workspace that ends for good loses many artifacts in parts', async () => {
  const who = await register(app, { name: 'ann' });
  const { namespaceId } = await bigNamespace(who);
  const deletedAt = new Date(Date.now() - 31 * 24 * 3_600_000);
  await app.database.prisma.workspace.update({ where: { id: who.workspaceId }, data: { deletedAt } });
  expect(await parts(() => app.retention.run())).toBe(3);
  expect(await left(namespaceId)).toEqual([0, 0, 0, 0]);
});
