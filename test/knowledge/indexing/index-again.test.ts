import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { getArtifact, newArtifact, shelfOf } from '../artifacts/artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const namesFor = async (person: Person, query: string) => {
  const { body } = await person.call<{ results: { artifact: { name: string } }[] }>(
    'POST',
    `${shelfOf(person)}/query`,
    {
      query,
    },
  );
  return body.results.map(({ artifact }) => artifact.name);
};

/** Leaves artifacts as an index of before there were languages has them. */
async function makeOld(ids: string[]): Promise<void> {
  const { sql } = app.services;
  await sql.write(
    `update artifact_chunks set config = 'english', words = to_tsvector('english', content), grams = null
      where artifact_id = any($1)`,
    [ids],
  );
  await sql.write('update artifacts set index_language = null, index_version = 0 where id = any($1)', [ids]);
  await sql.write(`update artifacts set label_words = to_tsvector('english', name) where id = any($1)`, [ids]);
}

const outdated = (ids: string[]) =>
  app.services.sql.read('select 1 from artifacts where id = any($1) and index_version < 1', [ids]);

test('what was indexed before is found as before, then in its language, and callers see no change', async () => {
  const ann = await register(app, { name: 'ann' });
  const han = await newArtifact(ann, { name: '天气预报', content: '北京的天气今天很好，适合去公园散步。' });
  const english = await newArtifact(ann, { name: 'pump', content: 'The cooling pump overheats in summer.' });
  const image = await newArtifact(ann, { name: '风景照片', content: 'x', mime_type: 'image/png' });
  const ids = [han, english, image].map(({ artifact_id: id }) => id);
  await app.jobsDone();
  await ann.call('POST', `${shelfOf(ann)}/${ids[0]}/promote`, {});
  const before = await Promise.all(ids.map(async (id) => (await getArtifact(ann, id)).body));
  const events = await Promise.all(ids.map((id) => eventsOf(app, id)));
  await whileJobsWait(app, async () => {
    await makeOld(ids);
    expect(await namesFor(ann, 'overheating pumps')).toEqual(['pump']);
    expect(await namesFor(ann, '公园')).toEqual([]);
  });
  await waitFor(async () => expect(await outdated(ids)).toEqual([]));
  expect(await namesFor(ann, '公园')).toEqual(['天气预报']);
  expect(await namesFor(ann, '照片')).toEqual(['风景照片']);
  expect(await namesFor(ann, 'overheating pumps')).toEqual(['pump']);
  expect(await namesFor(ann, 'verheat')).toEqual(['pump']);
  expect(await Promise.all(ids.map(async (id) => (await getArtifact(ann, id)).body))).toEqual(before);
  expect(await Promise.all(ids.map((id) => eventsOf(app, id)))).toEqual(events);
});

test('what cannot be read again stays as it was indexed, and keeps nothing else from it', async () => {
  const ann = await register(app, { name: 'ann' });
  const lost = await newArtifact(ann, { name: 'lost', content: 'Walnuts are stored in the cellar.' });
  const other = await newArtifact(ann, { name: 'other', content: '栗子存放在地窖里。' });
  const ids = [lost, other].map(({ artifact_id: id }) => id);
  await app.jobsDone();
  await whileJobsWait(app, async () => {
    const { sql } = app.services;
    await sql.write(
      `insert into files (id, org_id, workspace_id, storage_key, size_bytes, file_name, state)
        select 'file_lost', org_id, workspace_id, 'nowhere/lost', 10, 'lost', 'kept' from artifacts where id = $1`,
      [ids[0]],
    );
    await sql.write(`update artifacts set file_id = 'file_lost', content = null where id = $1`, [ids[0]]);
    await makeOld(ids);
  });
  await waitFor(async () => expect(await outdated(ids)).toEqual([]));
  expect(await namesFor(ann, '地窖')).toEqual(['other']);
  expect(await namesFor(ann, 'walnut')).toEqual(['lost']);
  expect((await getArtifact(ann, ids[0]!)).body).toMatchObject({ is_indexed: true, index_error: null });
});
