import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Answer, addToWorkspace, caller, colleague, type Person, register } from '../../support/person.ts';
import { Chance } from '../../support/random-queries.ts';
import { issueToken } from '../../support/tokens.ts';
import { type Artifact, newArtifact, putArtifact, shelfOf } from '../artifacts/artifacts.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

interface Found {
  results: { artifact: Artifact; score: number; matched_chunk: string }[];
  combined_context: string;
  total_results: number;
  query: string;
}

const query = (person: Person, place: string, body: object): Promise<Answer<Found>> =>
  person.call('POST', `${place}/artifacts/query`, body);
const orgOf = ({ orgId }: Person) => `/v1/orgs/${orgId}`;
const namesOf = ({ body }: Answer<Found>) => body.results.map(({ artifact }) => artifact.name);

async function namespace(person: Person, workspaceId = person.workspaceId, name = 'More'): Promise<string> {
  const url = `${orgOf(person)}/workspaces/${workspaceId}/namespaces`;
  return (await person.call<{ namespace_id: string }>('POST', url, { name })).body.namespace_id;
}

async function workspace(person: Person, name: string): Promise<string> {
  const body = { organization_id: person.orgId, name };
  return (await person.call<{ workspace_id: string }>('POST', `${orgOf(person)}/workspaces`, body)).body.workspace_id;
}

const shelf = (person: Person, workspaceId: string, namespaceId = 'default') =>
  `${orgOf(person)}/workspaces/${workspaceId}/namespaces/${namespaceId}/artifacts`;

describe('a search of a workspace and of an organization', () => {
  test('has what is in all namespaces, the best first, with the shape of the search of one', async () => {
    const ann = await register(app, { name: 'ann' });
    const other = await workspace(ann, 'Other');
    const more = await namespace(ann);
    await newArtifact(ann, { name: 'one', content: 'The heron nests in reeds.' });
    await newArtifact(ann, { name: 'heron', content: 'The heron is a bird.' }, shelf(ann, ann.workspaceId, more));
    await newArtifact(ann, { name: 'far', content: 'A heron far away.' }, shelf(ann, other));
    await app.jobsDone();
    const inWorkspace = await query(ann, ann.home, { query: 'heron' });
    expect(namesOf(inWorkspace)).toEqual(['heron', 'one']);
    const everywhere = await query(ann, orgOf(ann), { query: 'heron' });
    expect(namesOf(everywhere)[0]).toBe('heron');
    expect(everywhere.body).toMatchObject({ total_results: 3, query: 'heron' });
    const { artifact, score, matched_chunk } = everywhere.body.results.at(-1)!;
    const { body: whole } = await ann.call<Artifact>(
      'GET',
      `${shelf(ann, artifact.workspace_id)}/${artifact.artifact_id}`,
    );
    expect(artifact).toEqual({ ...whole, sha256: expect.any(String), language: null, index_language: 'en' });
    expect([score > 0, matched_chunk]).toEqual([true, whole.content]);
    expect((await query(ann, orgOf(ann), { query: 'heron', limit: 1 })).body).toMatchObject({ total_results: 3 });
    expect(namesOf(await query(ann, orgOf(ann), { query: 'heron', workspace_ids: [other] }))).toEqual(['far']);
    expect(namesOf(await query(ann, ann.home, { query: 'heron', namespace_ids: [more] }))).toEqual(['heron']);
    for (const place of [ann.home, orgOf(ann)])
      expect(await query(ann, place, { query: 'heron', namespace_ids: [more, 'ns_none'] })).toMatchObject({
        status: 404,
        body: { details: { resource_type: 'namespace', resource_id: 'ns_none' } },
      });
    expect((await query(ann, orgOf(ann), { query: 'heron', workspace_ids: ['ws_none'] })).status).toBe(404);
  });

  test('has nothing of other organizations, of deleted workspaces, or of workspaces without the member', async () => {
    const ann = await register(app, { name: 'ann' });
    const bob = await colleague(app, ann, 'viewer');
    const [secret, gone] = [await workspace(ann, 'Secret'), await workspace(ann, 'Gone')];
    await newArtifact(ann, { name: 'shared', content: 'An osprey.' });
    await newArtifact(ann, { name: 'secret', content: 'An osprey.' }, shelf(ann, secret));
    await newArtifact(ann, { name: 'gone', content: 'An osprey.' }, shelf(ann, gone));
    await newArtifact(bob, { name: 'of bob', content: 'An osprey.' }, shelf(bob, bob.workspaceId));
    await app.jobsDone();
    expect((await ann.call('DELETE', `${orgOf(ann)}/workspaces/${gone}`)).status).toBe(200);
    expect(namesOf(await query(ann, orgOf(ann), { query: 'osprey' })).sort()).toEqual(['secret', 'shared']);
    expect(namesOf(await query(bob, orgOf(ann), { query: 'osprey' }))).toEqual(['shared']);
    expect((await query(bob, orgOf(ann), { query: 'osprey', workspace_ids: [secret] })).status).toBe(403);
    expect((await query(bob, `${orgOf(ann)}/workspaces/${secret}`, { query: 'osprey' })).status).toBe(403);
    const eve = await register(app, { name: 'eve' });
    expect((await query(eve, orgOf(ann), { query: 'osprey' })).status).toBe(403);
    expect((await query(eve, ann.home, { query: 'osprey' })).status).toBe(403);
    const { headers } = await issueToken(app, ann, { permissions: ['workspace:read'] });
    const narrow = caller(app, { ...ann, accessToken: headers.authorization.replace('Bearer ', '') });
    expect((await query(narrow, orgOf(ann), { query: 'osprey' })).status).toBe(403);
  });

  test('says which of its inputs is wrong', async () => {
    const ann = await register(app, { name: 'ann' });
    for (const [body, loc] of [
      [{}, ['query']],
      [{ query: '' }, ['query']],
      [{ query: 'x', limit: 51 }, ['limit']],
      [{ query: 'x', metadata: { a: { b: 1 } } }, ['metadata', 'a']],
      [{ query: 'x', metadata: { a: [1] } }, ['metadata', 'a']],
      [{ query: 'x', metadata: Object.fromEntries(Array.from({ length: 11 }, (_, n) => [n, n])) }, ['metadata']],
      [{ query: 'x', mime_types: ['text'] }, ['mime_types', '0']],
      [{ query: 'x', created_from: '2026-02-01T00:00:00Z', created_to: '2026-01-01T00:00:00Z' }, ['created_to']],
      [{ query: 'x', updated_from: '2026-02-01T00:00:00Z', updated_to: '2026-01-01T00:00:00Z' }, ['updated_to']],
      [{ query: 'x', created_from: 'yesterday' }, ['created_from']],
    ] as const)
      for (const place of [orgOf(ann), ann.home, `${ann.home}/namespaces/default`]) {
        const { status, body: answer } = await ann.call<{ detail: { loc: (string | number)[] }[] }>(
          'POST',
          `${place}/artifacts/query`,
          body,
        );
        expect([status, answer.detail[0]!.loc.map(String)], JSON.stringify(body)).toEqual([422, ['body', ...loc]]);
      }
  });
});

test('conditions hold together, at each level', async () => {
  const ann = await register(app, { name: 'ann' });
  const text = 'Notes about the weir.';
  const made = [
    { name: 'a', tags: ['x', 'y'], metadata: { n: 1, s: 'one', t: true }, mime_type: 'text/markdown; charset=utf-8' },
    { name: 'b', tags: ['x'], metadata: { n: 1, s: null }, artifact_type: 'code', mime_type: 'application/json' },
    { name: 'c', tags: ['y', 'z'], metadata: { n: '1', s: ['one'], deep: { n: 1 } } },
  ];
  const ids: string[] = [];
  for (const given of made) ids.push((await newArtifact(ann, { ...given, content: text })).artifact_id);
  await app.jobsDone();
  const times = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z'];
  await app.database.pool.query(
    `update artifacts a set created_at = v.at, updated_at = v.at + interval '1 day'
      from unnest($1::text[], $2::timestamptz[]) v(id, at) where a.id = v.id`,
    [ids, times],
  );
  const cases: [object, string[]][] = [
    [{}, ['a', 'b', 'c']],
    [{ tags: ['x'] }, ['a', 'b']],
    [{ tags: ['y', 'x'] }, ['a']],
    [{ tags: [] }, ['a', 'b', 'c']],
    [{ metadata: { n: 1 } }, ['a', 'b']],
    [{ metadata: { n: '1' } }, ['c']],
    [{ metadata: { n: 1, s: 'one' } }, ['a']],
    [{ metadata: { s: null } }, ['b']],
    [{ metadata: { t: true } }, ['a']],
    [{ metadata: { s: 'one' } }, ['a']],
    [{ metadata: { deep: 1 } }, []],
    [{ metadata: {} }, ['a', 'b', 'c']],
    [{ artifact_types: ['code'] }, ['b']],
    [{ mime_types: ['text/markdown'] }, ['a']],
    [{ mime_types: ['TEXT/*'] }, ['a', 'c']],
    [{ mime_types: ['application/json', 'text/plain'] }, ['b', 'c']],
    [{ created_from: times[1] }, ['b', 'c']],
    [{ created_to: times[1] }, ['a']],
    [{ created_from: times[1], created_to: times[2] }, ['b']],
    [{ updated_from: '2026-02-02T00:00:00Z' }, ['b', 'c']],
    [{ updated_to: '2026-02-02T00:00:00Z' }, ['a']],
    [{ tags: ['x'], created_from: times[1] }, ['b']],
  ];
  for (const [conditions, names] of cases)
    for (const place of [`${ann.home}/namespaces/default`, ann.home, orgOf(ann)]) {
      const answer = await query(ann, place, { query: 'weir', ...conditions });
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
      expect(namesOf(answer).sort(), JSON.stringify(conditions)).toEqual(names);
      expect(answer.body.total_results).toBe(names.length);
    }
  // names and exact parts of what is not indexed
  expect(namesOf(await query(ann, shelfOf(ann).replace('/artifacts', ''), { query: 'no such', tags: ['x'] }))).toEqual(
    [],
  );
  await putArtifact(ann, ids[0]!, { name: 'Weir-77' });
  expect(namesOf(await query(ann, ann.home, { query: 'eir-7', tags: ['z'] }))).toEqual([]);
  expect(namesOf(await query(ann, ann.home, { query: 'eir-7', tags: ['x'] }))).toEqual(['Weir-77']);
});

const WORDS = ['granite', 'velvet', 'cobalt', 'nimbus', 'quartz', 'ibex', 'tundra', 'oboe'];
const PLACES = 3;

interface Places {
  owner: Person;
  /** Workspace and namespace. */
  namespaces: { workspaceId: string; namespaceId: string }[];
}

/** An organization with artifacts of few words in several places. */
async function filled(chance: Chance): Promise<Places> {
  const owner = await register(app, { name: 'owner' });
  const workspaces = [owner.workspaceId];
  while (workspaces.length < PLACES) workspaces.push(await workspace(owner, `W${workspaces.length}`));
  const namespaces = [];
  for (const workspaceId of workspaces) {
    const url = `${orgOf(owner)}/workspaces/${workspaceId}/namespaces`;
    const { body } = await owner.call<{ namespaces: { namespace_id: string }[] }>('GET', url);
    for (const namespaceId of [body.namespaces[0]!.namespace_id, await namespace(owner, workspaceId)])
      namespaces.push({ workspaceId, namespaceId });
  }
  for (let n = 0; n < 24; n += 1) {
    const { workspaceId, namespaceId } = chance.one(namespaces);
    const content = Array.from({ length: 1 + chance.below(3) }, () => chance.one(WORDS)).join(' and ');
    await newArtifact(
      owner,
      { name: `n${n}`, content, tags: [chance.one(['x', 'y'])] },
      shelf(owner, workspaceId, namespaceId),
    );
  }
  await app.jobsDone();
  return { owner, namespaces };
}

/** Somebody with a role by chance in the organization and some workspaces, with a token that may be restricted. */
async function somebody({ owner, namespaces }: Places, chance: Chance): Promise<Person> {
  const person = await register(app, { name: 'somebody' });
  // whom nobody made a member becomes a guest, in a workspace as a viewer
  const role = chance.one<Role | null>(['admin', 'member', 'viewer', null]);
  const members = `${orgOf(owner)}/members`;
  if (role) expect((await owner.call('POST', members, { user_id: person.userId, role })).status).toBe(201);
  const workspaceIds = [...new Set(namespaces.map((place) => place.workspaceId))];
  const first = chance.one(workspaceIds);
  for (const workspaceId of workspaceIds)
    if (chance.is(0.4) || (!role && workspaceId === first)) {
      const roleThere = role ? chance.one<Role>(['viewer', 'member', 'editor']) : 'viewer';
      await addToWorkspace(app, { ...owner, workspaceId }, person.userId, roleThere);
    }
  const at = { ...person, orgId: owner.orgId };
  if (chance.is(0.4)) return caller(app, at);
  const place = chance.one(namespaces);
  const restriction = chance.one<object>([
    {},
    { workspace_ids: [place.workspaceId] },
    { namespace_ids: [place.namespaceId, chance.one(namespaces).namespaceId] },
  ]);
  const url = `${orgOf(owner)}/api-tokens`;
  const { body } = await caller(app, at).call<{ plaintext_token: string }>('POST', url, {
    name: 'restricted',
    permissions: ['artifact:read'],
    ...restriction,
  });
  // who may use none of the places gets no such token
  return caller(app, body.plaintext_token ? { ...at, accessToken: body.plaintext_token } : at);
}

const seed = process.env.TEST_SEED ?? String(Date.now());

test(`finds what the searches of the namespaces find that the caller may read (TEST_SEED=${seed})`, async () => {
  const chance = new Chance(seed);
  const places = await filled(chance);
  let seen = 0;
  for (let round = 0; round < 14; round += 1) {
    const person = await somebody(places, chance);
    const asked = {
      query: [chance.one(WORDS), chance.one(WORDS)].join(' '),
      limit: 50,
      ...(chance.is(0.3) && { tags: ['x'] }),
    };
    const union = new Map<string, string>();
    for (const { workspaceId, namespaceId } of places.namespaces) {
      const { status, body } = await person.call<Found>(
        'POST',
        `${shelf(person, workspaceId, namespaceId)}/query`,
        asked,
      );
      expect([200, 403, 404]).toContain(status);
      if (status === 200) for (const { artifact } of body.results) union.set(artifact.name, artifact.workspace_id);
    }
    const everywhere = await query(person, orgOf(person), asked);
    expect(everywhere.status).toBe(200);
    expect(namesOf(everywhere).sort(), JSON.stringify(asked)).toEqual([...union.keys()].sort());
    expect(everywhere.body.total_results).toBe(union.size);
    const scores = everywhere.body.results.map(({ score }) => score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    seen += union.size > 0 ? 1 : 0;
    for (const workspaceId of new Set(places.namespaces.map((place) => place.workspaceId))) {
      const there = await query(person, `${orgOf(person)}/workspaces/${workspaceId}`, asked);
      const expected = [...union].filter(([, of]) => of === workspaceId).map(([name]) => name);
      if (there.status === 200) expect(namesOf(there).sort()).toEqual(expected.sort());
      else expect([there.status, expected]).toEqual([403, []]);
    }
  }
  expect(seen).toBeGreaterThan(2);
});
