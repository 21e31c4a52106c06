import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { FORM_TYPE, formOf } from '../../support/form.ts';
import { caller, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';

/**
 * What holds of writers at once, in every way that bytes come, on two nodes:
 * 1. at every moment, what is counted is what the rows say, and at most the limit;
 * 2. a refusal is true: what was used then, and what was asked for, is more than the limit;
 * 3. while nothing is freed, nobody is refused who would have fitted beside all that was taken in the end, up to what
 *    forms reserve for their other parts while they arrive;
 * 4. in the end, no bytes are reserved or left of what was refused, and the store has what the rows say.
 */
const RUNS = 12;
/** What a form of these tests has beside its file, at most. */
const FORM_BYTES = 600;

let nodes: TestApp[];
let ann: Person;
beforeAll(async () => {
  const app = await startTestApp({ env: { RATE_LIMIT_RPS: '0' } });
  nodes = [app, await app.another({ RATE_LIMIT_RPS: '0' })];
  ann = await register(app, { name: 'ann' });
});
afterAll(() => nodes[0]!.close());

type Way = 'text' | 'form' | 'ticket' | 'stream' | 'new text' | 'new file' | 'free';
interface Step {
  way: Way;
  bytes: number;
  node: number;
}
interface Outcome extends Step {
  status: number;
  details: { used_bytes: number; limit_bytes: number; requested_bytes: number; reason: string };
}

const steps = (ways: readonly Way[]) =>
  fc.array(
    fc.record({
      way: fc.constantFrom(...ways),
      bytes: fc.oneof(fc.constantFrom(0, 1), fc.nat(30_000)),
      node: fc.nat(1),
    }),
    { minLength: 4, maxLength: 16 },
  );
const WAYS = ['text', 'form', 'ticket', 'stream', 'new text', 'new file'] as const;

interface Place {
  home: string;
  workspaceId: string;
  /** An artifact of each kind, that gets new versions. */
  roots: { text: string; file: string };
  /** Namespaces with something in them. */
  spare: string[];
}

const shelf = (home: string, namespace = 'default') => `${home}/namespaces/${namespace}/artifacts`;

async function newPlace(): Promise<Place> {
  const url = `/v1/orgs/${ann.orgId}/workspaces`;
  const made = await ann.call<{ workspace_id: string }>('POST', url, { organization_id: ann.orgId, name: 'w' });
  const workspaceId = made.body.workspace_id;
  const home = `${url}/${workspaceId}`;
  const text = await ann.call<{ artifact_id: string }>('POST', shelf(home), { name: 'a', content: 'a' });
  const file = await send(nodes[0]!, shelf(home), 1);
  const spare: string[] = [];
  for (let n = 0; n < 3; n++) {
    const slug = `spare-${n}`;
    await ann.call('POST', `${home}/namespaces`, { name: slug, slug });
    const { body } = await ann.call<{ namespaces: { namespace_id: string; slug: string }[] }>(
      'GET',
      `${home}/namespaces`,
    );
    const id = body.namespaces.find((it) => it.slug === slug)!.namespace_id;
    await ann.call('POST', shelf(home, id), { name: 'a', content: 'x'.repeat(10_000) });
    await send(nodes[0]!, shelf(home, id), 5_000);
    spare.push(id);
  }
  return { home, workspaceId, roots: { text: text.body.artifact_id, file: file.json().artifact_id }, spare };
}

const send = (app: TestApp, url: string, bytes: number, root?: string) =>
  app.server.inject({
    method: 'POST',
    url: `${url}/upload`,
    headers: { ...ann.headers, 'content-type': FORM_TYPE },
    payload: formOf([
      ['name', 'a'],
      ...(root ? [['root_artifact_id', root] as const] : []),
      ['file', { name: 'a.bin', content: Buffer.alloc(bytes, 1) }],
    ]),
  });

async function put(app: TestApp, { workspaceId }: Place, content: Buffer | Readable) {
  const place = `orgId: "${ann.orgId}", workspaceId: "${workspaceId}", namespaceId: "default"`;
  const person = caller(app, ann);
  const create = `mutation { createUpload(${place}, input: { fileName: "a.bin" }) { file url } }`;
  const { data } = await person.ask<{ createUpload: { file: string; url: string } }>(create);
  const { file, url } = data.createUpload;
  const answer = await app.server.inject({ method: 'PUT', url: new URL(url).pathname, payload: content });
  if (answer.statusCode !== 200) return answer;
  const finish = `mutation { finishUpload(${place}, input: { file: "${file}", name: "a" }) { id } }`;
  expect((await person.ask(finish)).errors).toBeUndefined();
  return answer;
}

/** @param at the same text again would be no new version */
async function run(place: Place, step: Step, at: number): Promise<Outcome> {
  const { way, bytes } = step;
  const app = nodes[step.node]!;
  const person = caller(app, ann);
  const content = String.fromCharCode('b'.charCodeAt(0) + at).repeat(bytes);
  const asked = {
    text: () => person.call('POST', shelf(place.home), { name: 'a', content }),
    'new text': () => person.call('PUT', `${shelf(place.home)}/${place.roots.text}`, { content }),
    form: () => send(app, shelf(place.home), bytes),
    'new file': () => send(app, shelf(place.home), bytes, place.roots.file),
    ticket: () => put(app, place, Buffer.alloc(bytes, 1)),
    stream: () => put(app, place, Readable.from(bytes === 0 ? [] : [Buffer.alloc(bytes, 1)])),
    free: () => {
      const id = place.spare.pop();
      return id ? person.call('DELETE', `${place.home}/namespaces/${id}`) : person.call('GET', place.home);
    },
  };
  const answer = await asked[way]();
  const [status, body] =
    'statusCode' in answer ? [answer.statusCode, answer.json()] : [answer.status, answer.body as object | null];
  return { ...step, status, details: (body as { details?: Outcome['details'] } | null)?.details as Outcome['details'] };
}

/** What is counted, and what the rows say, at one moment. */
async function held(workspaceId: string): Promise<{ counted: number; rows: number }> {
  const { rows } = await nodes[0]!.database.pool.query<{ counted: number; rows: number }>(
    `select (select coalesce(sum(n), 0) from place_counts where place_id = $1 and counter = 'storage.bytes')::float8
        as counted,
      ((select coalesce(sum(size_bytes), 0) from artifacts where workspace_id = $1 and file_id is null)
        + (select coalesce(sum(coalesce(size_bytes, reserved_bytes)), 0) from files where workspace_id = $1))::float8
        as rows`,
    [workspaceId],
  );
  return rows[0]!;
}

/** Runs steps at once, while somebody looks all the time. */
async function runAll(place: Place, all: readonly Step[], limit: number): Promise<Outcome[]> {
  let isOver = false;
  const watch = (async () => {
    while (!isOver) {
      const { counted, rows } = await held(place.workspaceId);
      expect(counted).toBe(rows);
      expect(counted).toBeLessThanOrEqual(limit);
    }
  })();
  const outcomes = await Promise.all(all.map((step, at) => run(place, step, at))).finally(() => {
    isOver = true;
  });
  await watch;
  for (const { way, bytes, status, details } of outcomes) {
    if (way === 'free' || status < 300) continue;
    expect([status, details?.reason]).toEqual([409, 'storage_quota_exceeded']);
    const { used_bytes, limit_bytes, requested_bytes } = details;
    expect([limit_bytes, requested_bytes]).toEqual([limit, bytes]);
    expect(used_bytes).toBeLessThanOrEqual(limit);
    expect(used_bytes + requested_bytes).toBeGreaterThan(limit);
  }
  return outcomes;
}

/** Nothing is reserved, and nothing is left of what was refused or freed. @returns what is used */
async function settled(place: Place): Promise<number> {
  const { files, storage } = nodes[0]!.services;
  await files.removeMarked();
  const { rows } = await nodes[0]!.database.pool.query<{ key: string; state: string }>(
    'select storage_key as key, state from files where workspace_id = $1 order by 1',
    [place.workspaceId],
  );
  expect(rows.filter(({ state }) => state !== 'kept')).toEqual([]);
  const keys: string[] = [];
  for await (const { key } of storage.list()) if (key.startsWith(place.workspaceId.toLowerCase())) keys.push(key);
  expect(keys.sort()).toEqual(rows.map(({ key }) => key));
  const { counted, rows: said } = await held(place.workspaceId);
  expect(counted).toBe(said);
  return counted;
}

it('uploads at once, and what frees room meanwhile, never hold more than the limit', async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 120_000 }),
    steps(WAYS),
    steps([...WAYS, 'free', 'free']),
    async (room, uploads, more) => {
      const place = await newPlace();
      const begun = await settled(place);
      const limit = begun + room;
      await ann.call('PUT', `${place.home}/storage`, { limit_bytes: limit });
      const outcomes = await runAll(place, uploads, limit);
      const used = await settled(place);
      const taken = outcomes.filter(({ status }) => status < 300);
      expect(used - begun).toBe(taken.reduce((sum, { bytes }) => sum + bytes, 0));
      const forms = outcomes.filter(({ way }) => way === 'form' || way === 'new file').length;
      for (const { status, bytes } of outcomes)
        if (status === 409) expect(used + bytes + forms * FORM_BYTES).toBeGreaterThan(limit);
      await runAll(place, more, limit);
      expect(await settled(place)).toBeLessThanOrEqual(limit);
    },
  );
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
});

const PAIRS = WAYS.flatMap((one) => WAYS.map((other) => [one, other] as const)).filter(
  // two new versions of one text wait for each other anyway
  ([one, other]) => one <= other && (one !== 'new text' || other !== 'new text'),
);

it.each(PAIRS)(
  'two that fit alone and not together are never both taken, each after its check: %s, %s',
  async (...ways) => {
    const place = await newPlace();
    const limit = (await settled(place)) + 10_000;
    await ann.call('PUT', `${place.home}/storage`, { limit_bytes: limit });
    // indexing writes rows of artifacts too
    await nodes[0]!.jobsDone();
    const blocker = await nodes[0]!.database.pool.connect();
    try {
      // nobody can write what is counted, so both are past their check, or wait for it
      await blocker.query('begin; lock table place_counts in share mode');
      const both = Promise.all(ways.map((way, node) => run(place, { way, bytes: 6_000, node }, node)));
      await waitFor(async () => {
        const waiting = await blocker.query(`select 1 from pg_locks where not granted
        and database = (select oid from pg_database where datname = current_database())`);
        expect(waiting.rowCount).toBeGreaterThanOrEqual(2);
      });
      await blocker.query('commit');
      const outcomes = await both;
      expect(
        outcomes.filter(({ status }) => status < 300),
        JSON.stringify(outcomes),
      ).toHaveLength(1);
    } finally {
      blocker.release();
    }
    expect(await settled(place)).toBe(limit - 4_000);
  },
);
