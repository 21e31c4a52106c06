import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ArtifactFragment } from '../../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { colleague, eventsOf, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

type Artifact = RestBody<ArtifactFragment>;
interface Found {
  results: { artifact: Artifact; score: number; matched_chunk: string }[];
  combined_context: string;
  total_results: number;
  query: string;
}

const artifactsOf = (owner: Person, namespace = 'default') => `${owner.home}/namespaces/${namespace}/artifacts`;

async function made(owner: Person, body: object): Promise<Artifact> {
  const { status, body: artifact } = await owner.call<Artifact>('POST', artifactsOf(owner), body);
  expect(status).toBe(201);
  return artifact;
}

const read = async (owner: Person, id: string) =>
  (await owner.call<Artifact>('GET', `${artifactsOf(owner)}/${id}`)).body;

async function found(owner: Person, body: object): Promise<Found> {
  const answer = await owner.call<Found>('POST', `${artifactsOf(owner)}/query`, body);
  // a refusal is shown with its body
  expect(answer).toMatchObject({ status: 200 });
  return answer.body;
}

const namesOf = ({ results }: Found) => results.map(({ artifact }) => artifact.name);

test('finds what is indexed, with the best part and the shape of the contract', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id: id } = await made(ann, {
    name: 'Pump manual',
    content: 'The cooling pump overheats when its inlet filter is blocked. Clean the filter every month.',
  });
  await made(ann, { name: 'Menu', content: 'Soup of the day, bread and butter.' });
  await app.jobsDone();
  const artifact = await read(ann, id);
  expect(artifact).toMatchObject({
    is_indexed: true,
    indexed_at: expect.any(String),
    index_collection: 'full_text',
    index_error: null,
    index_attempts: 1,
    chunk_count: 1,
  });
  const answer = await found(ann, { query: 'why does the pump overheat?' });
  expect(answer).toEqual({
    results: [{ artifact, score: expect.any(Number), matched_chunk: artifact.content }],
    combined_context: artifact.content,
    total_results: 1,
    query: 'why does the pump overheat?',
  });
  expect(answer.results[0]!.score).toBeGreaterThan(0.5);
  expect(answer.results[0]!.score).toBeLessThanOrEqual(1);
  expect(await eventsOf(app, id)).toEqual(['artifact.created', 'artifact.indexed']);
});

test('finds words with typing errors, inflections, and labels of what is not indexed', async () => {
  const ann = await register(app, { name: 'ann' });
  await made(ann, { name: 'a', content: 'Instruments need a calibration twice a year.' });
  await made(ann, { name: 'Quarterly turbine inspection', description: 'Vibration', tags: ['windpark'] });
  await app.jobsDone();
  expect(namesOf(await found(ann, { query: 'calibraiton' }))).toEqual(['a']);
  expect(namesOf(await found(ann, { query: 'calibrated instrument' }))).toEqual(['a']);
  expect(namesOf(await found(ann, { query: 'turbnie' }))).toEqual(['Quarterly turbine inspection']);
  const byTag = await found(ann, { query: 'windpark' });
  expect(byTag.results).toMatchObject([{ artifact: { is_indexed: false }, matched_chunk: 'Vibration' }]);
  expect(await found(ann, { query: 'zeppelin' })).toEqual({
    results: [],
    combined_context: '',
    total_results: 0,
    query: 'zeppelin',
  });
});

test('understands quotation marks, OR and minus', async () => {
  const ann = await register(app, { name: 'ann' });
  await made(ann, { name: 'one', content: 'red apples and green pears' });
  await made(ann, { name: 'two', content: 'green apples and red pears' });
  await app.jobsDone();
  expect(namesOf(await found(ann, { query: '"green apples"' }))).toEqual(['two']);
  expect(namesOf(await found(ann, { query: 'pears -"red apples"' }))).toEqual(['two']);
  expect(namesOf(await found(ann, { query: '"red apples" OR "green apples"' })).sort()).toEqual(['one', 'two']);
  expect(namesOf(await found(ann, { query: '-apples' }))).toEqual([]);
  // a question is no formula
  expect(namesOf(await found(ann, { query: 'are pears or plums blue?' })).sort()).toEqual(['one', 'two']);
});

test('filters, limits, and counts before the limit', async () => {
  const ann = await register(app, { name: 'ann' });
  const { body: thread } = await ann.call<{ thread_id: string }>('POST', `${ann.home}/namespaces/default/threads`, {});
  const thread_id = thread.thread_id;
  await made(ann, { name: 'plain', content: 'harvest report' });
  await made(ann, { name: 'code', content: 'harvest function', artifact_type: 'code' });
  const inThread = await made(ann, { name: 'thread', content: 'harvest talk', thread_id });
  const expired = await made(ann, { name: 'expired', content: 'harvest past', ttl_seconds: 60 });
  await app.jobsDone();
  await app.services.sql.write('update artifacts set expires_at = now() - $2::interval where id = $1', [
    expired.artifact_id,
    '1 hour',
  ]);
  const namesFor = async (filters: object) => namesOf(await found(ann, { query: 'harvest', ...filters })).sort();
  expect(await namesFor({})).toEqual(['code', 'plain', 'thread']);
  expect(await namesFor({ artifact_types: ['code'] })).toEqual(['code']);
  expect(await namesFor({ artifact_types: [] })).toEqual(['code', 'plain', 'thread']);
  expect(await namesFor({ thread_id })).toEqual(['thread']);
  expect(await namesFor({ include_expired: true })).toEqual(['code', 'expired', 'plain', 'thread']);
  expect(await namesFor({ min_score: 1 })).toEqual([]);
  const limited = await found(ann, { query: 'harvest', limit: 1 });
  expect([limited.results.length, limited.total_results]).toEqual([1, 3]);
  expect(
    await ann.call('POST', `${artifactsOf(ann)}/query`, { query: 'harvest', thread_id: 'thr_unknown' }),
  ).toMatchObject({ status: 404, body: { details: { resource_type: 'thread', resource_id: 'thr_unknown' } } });
  expect((await ann.call('DELETE', `${artifactsOf(ann)}/${inThread.artifact_id}`)).status).toBe(204);
  expect(await namesFor({})).toEqual(['code', 'plain']);
});

test('refuses bad input with its place', async () => {
  const ann = await register(app, { name: 'ann' });
  const { status, body } = await ann.call<{ detail: { loc: string[] }[] }>('POST', `${artifactsOf(ann)}/query`, {
    query: '',
    limit: 51,
    min_score: 2,
    include_expired: 'x',
  });
  expect(status).toBe(422);
  expect(body.detail.map(({ loc }) => loc)).toEqual([
    ['body', 'query'],
    ['body', 'limit'],
    ['body', 'min_score'],
    ['body', 'include_expired'],
  ]);
});

test('knows the latest version only, and says at every step what is true', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id: id } = await made(ann, { name: 'notes', content: 'about walnuts' });
  await app.jobsDone();
  const url = `${artifactsOf(ann)}/${id}`;
  await whileJobsWait(app, async () => {
    const changed = (await ann.call<Artifact>('PUT', url, { content: 'about hazelnuts' })).body;
    const nothing = { is_indexed: false, indexed_at: null, chunk_count: 0, index_attempts: 0 };
    expect(changed).toMatchObject({ ...nothing, version: 2 });
    expect((await found(ann, { query: 'walnuts' })).results).toEqual([]);
  });
  await app.jobsDone();
  expect(await read(ann, id)).toMatchObject({ is_indexed: true, chunk_count: 1, index_attempts: 1, version: 2 });
  expect(namesOf(await found(ann, { query: 'hazelnuts' }))).toEqual(['notes']);
  // a change of a label is found at once
  await ann.call('PUT', url, { name: 'nutcracker' });
  expect(namesOf(await found(ann, { query: 'nutcracker' }))).toEqual(['nutcracker']);
});

test('stays in its namespace', async () => {
  const ann = await register(app, { name: 'ann' });
  const bob = await register(app, { name: 'bob' });
  const { body: other } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Other' });
  await made(ann, { name: 'secretplan', content: 'the marzipan recipe' });
  await app.jobsDone();
  for (const query of ['marzipan', 'marzipna', 'secretplan', 'secretplna']) {
    expect((await found(ann, { query })).total_results).toBe(1);
    expect((await found(bob, { query })).total_results).toBe(0);
    const inOther = await ann.call<Found>('POST', `${artifactsOf(ann, other.namespace_id)}/query`, { query });
    expect(inOther.body.total_results).toBe(0);
  }
  const viewer = await colleague(app, ann, 'viewer');
  expect(
    (await viewer.call<Found>('POST', `${artifactsOf(ann)}/query`, { query: 'marzipan' })).body.total_results,
  ).toBe(1);
  expect((await bob.call('POST', `${artifactsOf(ann)}/query`, { query: 'marzipan' })).status).toBe(403);
});

test('shows the part around the hit of a long text, and joins chunks', async () => {
  const ann = await register(app, { name: 'ann' });
  const filler = 'Nothing to see in this sentence at all. '.repeat(200);
  await made(ann, { name: 'long', content: `${filler}The ocelot sleeps 😀 in the afternoon. ${filler}` });
  await made(ann, { name: 'short', content: 'ocelot' });
  await app.jobsDone();
  const { results, combined_context: context } = await found(ann, { query: 'ocelot' });
  const long = results.find(({ artifact }) => artifact.name === 'long')!;
  expect(long.artifact.chunk_count).toBeGreaterThan(5);
  expect(long.matched_chunk.length).toBeLessThanOrEqual(500);
  expect(long.matched_chunk).toContain('The ocelot sleeps 😀 in the afternoon.');
  expect(context.split('\n\n---\n\n')).toHaveLength(2);
  expect(context).toContain(long.matched_chunk);
  expect(context.length).toBeLessThanOrEqual(8_000);
});

test('hostile queries cost what others cost', async () => {
  const ann = await register(app, { name: 'ann' });
  await made(ann, { name: "it's 100%", content: "it's 100% \\ 'quoted' & more | less ! <-> : *" });
  await app.jobsDone();
  const queries = [
    "'",
    '\\',
    '"',
    '((((',
    '!!!',
    "it's",
    "' | '",
    ':* & !x <-> y',
    '-',
    'the of and',
    '😀',
    'a'.repeat(2_000),
    'or '.repeat(600),
    '"a b" '.repeat(300),
    `${'-x '.repeat(600)}`,
    Array.from({ length: 400 }, (_, index) => `w${index}`).join(' '),
    '\ud7ff\u200d'.repeat(900),
  ];
  for (const query of queries) expect((await found(ann, { query })).query).toBe(query);
});

test('reads by tenant first', async () => {
  const ann = await register(app, { name: 'ann' });
  const indexes = await app.services.sql.read<{ indexdef: string }>(
    `select indexdef from pg_indexes where indexname in
      ('artifact_chunks_words', 'artifact_words_trigrams', 'artifacts_label_words', 'artifacts_name_trigrams')`,
    [],
  );
  expect(indexes.map(({ indexdef }) => /USING gin \((\w+)/.exec(indexdef)?.[1])).toEqual(
    Array.from({ length: 4 }, () => 'namespace_id'),
  );
  expect(ann.orgId).toMatch(/^org_/);
});
