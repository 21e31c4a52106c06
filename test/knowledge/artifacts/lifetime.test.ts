import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { dated } from '../../support/dated.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import { inTransaction } from '../../support/rows.ts';
import { waitFor } from '../../support/wait.ts';
import { type ArtifactPage, getArtifact, newArtifact, putArtifact, shelfOf, versionsOf } from './artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** Lets the end of a lifetime be some time ago, in all versions. */
const expire = (id: string, ago: string) =>
  app.database.pool.query(
    `update artifacts set expires_at = now() - $2::interval where root_artifact_id = $1 and expires_at is not null`,
    [id, ago],
  );
const listed = async (person: Person, query = '') => {
  const { body } = await person.call<ArtifactPage>('GET', `${shelfOf(person)}${query}`);
  return [body.total, ...body.artifacts.map(({ artifact_id }) => artifact_id)];
};
const rowsOf = async (id: string) =>
  (await app.database.pool.query('select id from artifacts where root_artifact_id = $1', [id])).rowCount;
const sweep = () => app.retention.run();

test('expired artifacts are hidden from lists, readable for seven days, then removed', async () => {
  const ann = await register(app, { name: 'ann' });
  const made = await dated(() => newArtifact(ann, { content: 'a', ttl_seconds: 60 }));
  const { artifact_id } = made.result;
  made.expectAfter(60_000, made.result.expires_at);
  await putArtifact(ann, artifact_id, { content: 'b' });
  const kept = await newArtifact(ann);
  await expire(artifact_id, '6 days 23 hours');
  expect(await listed(ann)).toEqual([1, kept.artifact_id]);
  expect(await listed(ann, '?include_expired=true')).toEqual([2, kept.artifact_id, artifact_id]);
  expect((await getArtifact(ann, artifact_id)).body).toMatchObject({ is_expired: true, status: 'expired' });
  const { versions } = await versionsOf(ann, artifact_id);
  expect(versions.map(({ status, is_expired }) => [status, is_expired])).toEqual([
    ['expired', true],
    ['superseded', true],
  ]);
  await sweep();
  expect(await rowsOf(artifact_id)).toBe(2);
  await expire(artifact_id, '7 days 1 second');
  for (const { artifact_id: id } of versions) expect((await getArtifact(ann, id)).status).toBe(404);
  expect((await putArtifact(ann, artifact_id, { is_pinned: true })).status).toBe(404);
  expect(await listed(ann, '?include_expired=true')).toEqual([1, kept.artifact_id]);
  await sweep();
  expect(await rowsOf(artifact_id)).toBe(0);
});

test('the source of an expired artifact is deleted with it, as an event says', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a', ttl_seconds: 60 });
  await putArtifact(ann, artifact_id, { content: 'b' });
  const { body } = await ann.call<{ promoted_to_source_id: string }>(
    'POST',
    `${shelfOf(ann)}/${artifact_id}/promote`,
    {},
  );
  const source = `${ann.home}/sources/${body.promoted_to_source_id}`;
  await expire(artifact_id, '6 days 23 hours');
  await sweep();
  expect((await ann.call('GET', source)).status).toBe(200);
  await expire(artifact_id, '7 days 1 second');
  await inTransaction(app.database.pool, async (db) => {
    await db.query('select from artifacts where id = $1 for no key update', [artifact_id]);
    await sweep();
    expect((await ann.call('GET', source)).status).toBe(200);
  });
  // what a change holds, as the announcement of its expiry may, is left for the next run
  await waitFor(async () => {
    await sweep();
    expect((await ann.call('GET', source)).status).toBe(404);
  });
  expect(await rowsOf(artifact_id)).toBe(0);
  expect(await eventsOf(app, body.promoted_to_source_id)).toEqual(['source.created', 'source.deleted']);
});

test('an expiry is announced once, by the service itself', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a', ttl_seconds: 60 });
  await putArtifact(ann, artifact_id, { content: 'b' });
  await expire(artifact_id, '1 second');
  const events = async () => (await eventsOf(app, artifact_id)).filter((type) => type === 'artifact.expired');
  await waitFor(async () => expect(await events()).toHaveLength(1));
  const [task] = app.services.artifacts.tasks;
  expect(await task!.run({}, { jobId: '1', number: 1, signal: new AbortController().signal })).toBe(0);
  expect(await events()).toHaveLength(1);
  // another lifetime ends again
  await putArtifact(ann, artifact_id, { ttl_seconds: 60 });
  await expire(artifact_id, '1 second');
  await waitFor(async () => expect(await events()).toHaveLength(2));
  const { rows } = await app.database.pool.query<{ id: string }>(
    'select id from artifacts where root_artifact_id = $1 and not is_latest',
    [artifact_id],
  );
  expect(await eventsOf(app, rows[0]!.id)).toEqual([]);
});

test('a pin, another lifetime or none brings an expired artifact back', async () => {
  const ann = await register(app, { name: 'ann' });
  for (const [change, seconds] of [
    [{ is_pinned: true }, null],
    [{ ttl_seconds: 120 }, 120],
    [{ ttl_seconds: null }, null],
  ] as const) {
    const { artifact_id } = await newArtifact(ann, { content: 'a', ttl_seconds: 60 });
    await putArtifact(ann, artifact_id, { content: 'b' });
    await expire(artifact_id, '3 days');
    const put = await dated(() => putArtifact(ann, artifact_id, change));
    const { body } = put.result;
    expect(body).toMatchObject({ ...change, is_expired: false, status: 'active', version: 2 });
    if (seconds === null) expect(body.expires_at).toBeNull();
    else put.expectAfter(seconds * 1_000, body.expires_at);
    expect((await listed(ann)).slice(1)).toContain(artifact_id);
    const [head, old] = (await versionsOf(ann, artifact_id)).versions;
    expect([old!.expires_at, old!.is_pinned, old!.ttl_seconds]).toEqual([
      head!.expires_at,
      head!.is_pinned,
      head!.ttl_seconds,
    ]);
  }
});

test('a pinned artifact does not expire; its lifetime starts when the pin is taken away', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id, expires_at } = await newArtifact(ann, { ttl_seconds: 60, is_pinned: true });
  expect(expires_at).toBeNull();
  expect((await putArtifact(ann, artifact_id, { ttl_seconds: 600 })).body.expires_at).toBeNull();
  const put = await dated(() => putArtifact(ann, artifact_id, { is_pinned: false }));
  const { body } = put.result;
  put.expectAfter(600_000, body.expires_at);
  // neither the same pin again nor another content starts it anew
  expect((await putArtifact(ann, artifact_id, { is_pinned: false })).body.expires_at).toBe(body.expires_at);
  expect((await putArtifact(ann, artifact_id, { content: 'a' })).body.expires_at).toBe(body.expires_at);
});

test('deleted artifacts are gone for callers and kept for 30 days, without their chunks', async () => {
  const ann = await register(app, { name: 'ann' });
  const { pool } = app.database;
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  await putArtifact(ann, artifact_id, { content: 'b' });
  await app.jobsDone();
  expect((await pool.query('select 1 from artifact_chunks where artifact_id = $1', [artifact_id])).rowCount).toBe(1);
  await ann.call('DELETE', `${shelfOf(ann)}/${artifact_id}`);
  expect((await pool.query('select 1 from artifact_chunks where artifact_id = $1', [artifact_id])).rowCount).toBe(0);
  const age = (days: number) =>
    pool.query(`update artifacts set deleted_at = now() - $2 * interval '1 day' where root_artifact_id = $1`, [
      artifact_id,
      days,
    ]);
  await age(29.9);
  await sweep();
  expect(await rowsOf(artifact_id)).toBe(2);
  await age(30.1);
  await sweep();
  expect(await rowsOf(artifact_id)).toBe(0);
});

test('a deleted old version goes alone; the numbers of the others stay', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  for (const content of ['b', 'c']) await putArtifact(ann, artifact_id, { content });
  const [, second] = (await versionsOf(ann, artifact_id)).versions;
  await ann.call('DELETE', `${shelfOf(ann)}/${second!.artifact_id}`);
  await app.database.pool.query(`update artifacts set deleted_at = now() - interval '31 days' where id = $1`, [
    second!.artifact_id,
  ]);
  await sweep();
  expect(await rowsOf(artifact_id)).toBe(2);
  expect((await versionsOf(ann, artifact_id)).versions.map(({ version }) => version)).toEqual([3, 1]);
});

test('a change of the content makes what the search knows void, in the same transaction', async () => {
  const ann = await register(app, { name: 'ann' });
  const { pool } = app.database;
  const { artifact_id } = await newArtifact(ann, { content: 'a' });
  await app.jobsDone();
  await pool.query(
    `update artifacts set is_indexed = true, indexed_at = now(), chunk_count = 1, index_attempts = 1,
       index_collection = 'x', content_text = 'a', embedding_model_id = 'm' where id = $1`,
    [artifact_id],
  );
  const nothing = {
    is_indexed: false,
    indexed_at: null,
    chunk_count: 0,
    index_attempts: 0,
    index_collection: null,
    embedding_model_id: null,
  };
  expect((await putArtifact(ann, artifact_id, { name: 'b' })).body).toMatchObject({ is_indexed: true, chunk_count: 1 });
  await whileJobsWait(app, async () => {
    expect((await putArtifact(ann, artifact_id, { content: 'b' })).body).toMatchObject({
      ...nothing,
      content_text: null,
    });
    const [, old] = (await versionsOf(ann, artifact_id)).versions;
    expect(old).toMatchObject({ ...nothing, content_text: 'a' });
    expect((await pool.query('select 1 from artifact_chunks where artifact_id = $1', [artifact_id])).rowCount).toBe(0);
  });
});

test('the file of an artifact is released when its row goes, however it goes', async () => {
  const ann = await register(app, { name: 'ann' });
  const { pool } = app.database;
  const withFile = async (shelf: string) => {
    const { artifact_id } = await newArtifact(ann, {}, shelf);
    const id = `file_${artifact_id.slice(4)}`;
    await pool.query(
      `insert into files (id, org_id, workspace_id, storage_key, file_name, state)
       values ($1, $2, $3, $1, 'a.bin', 'kept')`,
      [id, ann.orgId, ann.workspaceId],
    );
    await pool.query('update artifacts set file_id = $2 where id = $1', [artifact_id, id]);
    return { artifact_id, id };
  };
  // what is being removed may be gone already
  const isReleased = async (id: string) =>
    (await pool.query(`select from files where id = $1 and state <> 'removing'`, [id])).rowCount === 0;
  const { body } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Other' });
  const space = `${ann.home}/namespaces/${body.namespace_id}`;
  const inSpace = await withFile(`${space}/artifacts`);
  const deleted = await withFile(shelfOf(ann));
  await ann.call('DELETE', `${shelfOf(ann)}/${deleted.artifact_id}`);
  await sweep();
  expect(await isReleased(deleted.id)).toBe(false);
  await pool.query(`update artifacts set deleted_at = now() - interval '31 days' where id = $1`, [deleted.artifact_id]);
  await sweep();
  expect([await isReleased(deleted.id), await isReleased(inSpace.id)]).toEqual([true, false]);
  expect((await ann.call('DELETE', space)).status).toBe(204);
  expect(await isReleased(inSpace.id)).toBe(true);
});
