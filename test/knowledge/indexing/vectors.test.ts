import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { catalogOf, entitle, modelUrl, newAccount, newModel } from '../../models/models/catalogue.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type EmbeddingServer, startEmbeddings } from '../../support/embedding-server.ts';
import { gate } from '../../support/gate.ts';
import { keptLog } from '../../support/log-lines.ts';
import { stopAges } from '../../support/passing-time.ts';
import { caller, type Person, register } from '../../support/person.ts';
import { logQueries } from '../../support/query-log.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor, waitUntil } from '../../support/wait.ts';
import { getArtifact, newArtifact, putArtifact, shelfOf } from '../artifacts/artifacts.ts';

const KEY = 'sk-of-the-tests-only';
const log = keptLog();

let app: TestApp;
let provider: EmbeddingServer;
beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1' }, logger: log.logger });
});
afterAll(async () => {
  await app.close();
  expect(log.lines.join('\n')).not.toContain(KEY);
});
beforeEach(async () => {
  provider = await startEmbeddings();
});
afterEach(() => provider.close());

interface Embedding {
  account: string;
  model: string;
}

/** An embedding model at the provider, which the workspace may use. */
async function embedding(person: Person, given: object = {}): Promise<Embedding> {
  const { status, body } = await person.call<{ secret_id: string }>('POST', `/v1/orgs/${person.orgId}/secrets`, {
    name: `key-${Math.random()}`,
    secret_type: 'api_key',
    value: { api_key: KEY },
  });
  expect(status).toBe(201);
  const account = await newAccount(app, person, {
    provider_type: 'openai_compatible',
    credentials_ref: body.secret_id,
    base_url: provider.baseUrl,
    ...given,
  });
  const { logical_model_id: model } = await newModel(person, { model_type: 'embedding' }, [account]);
  await entitle(person, model);
  return { account, model };
}

const choose = (person: Person, model: string | null) => person.call('PUT', person.home, { embedding_model_id: model });

/** Somebody with a model and two artifacts of which words do not find the first by its synonym. */
async function setting() {
  const ann = await register(app, { name: 'ann' });
  const made = await embedding(ann);
  const car = await newArtifact(ann, { name: 'A', content: 'The car stands in the yard.', tags: ['yard'] });
  const soup = await newArtifact(ann, { name: 'B', content: 'Lentil soup without celery.' });
  await settled();
  return { ann, car, soup, ...made };
}

async function embedded() {
  const all = await setting();
  await choose(all.ann, all.model);
  await settled();
  return all;
}

/** Waits of some seconds: for a text that is not indexed yet, or for another job of the artifact. */
const GIVES_WAY = `key like 'embed %' and locked_at is null and attempts = 0 and run_at > now()
  and coalesce((payload ->> 'waits')::int, 0) = 0`;

/** When jobs that indexing adds have ended, too, and those that gave way to others. */
async function settled(): Promise<void> {
  await waitUntil(async () => {
    await app.jobsDone();
    const made = await app.database.pool.query(`update jobs._private_jobs set run_at = now() where ${GIVES_WAY}`);
    return made.rowCount === 0;
  });
}

/** The waiting jobs that embed, now. */
const makeDue = () =>
  app.database.pool.query(`update jobs._private_jobs set run_at = now() where key like 'embed %' and run_at > now()`);

interface Found {
  vectorUse: string;
  vectorReason: string | null;
  totalResults: number;
  results: { score: number; matchedChunk: string; artifact: { id: string; name: string } }[];
}

async function search(person: Person, input: Record<string, unknown>): Promise<Found> {
  const { data, errors } = await person.ask<{ queryArtifacts: Found }>(
    `query ($o: ID!, $w: ID!, $input: QueryArtifactsInput!) {
      queryArtifacts(orgId: $o, workspaceId: $w, namespaceId: "default", input: $input) {
        vectorUse vectorReason totalResults results { score matchedChunk artifact { id name } } } }`,
    { o: person.orgId, w: person.workspaceId, input },
  );
  expect(errors).toBeUndefined();
  return data.queryArtifacts;
}

const namesOf = ({ results }: Found) => results.map(({ artifact }) => artifact.name);

const vectorsOf = async (id: string) =>
  (
    await app.database.pool.query<{ model_id: string; model_name: string; components: number; length: number }>(
      `select model_id, model_name, cardinality(vector) as components,
        round((select sum(x * x) from unnest(vector) x)::numeric, 3)::float8 as length
        from artifact_chunk_vectors where artifact_id = $1`,
      [id],
    )
  ).rows;

test('a synonym that words do not find is found by an embedding model, and words are found as before', async () => {
  const { ann, car, model } = await setting();
  expect(await search(ann, { query: 'automobile' })).toEqual({
    vectorUse: 'none',
    vectorReason: null,
    totalResults: 0,
    results: [],
  });
  expect(provider.requests).toEqual([]);

  const { status, body } = await choose(ann, model);
  expect([status, 'embedding_model_id' in body]).toEqual([200, false]);
  await settled();
  expect((await getArtifact(ann, car.artifact_id)).body).toMatchObject({
    is_indexed: true,
    index_error: null,
    embedding_model_id: model,
  });
  const found = await search(ann, { query: 'automobile' });
  expect(found).toMatchObject({ vectorUse: 'used', vectorReason: null });
  expect(found.results[0]).toMatchObject({
    artifact: { id: car.artifact_id },
    matchedChunk: 'The car stands in the yard.',
  });
  expect(namesOf(await search(ann, { query: 'lentil' }))[0]).toBe('B');
  expect(await vectorsOf(car.artifact_id)).toEqual([
    { model_id: model, model_name: 'target-0', components: 512, length: 1 },
  ]);
  const [first] = provider.requests;
  expect([first!.method, first!.path, first!.headers.authorization]).toEqual([
    'POST',
    '/v1/embeddings',
    `Bearer ${KEY}`,
  ]);
  expect(JSON.parse(first!.body)).toMatchObject({ model: 'target-0', input: [expect.any(String)] });
  const rest = await ann.call<object>('POST', `${shelfOf(ann)}/query`, { query: 'automobile' });
  expect(Object.keys(rest.body).sort()).toEqual(['combined_context', 'query', 'results', 'total_results']);
});

test('the requests of the service count for the entitlement, and for the health of target and account', async () => {
  const { ann, account, model } = await embedded();
  const { body } = await ann.call<Record<string, unknown>>('GET', `${ann.home}/model-entitlements/${model}`);
  expect(body).toMatchObject({ request_count: 2, total_tokens: 14 });
  const accountOf = async () =>
    (await ann.call<Record<string, unknown>>('GET', `/v1/orgs/${ann.orgId}/provider-accounts/${account}`)).body;
  expect(await accountOf()).toMatchObject({ status: 'active', quota_policy: { current_month_requests: 2 } });
  provider.refuse = (response) => response.writeHead(401).end();
  for (let n = 0; n < 3; n += 1) expect(await search(ann, { query: 'x' })).toMatchObject({ vectorUse: 'unavailable' });
  expect(await accountOf()).toMatchObject({ status: 'error' });
  const asked = provider.requests.length;
  expect((await search(ann, { query: 'x' })).vectorReason).toContain('now: account error.');
  expect(provider.requests).toHaveLength(asked);
});

/** What the service uses of `pgvector`, made of what is there. */
const MAKE_EXTENSION = `create domain vector as real[];
  create function likeness_of(real[], real[]) returns float8 language sql immutable as
    'select -sum(x * y)::float8 from unnest($1, $2) u(x, y)';
  create operator <#> (leftarg = real[], rightarg = real[], function = likeness_of)`;
const DROP_EXTENSION = 'drop function likeness_of cascade; drop domain vector';

test('a database that lost the extension is searched without it', async () => {
  const { ann } = await embedded();
  const [make, drop, again] = process.env.TEST_HAS_PGVECTOR
    ? ['select 1', 'drop extension vector', 'create extension vector']
    : [MAKE_EXTENSION, DROP_EXTENSION, 'select 1'];
  const { pool } = app.database;
  await pool.query(make);
  // whether there is one is asked once by each process
  const other = await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
  const queries = logQueries(other.database.pool);
  const find = async () => {
    const sent = await queries.during(async () => {
      const found = await search(caller(other, ann), { query: 'automobile' });
      expect([found.vectorUse, found.results[0]?.artifact.name]).toEqual(['used', 'A']);
    });
    return sent.filter((text) => text.includes('bit_count(signs')).map((text) => text.includes('<#>'));
  };
  expect(await find()).toEqual([true]);
  await pool.query(drop);
  expect(await find()).toEqual([true, false]);
  expect(await find()).toEqual([false]);
  await pool.query(again);
});

test('without a model nothing is asked more: neither of the database nor of anybody else', async () => {
  const { ann, model } = await setting();
  stopAges(); // a slow run would outlast what access checks keep
  const queries = logQueries(app.database.pool);
  await search(ann, { query: 'car' });
  const plain = await queries.by(() => search(ann, { query: 'car' }));
  expect(plain.filter((text) => text.includes('artifact_chunk_vectors'))).toHaveLength(1);
  expect(plain.filter((text) => /provider_accounts|model_entitlements|insert into activity/.test(text))).toEqual([]);
  await choose(ann, model);
  await settled();
  await search(ann, { query: 'car' });
  const withModel = await queries.by(() => search(ann, { query: 'car' }));
  const many = Array.from({ length: 12 }, (_, n) => newArtifact(ann, { name: `more ${n}`, content: `A car, ${n}.` }));
  await Promise.all(many);
  await settled();
  await search(ann, { query: 'car' });
  const withMore = await queries.by(() => search(ann, { query: 'car', limit: 10 }));
  expect(withMore.length).toBeLessThanOrEqual(withModel.length);
  expect(withModel.length - plain.length).toBeLessThanOrEqual(21);
});

test('while the provider is away, words find; the artifact says why, and is embedded once it is back', async () => {
  const { ann, model } = await setting();
  provider.refuse = (response) => response.writeHead(503).end('secret details');
  await choose(ann, model);
  await waitFor(async () => {
    const { body } = await ann.call<{ artifacts: { index_error: string | null }[] }>('GET', shelfOf(ann));
    expect(body.artifacts.map(({ index_error }) => index_error)).toEqual([
      expect.stringMatching(/^Only the words are indexed, without embeddings\. /),
      expect.stringMatching(/^Only the words are indexed, without embeddings\. /),
    ]);
  });
  expect(namesOf(await search(ann, { query: 'car' }))).toEqual(['A']);
  provider.refuse = null;
  await app.database.pool.query(`update model_targets set last_failure = now() - interval '1 hour'`);
  await waitFor(async () => {
    await makeDue();
    await settled();
    const { body } = await ann.call<{ artifacts: object[] }>('GET', shelfOf(ann));
    const whole = { is_indexed: true, index_error: null, embedding_model_id: model };
    expect(body.artifacts).toMatchObject([whole, whole]);
  });
  expect(namesOf(await search(ann, { query: 'automobile' }))[0]).toBe('A');

  // a search does not wait for a provider that fails
  provider.refuse = (response) => response.writeHead(500).end();
  expect(await search(ann, { query: 'car' })).toMatchObject({
    vectorUse: 'unavailable',
    vectorReason: 'The provider answered with the status 500.',
    results: [{ artifact: { name: 'A' } }],
  });
  provider.refuse = (response) => response.end('{"data":[{"embedding":[1,"x"]}]}');
  expect(await search(ann, { query: 'car' })).toMatchObject({
    vectorReason: 'The provider did not answer with one vector for each text.',
  });
});

test('what comes back after the workspace chose no model any longer is not kept', async () => {
  const { ann, car, model } = await setting();
  const { opened, open: release } = gate();
  provider.held = opened;
  await choose(ann, model);
  await waitFor(() => expect(provider.requests.length).toBeGreaterThan(0));
  expect((await choose(ann, null)).status).toBe(200);
  release();
  await settled();
  expect(await vectorsOf(car.artifact_id)).toEqual([]);
  expect((await getArtifact(ann, car.artifact_id)).body).toMatchObject({ embedding_model_id: null, index_error: null });
});

test('a provider that says when to come back is asked no earlier', async () => {
  const { ann, car, model } = await setting();
  provider.refuse = (response) => response.writeHead(429, { 'retry-after': '900' }).end();
  await choose(ann, model);
  await waitFor(async () => {
    const { rows } = await app.database.pool.query<{ late: boolean }>(
      `select run_at > now() + interval '800 seconds' as late from jobs._private_jobs where key = $1`,
      [`embed ${car.artifact_id}`],
    );
    expect(rows).toEqual([{ late: true }]);
  });
});

test('a version whose provider fails late does not take the place of the one after it', async () => {
  const { ann, car, model } = await embedded();
  const { opened, open: release } = gate();
  provider.held = opened;
  const sent = (text: string) => provider.texts().filter((one) => one.includes(text)).length;
  await putArtifact(ann, car.artifact_id, { content: 'The second car.' });
  await waitFor(() => expect(sent('second')).toBe(1));
  await putArtifact(ann, car.artifact_id, { content: 'The third car.' });
  const job = async () => {
    const { rows } = await app.database.pool.query<{ version: string }>(
      `select payload ->> 'version' as version from jobs._private_jobs where key = $1 and locked_at is null`,
      [`embed ${car.artifact_id}`],
    );
    return rows.map(({ version }) => version);
  };
  // it has begun as well, and waits for the first
  await waitFor(async () => expect(await job()).toEqual(['3']));
  provider.refuse = (response) => response.writeHead(503).end();
  provider.held = null;
  release();
  const running = `select 1 from jobs._private_jobs where locked_at is not null and payload ->> 'artifactId' = $1`;
  await waitFor(async () => expect((await app.database.pool.query(running, [car.artifact_id])).rows).toEqual([]));
  provider.refuse = null;
  await app.database.pool.query(`update model_targets set last_failure = now() - interval '1 hour'`);
  await waitFor(async () => {
    await makeDue();
    expect((await getArtifact(ann, car.artifact_id)).body.embedding_model_id).toBe(model);
  });
  expect(sent('third')).toBeGreaterThan(0);
});

test('a model that is chosen while a text is indexed embeds it as well', async () => {
  const ann = await register(app, { name: 'ann' });
  const { model } = await embedding(ann);
  const { artifact_id: id } = await newArtifact(ann, { content: 'The car stands in the yard.' });
  await choose(ann, model);
  await waitFor(async () => {
    await makeDue();
    expect((await getArtifact(ann, id)).body.embedding_model_id).toBe(model);
  });
});

test('a long text is embedded in several requests, and what was embedded is not sent again', async () => {
  const ann = await register(app, { name: 'ann' });
  const { model } = await embedding(ann);
  await choose(ann, model);
  const words = ['car', 'soup', 'yard', 'lentil', 'celery', 'stand', 'bread'];
  const content = Array.from({ length: 40_000 }, (_, n) => `${words[n % 7]}${n % 91}`).join(' ');
  // from before there is anything to embed: the first request may be sent before the caller has its answer
  provider.refuse = (response) => {
    provider.refuse = null;
    response.writeHead(500).end();
  };
  const { artifact_id: id } = await newArtifact(ann, { content });
  await waitFor(async () => {
    await makeDue();
    expect((await getArtifact(ann, id)).body.embedding_model_id).toBe(model);
  });
  const { chunk_count: chunks } = (await getArtifact(ann, id)).body;
  expect(chunks).toBeGreaterThan(64);
  expect(await vectorsOf(id)).toHaveLength(chunks);
  const sizes = provider.requests.map(({ body }) => (JSON.parse(body) as { input: string[] }).input.length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(64);
  const [refused, ...others] = sizes;
  expect(others.reduce((sum, size) => sum + size, 0)).toBe(chunks);
  expect(refused).toBe(others[0]);
});

test('two jobs of an artifact do not send its texts twice, on whichever nodes they run', async () => {
  const { ann, car, model } = await setting();
  await app.another({ OUTBOUND_ALLOW: '127.0.0.1' });
  const { opened, open: release } = gate();
  provider.held = opened;
  await choose(ann, model);
  const { pool } = app.database;
  const sent = () => provider.texts().filter((text) => text.includes('car'));
  await waitFor(() => expect(sent()).toHaveLength(1));
  const payload = JSON.stringify({ artifactId: car.artifact_id, version: 1 });
  await pool.query(`select jobs.add_job('embed_artifact', $1::json) from generate_series(1, 8)`, [payload]);
  // all of them have begun, and wait now as one for that which runs
  await waitFor(async () => {
    const { rows } = await pool.query<{ waits: boolean }>(
      `select locked_at is null and run_at > now() as waits from jobs._private_jobs
        where payload::jsonb ->> 'artifactId' = $1 order by 1`,
      [car.artifact_id],
    );
    expect(rows).toEqual([{ waits: false }, { waits: true }]);
  });
  release();
  await waitFor(async () => {
    await makeDue();
    const { rows } = await pool.query(`select 1 from jobs._private_jobs where payload::jsonb ->> 'artifactId' = $1`, [
      car.artifact_id,
    ]);
    expect(rows).toEqual([]);
  });
  expect(sent()).toHaveLength(1);
  expect(await vectorsOf(car.artifact_id)).toHaveLength(1);
});

test('of several accounts that serve a model, the next one answers for one that fails', async () => {
  const { ann, account, model } = await embedded();
  const away = await newAccount(app, ann, {
    provider_type: 'openai_compatible',
    credentials_ref: 'none',
    base_url: 'http://127.0.0.1:9/v1',
  });
  const targets = [
    { provider_account_id: away, model_name: 'target-0', priority: 1 },
    { provider_account_id: account, model_name: 'target-0', priority: 2 },
    { provider_account_id: account, model_name: 'something-else', priority: 3 },
  ];
  const { status } = await ann.call('PATCH', modelUrl(ann, model), { targets });
  expect(status).toBe(200);
  await settled();
  const asked = provider.requests.length;
  const found = await search(ann, { query: 'automobile' });
  expect([found.vectorUse, namesOf(found)[0]]).toEqual(['used', 'A']);
  expect(provider.requests).toHaveLength(asked + 1);
});

test('a model that requires an audit log is asked only after its record is written', async () => {
  const ann = await register(app, { name: 'ann' });
  const { model } = await embedding(ann);
  await ann.call('PATCH', modelUrl(ann, model), { constraints: { require_audit_log: true } });
  await newArtifact(ann, { content: 'The car stands in the yard.' });
  await settled();
  await choose(ann, model);
  await settled();
  const records = await app.database.prisma.activity.findMany({
    where: { orgId: ann.orgId, resourceType: 'model', resourceId: model, principalType: 'system' },
    orderBy: { timestamp: 'asc' },
  });
  expect(records.map(({ action, metadata }) => [action, (metadata as { purpose?: string }).purpose])).toEqual([
    ['read', 'embedding'],
    ['execute', 'embedding'],
  ]);
  expect(JSON.stringify(records)).not.toContain(KEY);
});

test('another model, or another name at the provider, embeds everything again; none removes the vectors', async () => {
  const { ann, car, account, model } = await embedded();
  const { logical_model_id: other } = await newModel(ann, { model_type: 'embedding' }, [
    { provider_account_id: account, model_name: 'second' },
  ]);
  await entitle(ann, other);
  await choose(ann, other);
  await settled();
  expect(await vectorsOf(car.artifact_id)).toMatchObject([{ model_id: other, model_name: 'second' }]);
  expect((await getArtifact(ann, car.artifact_id)).body.embedding_model_id).toBe(other);
  expect(namesOf(await search(ann, { query: 'automobile' }))[0]).toBe('A');

  const targets = [{ provider_account_id: account, model_name: 'third' }];
  expect((await ann.call('PATCH', modelUrl(ann, other), { targets })).status).toBe(200);
  await settled();
  expect(await vectorsOf(car.artifact_id)).toMatchObject([{ model_id: other, model_name: 'third' }]);
  expect(namesOf(await search(ann, { query: 'automobile' }))[0]).toBe('A');
  expect(model).not.toBe(other);

  await choose(ann, null);
  await settled();
  expect(await vectorsOf(car.artifact_id)).toEqual([]);
  expect((await getArtifact(ann, car.artifact_id)).body).toMatchObject({ embedding_model_id: null, index_error: null });
  expect(await search(ann, { query: 'automobile' })).toMatchObject({ vectorUse: 'none', results: [] });
});

test('vectors follow the text: a new version, a deletion, a restoration, another language', async () => {
  const { ann, car } = await embedded();
  const id = car.artifact_id;
  await putArtifact(ann, id, { content: 'The doctor is in.' });
  await settled();
  expect((await search(ann, { query: 'physician' })).results[0]!.artifact.id).toBe(id);
  expect(await vectorsOf(id)).toHaveLength(1);
  await putArtifact(ann, id, { language: 'de' });
  await settled();
  await waitFor(async () => expect(await vectorsOf(id)).toHaveLength(1));
  await ann.call('DELETE', `${shelfOf(ann)}/${id}`);
  expect(await vectorsOf(id)).toEqual([]);
  expect(namesOf(await search(ann, { query: 'physician' }))).not.toContain('A');
  const { errors } = await ann.ask(
    `mutation ($o: ID!, $w: ID!, $id: ID!) {
      restoreArtifact(orgId: $o, workspaceId: $w, namespaceId: "default", id: $id) { id } }`,
    { o: ann.orgId, w: ann.workspaceId, id },
  );
  expect(errors).toBeUndefined();
  await settled();
  expect((await search(ann, { query: 'physician' })).results[0]!.artifact.id).toBe(id);
});

test('conditions, restricted tokens and operators hold for vectors as for words', async () => {
  const { ann } = await embedded();
  expect(namesOf(await search(ann, { query: 'automobile', tags: ['yard'] }))).toEqual(['A']);
  expect(namesOf(await search(ann, { query: 'automobile', tags: ['other'] }))).toEqual([]);
  expect(namesOf(await search(ann, { query: 'automobile', artifactTypes: ['image'] }))).toEqual([]);
  expect(namesOf(await search(ann, { query: 'automobile', createdTo: '2001-01-01T00:00:00Z' }))).toEqual([]);
  expect(namesOf(await search(ann, { query: 'automobile', minScore: 0.999 }))).toEqual([]);
  expect(await search(ann, { query: 'automobile -yard' })).toMatchObject({ vectorUse: 'none', results: [] });

  const { body: space } = await ann.call<{ namespace_id: string }>('POST', `${ann.home}/namespaces`, { name: 'Other' });
  await newArtifact(ann, { name: 'C', content: 'A car.' }, `${ann.home}/namespaces/${space.namespace_id}/artifacts`);
  await settled();
  const token = await issueToken(app, ann, {
    scopes: ['read'],
    workspace_ids: [ann.workspaceId],
    namespace_ids: [space.namespace_id],
  });
  const response = await app.server.inject({
    method: 'POST',
    url: `${ann.home}/artifacts/query`,
    payload: { query: 'automobile' },
    headers: token.headers,
  });
  const { results } = response.json<{ results: { artifact: { name: string } }[] }>();
  expect(results.map(({ artifact }) => artifact.name)).toEqual(['C']);
});

test('nobody finds what others have embedded, whatever their models are called', async () => {
  const { model, ann } = await embedded();
  const bob = await register(app, { name: 'bob' });
  const account = await newAccount(app, bob, {
    provider_type: 'openai_compatible',
    credentials_ref: 'none',
    base_url: provider.baseUrl,
  });
  await newModel(bob, { model_type: 'embedding', logical_model_id: model }, [account]);
  await entitle(bob, model);
  await choose(bob, model);
  await newArtifact(bob, { name: 'of bob', content: 'A loaf of rye.' });
  await settled();
  expect(namesOf(await search(bob, { query: 'automobile' }))).not.toContain('A');
  expect(namesOf(await search(bob, { query: 'baguette' }))).toEqual(['of bob']);
  expect(namesOf(await search(ann, { query: 'baguette' }))).not.toContain('of bob');
  expect(provider.requests.at(-1)!.headers.authorization).toBe(`Bearer ${KEY}`);
  expect(provider.requests.filter(({ headers }) => headers.authorization === undefined).length).toBeGreaterThan(0);
});

test('a wide search asks one model, and says what it left to words', async () => {
  const { ann, account } = await embedded();
  const { body } = await ann.call<{ workspace_id: string }>('POST', `/v1/orgs/${ann.orgId}/workspaces`, {
    organization_id: ann.orgId,
    name: 'Second',
  });
  const second: Person = { ...ann, home: `/v1/orgs/${ann.orgId}/workspaces/${body.workspace_id}` };
  const { logical_model_id: other } = await newModel(ann, { model_type: 'embedding' }, [account]);
  await entitle(second, other);
  await choose(second, other);
  await newArtifact(second, { name: 'far', content: 'A car far away.' });
  await settled();
  const { data } = await ann.ask<{ queryOrganizationArtifacts: Found }>(
    `query ($o: ID!) { queryOrganizationArtifacts(orgId: $o, input: { query: "yard" }) {
      vectorUse vectorReason totalResults results { score matchedChunk artifact { id name } } } }`,
    { o: ann.orgId },
  );
  expect(data.queryOrganizationArtifacts).toMatchObject({
    vectorUse: 'partial',
    vectorReason: 'Some namespaces were embedded with other models.',
  });
  expect(namesOf(data.queryOrganizationArtifacts)).toContain('A');
});

test('what the service does not call is not called: the artifact says why, until the account is mended', async () => {
  const ann = await register(app, { name: 'ann' });
  const { account, model } = await embedding(ann, { base_url: 'http://10.1.2.3:11434/v1' });
  const { artifact_id: id } = await newArtifact(ann, { content: 'The car stands in the yard.' });
  await settled();
  await choose(ann, model);
  await settled();
  expect((await getArtifact(ann, id)).body).toMatchObject({
    is_indexed: true,
    embedding_model_id: null,
    index_error:
      'Only the words are indexed, without embeddings. ' +
      'The target has an address that this service does not call. See its setting OUTBOUND_ALLOW.',
  });
  expect(namesOf(await search(ann, { query: 'yard' }))).toEqual(['Plan']);
  const mended = { base_url: `${provider.baseUrl}/` };
  expect((await ann.call('PATCH', `/v1/orgs/${ann.orgId}/provider-accounts/${account}`, mended)).status).toBe(200);
  await settled();
  expect((await getArtifact(ann, id)).body).toMatchObject({ embedding_model_id: model, index_error: null });
});

test('a workspace embeds with what it is entitled to, and waits for that', async () => {
  const ann = await register(app, { name: 'ann' });
  const account = await newAccount(app, ann, {
    provider_type: 'openai_compatible',
    credentials_ref: 'none',
    base_url: provider.baseUrl,
  });
  const { logical_model_id: model } = await newModel(ann, { model_type: 'embedding' }, [account]);
  const { artifact_id: id } = await newArtifact(ann, { content: 'The car stands in the yard.' });
  await settled();
  await choose(ann, model);
  await settled();
  expect((await getArtifact(ann, id)).body.index_error).toContain(`has no entitlement for the model '${model}'`);
  expect(provider.requests).toEqual([]);
  await entitle(ann, model, { allowed_purposes: ['chat'] });
  await settled();
  expect((await getArtifact(ann, id)).body.index_error).toContain("does not allow the purpose 'embedding'");
  await ann.call('PATCH', `${ann.home}/model-entitlements/${model}`, { allowed_purposes: ['embedding'] });
  await settled();
  expect((await getArtifact(ann, id)).body).toMatchObject({ embedding_model_id: model, index_error: null });
});

test('a workspace chooses an embedding model of its organization, which then is in use', async () => {
  const ann = await register(app, { name: 'ann' });
  const { model } = await embedding(ann);
  const { logical_model_id: chat } = await newModel(ann);
  const message = async (id: string) => {
    const { status, body } = await choose(ann, id);
    return [status, (body as { details?: { errors?: { msg: string }[] } }).details ?? body];
  };
  expect((await message('nothing'))[0]).toBe(422);
  expect(JSON.stringify(await message('nothing'))).toContain("there is no model 'nothing' in the organization");
  expect(JSON.stringify(await message(chat))).toContain(`the model '${chat}' is of the type 'chat'`);
  await choose(ann, model);
  const { data } = await ann.ask(`query ($o: ID!, $w: ID!) { workspace(orgId: $o, id: $w) { embeddingModelId } }`, {
    o: ann.orgId,
    w: ann.workspaceId,
  });
  expect(data).toEqual({ workspace: { embeddingModelId: model } });
  const refused = await ann.call('DELETE', modelUrl(ann, model));
  expect([refused.status, refused.body]).toMatchObject([
    409,
    { details: { reason: 'in_use', references: [{ resource_type: 'workspace', resource_id: ann.workspaceId }] } },
  ]);
  expect((await ann.call('DELETE', `${catalogOf(ann)}/${model}?force=true`)).status).toBe(204);
});

test('only who may see the value of a secret decides where the service sends it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { account } = await embedding(ann);
  const [secret] = (await ann.call<{ secrets: { secret_id: string }[] }>('GET', `/v1/orgs/${ann.orgId}/secrets`)).body
    .secrets;
  const { headers } = await issueToken(app, ann, {
    permissions: ['provider_account:read', 'provider_account:create', 'provider_account:update', 'secret:read'],
  });
  const call = (method: 'POST' | 'PATCH', url: string, payload: object) =>
    app.server.inject({ method, url, payload, headers });
  const accounts = `/v1/orgs/${ann.orgId}/provider-accounts`;
  const stolen = { provider_type: 'openai_compatible', base_url: 'https://elsewhere.example.com/v1' };
  const refused = { error: 'FORBIDDEN', details: { required_permission: 'secret:reveal' } };
  for (const answer of [
    await call('POST', accounts, { name: 'Mine', credentials_ref: secret!.secret_id, ...stolen }),
    await call('PATCH', `${accounts}/${account}`, { base_url: stolen.base_url }),
    await call('PATCH', `${accounts}/${account}`, { credentials_ref: secret!.secret_id }),
    await call('PATCH', `${accounts}/${account}`, { provider_type: 'openai_compatible' }),
  ])
    expect([answer.statusCode, answer.json()]).toMatchObject([403, refused]);
  // what sends nothing anywhere is theirs to do
  expect((await call('PATCH', `${accounts}/${account}`, { name: 'Renamed' })).statusCode).toBe(200);
  const unsent = { name: 'Unsent', provider_type: 'openai', credentials_ref: secret!.secret_id };
  expect((await call('POST', accounts, unsent)).statusCode).toBe(201);
});

test('an account has the address of an API, and nothing else in it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { account } = await embedding(ann);
  const at = `/v1/orgs/${ann.orgId}/provider-accounts/${account}`;
  for (const base_url of ['https://a:b@models.example.com', 'https://models.example.com/v1?key=1', 'ftp://a.example'])
    expect((await ann.call('PATCH', at, { base_url })).status).toBe(422);
  const { data } = await ann.ask(`query ($o: ID!, $id: ID!) { providerAccount(orgId: $o, id: $id) { baseUrl } }`, {
    o: ann.orgId,
    id: account,
  });
  expect(data).toEqual({ providerAccount: { baseUrl: provider.baseUrl } });
  expect('base_url' in (await ann.call('GET', at)).body).toBe(false);
});
