// direct connection: a statement is prepared in one session and explained in the same
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RANK, rankingValues } from '../../../src/knowledge/indexing/text-ranking.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { type Person, register } from '../../support/person.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';

/** Chunks that a search ranks, and as many labels. */
const FOUND = 20_000;
const RANKED = 2_000;
/** Artifacts of the others, each with a chunk, in which the same words are. */
const OTHERS = FOUND + 500;
const OWN = 40;

let app: TestApp;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
  [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  await copies(await made(ann), OWN);
  await copies(await made(bob), OTHERS);
  await fill(
    app,
    `insert into artifact_words (org_id, namespace_id, word)
      select org_id, namespace_id, 'w' || md5(n::text) from (select * from artifact_words where org_id = $1 limit 1) w,
        generate_series(1, ${OTHERS}) n`,
    [bob.orgId],
  );
  await fill(app, 'vacuum analyze artifacts, artifact_chunks, artifact_words');
});
afterAll(() => app.close());

async function made(of: Person): Promise<string> {
  const url = `${of.home}/namespaces/default/artifacts`;
  const { body } = await of.call<{ artifact_id: string }>('POST', url, {
    name: 'Calibration of sensors',
    content: 'Humidity drifts by two percent a year.',
  });
  await app.jobsDone();
  return body.artifact_id;
}

/** Copies an artifact with its chunk. */
async function copies(id: string, count: number): Promise<void> {
  const { pool } = app.database;
  for (const [table, own] of [
    ['artifacts', ['id', 'root_artifact_id']],
    ['artifact_chunks', ['artifact_id']],
  ] as const) {
    const { rows } = await pool.query<{ columns: string }>(
      `select string_agg(quote_ident(column_name), ', ') as columns from information_schema.columns
        where table_name = $1 and column_name <> all($2) and is_generated = 'NEVER'`,
      [table, own],
    );
    const { columns } = rows[0]!;
    const ids = own.map(() => `left($1, 20) || lpad(n::text, 10, '0')`);
    await fill(
      app,
      `insert into ${table} (${own.join(', ')}, ${columns}) select ${ids.join(', ')}, ${columns}
        from ${table}, generate_series(1, ${count}) n where ${own[0]} = $1`,
      [id],
    );
  }
}

/** What the ranking reads for somebody. */
async function scansOf({ orgId }: Person, query: string): Promise<Plan[]> {
  const { id } = await app.database.prisma.namespace.findFirstOrThrow({ where: { orgId, slug: 'default' } });
  const values = rankingValues({ orgId, namespaceIds: [id] }, asked(query))
    .map(literal)
    .join(', ');
  const client = await app.database.pool.connect();
  try {
    // the plan for all values, as the service has it
    await client.query('set plan_cache_mode = force_generic_plan');
    await client.query(`prepare rank as ${RANK}`);
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, format json) execute rank(${values})`,
    );
    return readingNodes(rows[0]!['QUERY PLAN'][0].Plan);
  } finally {
    client.release(true);
  }
}

const literal = (value: unknown): string => {
  if (value === null) return 'null';
  return pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : `${value as string | number | boolean}`);
};

/** The nodes of a plan that read a table or an index. */
const readingNodes = (plan: Plan): Plan[] =>
  nodesOf(plan).filter(
    // the languages that PostgreSQL knows are thirty rows
    (node) => node['Relation Name'] !== 'pg_ts_config' && (node['Relation Name'] ?? node['Index Name']),
  );

const asked = (text: string) => ({
  text,
  conditions: {},
  threadId: null,
  minScore: 0,
  includeExpired: false,
  limit: 10,
});

const readBy = (scan: Plan): number =>
  (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0) + (scan['Rows Removed by Index Recheck'] ?? 0)) *
  scan['Actual Loops'];

const queries = ['humidity of sensors', 'humidty of sensros', 'nothing like it', 'two percent a year'];

test.each(queries)('%s: reads what is of the namespace, whatever others have', async (query) => {
  const scans = await scansOf(ann, query);
  expect(scans.length).toBeGreaterThan(0);
  for (const scan of scans) {
    expect(scan['Node Type'], JSON.stringify(scan)).not.toBe('Seq Scan');
    // by the namespace, or rows that were found by it
    if (scan['Index Name']) expect(scan['Index Cond']).toMatch(/namespace_id|\bid =|artifact_id =/);
  }
  for (const scan of scans) expect(readBy(scan), JSON.stringify(scan)).toBeLessThanOrEqual((OWN + 1) * 5);
});

test.each(queries)('%s: reads a bounded number of rows of a namespace with many', async (query) => {
  const counted = (await scansOf(bob, query)).filter((scan) => scan['Relation Name'] === 'artifact_chunks');
  // what ranks reads each row once, and what counts stops where a word is common, for each of at most four words
  for (const scan of counted) expect(readBy(scan), JSON.stringify(scan)).toBeLessThanOrEqual(OTHERS * 2);
});

interface Found {
  results: { score: number; matched_chunk: string }[];
  total_results: number;
}

const ask = (query: string) =>
  bob.call<Found>('POST', `${bob.home}/namespaces/default/artifacts/query`, { query, limit: 50 });

test('of a word that more chunks have than are ranked, so many are found, and the answer is whole', async () => {
  // not in the labels
  const { status, body } = await ask('humidity');
  expect([status, body.total_results, body.results.length]).toEqual([200, RANKED, 50]);
  for (const { score, matched_chunk } of body.results) {
    expect(score).toBeGreaterThan(0);
    expect(matched_chunk).toBe('Humidity drifts by two percent a year.');
  }
});

test('a rare word beside it is found, however many chunks have the other one', async () => {
  const url = `${bob.home}/namespaces/default/artifacts`;
  const { body: rare } = await bob.call<{ artifact_id: string }>('POST', url, {
    name: 'Rare',
    content: 'Humidity ruins a zither.',
  });
  await app.jobsDone();
  const { status, body } = await ask('humidity zither');
  expect([status, body.total_results]).toEqual([200, 1]);
  expect(body.results).toMatchObject([{ artifact: { artifact_id: rare.artifact_id } }]);
});
