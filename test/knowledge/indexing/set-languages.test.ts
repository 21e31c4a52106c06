import { afterAll, beforeAll, expect, test } from 'vitest';
import { languages } from '../../../src/kernel/languages.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { whileJobsWait } from '../../support/held-jobs.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { type Artifact, newArtifact, putArtifact, shelfOf } from '../artifacts/artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** Too short to tell a language, which makes it English: there, the query is no form of the word. */
const SHORT = 'Häuser';
const QUERY = 'hauses';

const namesFor = async (person: Person, query: string) => {
  const url = `${shelfOf(person)}/query`;
  const { body } = await person.call<{ results: { artifact: { name: string } }[] }>('POST', url, { query });
  return body.results.map(({ artifact }) => artifact.name).sort();
};

const inLanguage = async (person: Person, id: string) => {
  const { data } = await person.ask<{ artifact: { language: string | null; indexLanguage: string | null } }>(
    `query ($id: ID!) { artifact: node(id: $id) { ... on Artifact { language indexLanguage } } }`,
    { id },
  );
  return Object.values(data.artifact);
};

const setWorkspace = (person: Person, language: string | null) => person.call('PUT', person.home, { language });

test('an artifact is indexed in the language that was set, and again when that changes, without an event', async () => {
  const ann = await register(app, { name: 'ann' });
  const given = { content: SHORT, language: 'de' };
  const [german, plain] = [await newArtifact(ann, { name: 'g', ...given }), await newArtifact(ann, { content: SHORT })];
  await app.jobsDone();
  expect(await inLanguage(ann, german.artifact_id)).toEqual(['de', 'de']);
  expect(await inLanguage(ann, plain.artifact_id)).toEqual([null, 'en']);
  expect(await namesFor(ann, QUERY)).toEqual(['g']);

  const indexed = async () => (await eventsOf(app, plain.artifact_id)).filter((type) => type === 'artifact.indexed');
  const before = await indexed();
  expect(before).toHaveLength(1);
  const { status, body } = await putArtifact(ann, plain.artifact_id, { language: 'de' });
  expect([status, 'language' in body]).toEqual([200, false]);
  await waitFor(async () => expect(await inLanguage(ann, plain.artifact_id)).toEqual(['de', 'de']));
  expect(await namesFor(ann, QUERY)).toEqual(['Plan', 'g']);
  expect(await indexed()).toEqual(before);

  await putArtifact(ann, german.artifact_id, { language: null });
  await waitFor(async () => expect(await inLanguage(ann, german.artifact_id)).toEqual([null, 'en']));
  expect(await namesFor(ann, QUERY)).toEqual(['Plan']);
  // what is not indexed yet follows as well, and what gets a new text keeps its language
  await putArtifact(ann, plain.artifact_id, { content: `${SHORT}, neu` });
  await app.jobsDone();
  expect(await inLanguage(ann, plain.artifact_id)).toEqual(['de', 'de']);
});

test('labels are in the language that was set, also of what has no text', async () => {
  const ann = await register(app, { name: 'ann' });
  await newArtifact(ann, { name: SHORT, content: 'x', mime_type: 'image/png', language: 'de' });
  await newArtifact(ann, { name: `${SHORT} b`, content: 'x', mime_type: 'image/png' });
  expect(await namesFor(ann, QUERY)).toEqual([SHORT]);
  await setWorkspace(ann, 'de');
  await waitFor(async () => expect(await namesFor(ann, QUERY)).toEqual([SHORT, `${SHORT} b`]));
});

test('an upload says its language', async () => {
  const ann = await register(app, { name: 'ann' });
  const payload = formOf([
    ['file', { name: 'a.txt', content: SHORT }],
    ['name', 'up'],
    ['language', 'de'],
  ]);
  const headers = { ...ann.headers, 'content-type': FORM_TYPE };
  const response = await app.server.inject({ method: 'POST', url: `${shelfOf(ann)}/upload`, payload, headers });
  expect(response.statusCode).toBe(201);
  await app.jobsDone();
  expect(await inLanguage(ann, response.json<Artifact>().artifact_id)).toEqual(['de', 'de']);
});

test('a workspace has a language for artifacts that say none; a change of it indexes them again', async () => {
  const ann = await register(app, { name: 'ann' });
  const [own, plain] = [
    await newArtifact(ann, { name: 'own', content: SHORT, language: 'fr' }),
    await newArtifact(ann, { name: 'plain', content: SHORT }),
  ];
  await app.jobsDone();
  const { status, body } = await setWorkspace(ann, 'de');
  expect([status, 'language' in body]).toEqual([200, false]);
  await waitFor(async () => expect(await inLanguage(ann, plain.artifact_id)).toEqual([null, 'de']));
  expect(await inLanguage(ann, own.artifact_id)).toEqual(['fr', 'fr']);
  const later = await newArtifact(ann, { name: 'later', content: SHORT });
  await app.jobsDone();
  expect(await inLanguage(ann, later.artifact_id)).toEqual([null, 'de']);
  expect(await namesFor(ann, QUERY)).toEqual(['later', 'plain']);
  const { data } = await ann.ask(`query ($o: ID!, $w: ID!) { workspace(orgId: $o, id: $w) { language } }`, {
    o: ann.orgId,
    w: ann.workspaceId,
  });
  expect(data).toEqual({ workspace: { language: 'de' } });
  await setWorkspace(ann, null);
  await waitFor(async () => expect(await inLanguage(ann, plain.artifact_id)).toEqual([null, 'en']));
  await waitFor(async () => expect(await inLanguage(ann, later.artifact_id)).toEqual([null, 'en']));
});

test('an index that is made while the language of the workspace changes is made in the new one', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id: id } = await whileJobsWait(app, async () => {
    const made = await newArtifact(ann, { content: SHORT });
    await setWorkspace(ann, 'de');
    return made;
  });
  await app.jobsDone();
  await waitFor(async () => expect(await inLanguage(ann, id)).toEqual([null, 'de']));
});

test('the setting of the operator comes last, and a change of it indexes again', async () => {
  const other = await startTestApp({ env: { SEARCH_LANGUAGE: 'de' }, ownDatabase: true });
  try {
    const ann = await register(other, { name: 'ann' });
    const rows = () => other.services.sql.read('select value from search_settings', []);
    await waitFor(async () => expect(await rows()).toEqual([{ value: 'de' }]));
    const plain = await newArtifact(ann, { content: SHORT });
    const own = await newArtifact(ann, { content: SHORT, language: 'fr' });
    await other.jobsDone();
    expect(await inLanguage(ann, plain.artifact_id)).toEqual([null, 'de']);
    expect(await inLanguage(ann, own.artifact_id)).toEqual(['fr', 'fr']);
    // as a service with another setting left it
    await whileJobsWait(other, async () => {
      await other.services.sql.write(`update search_settings set value = 'it'`, []);
      await other.services.sql.write(`update artifacts set index_language = 'en', language = null where id = any($1)`, [
        [plain.artifact_id, own.artifact_id],
      ]);
      expect(await inLanguage(ann, own.artifact_id)).toEqual([null, 'it']);
    });
    await waitFor(async () => expect(await inLanguage(ann, plain.artifact_id)).toEqual([null, 'de']));
    await waitFor(async () => expect(await inLanguage(ann, own.artifact_id)).toEqual([null, 'de']));
    await setWorkspace(ann, 'es');
    await waitFor(async () => expect(await inLanguage(ann, plain.artifact_id)).toEqual([null, 'es']));
  } finally {
    await other.close();
  }
});

test.each([
  ['POST', '/namespaces/default/artifacts'],
  ['PUT', '/namespaces/default/artifacts/ID'],
  ['PUT', ''],
] as const)('%s %s refuses a language that is none, with those that are', async (method, path) => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id: id } = await newArtifact(ann);
  for (const language of ['german', 'DE', 'de-AT', 'xx', '']) {
    const { status, body } = await ann.call<{ detail: { loc: string[]; msg: string }[] }>(
      method,
      `${ann.home}${path.replace('ID', id)}`,
      { name: 'n', language },
    );
    expect(status, language).toBe(422);
    expect(body.detail[0]!.loc).toEqual(['body', 'language']);
    for (const known of languages) expect(body.detail[0]!.msg).toContain(`'${known}'`);
  }
});

test('an old version has no language of its own', async () => {
  const ann = await register(app, { name: 'ann' });
  const { artifact_id: id } = await newArtifact(ann, { content: 'one' });
  await putArtifact(ann, id, { content: 'two' });
  const { body: versions } = await ann.call<{ versions: Artifact[] }>('GET', `${shelfOf(ann)}/${id}/versions`);
  const { status, body } = await putArtifact(ann, versions.versions[1]!.artifact_id, { language: 'de' });
  expect([status, body]).toMatchObject([409, { details: { reason: 'not_latest_version' } }]);
});
