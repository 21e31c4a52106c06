// direct connection: a statement is prepared in one session and explained in the same
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RANK, rankingValues } from '../../../src/knowledge/indexing/text-ranking.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { type Person, register } from '../../support/person.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';
import { newArtifact } from '../artifacts/artifacts.ts';

const NAMESPACES = 500;
const CHUNKS = 50_000;
/** A word that is in so many of them, and one that is in all. */
const EVERY = 100;
const OWN = 40;
/** Rows that are written together. */
const BATCH = 2_500;

let app: TestApp;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
  [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  await filled(ann, 2, OWN);
  await filled(bob, NAMESPACES, CHUNKS);
  await app.database.pool.query(
    `insert into artifact_words (org_id, namespace_id, word)
      select org_id, id, 'w' || md5(n::text) from namespaces, generate_series(1, 20) n where org_id = $1`,
    [bob.orgId],
  );
  await fill(app, 'vacuum analyze artifacts, artifact_chunks, artifact_words, artifact_languages, namespaces');
});
afterAll(() => app.close());

/** Puts artifacts with a chunk each into namespaces, one after the other. */
async function filled(person: Person, namespaces: number, chunks: number): Promise<void> {
  const { pool } = app.database;
  const content = 'Humidity drifts by two percent a year.';
  const { artifact_id: id } = await newArtifact(person, { name: 'Calibration of sensors', content, tags: ['kept'] });
  await app.jobsDone();
  await pool.query(
    `insert into namespaces (id, org_id, workspace_id, name, slug)
      select left(n.id, 20) || lpad(i::text, 10, '0'), n.org_id, n.workspace_id, 'N' || i, 'n' || i
      from namespaces n, generate_series(1, $2) i where n.workspace_id = $1 and n.slug = 'default'`,
    [person.workspaceId, namespaces],
  );
  const copy = async (table: string, own: Record<string, string>) => {
    const { rows } = await pool.query<{ columns: string }>(
      `select string_agg(quote_ident(column_name), ', ') as columns from information_schema.columns
        where table_name = $1 and column_name <> all($2) and is_generated = 'NEVER'`,
      [table, Object.keys(own)],
    );
    const { columns } = rows[0]!;
    const idColumn = table === 'artifacts' ? 'id' : 'artifact_id';
    const names = Object.keys(own).join(', ');
    const values = Object.values(own).join(', ');
    for (let from = 1; from <= chunks; from += BATCH)
      await fill(
        app,
        `insert into ${table} (${names}, ${columns}) select ${values}, ${columns}
          from ${table}, generate_series($2::int, $3::int) n where ${idColumn} = $1`,
        [id, from, Math.min(chunks, from + BATCH - 1)],
      );
  };
  const copyId = `left($1, 20) || lpad(n::text, 10, '0')`;
  const space = `left(namespace_id, 20) || lpad((n % ${namespaces} + 1)::text, 10, '0')`;
  const tags = `case when n % 1000 = 7 then '{rare}' else tags end`;
  await copy('artifacts', { id: copyId, root_artifact_id: copyId, namespace_id: space, tags });
  const words = `case when n % ${EVERY} = 0 then words || to_tsvector('english', 'zither') else words end`;
  await copy('artifact_chunks', { artifact_id: copyId, namespace_id: space, words });
}

const spacesOf = async ({ orgId }: Person) =>
  (await app.database.prisma.namespace.findMany({ where: { orgId } })).map(({ id }) => id);

async function valuesOf(person: Person, text: string, conditions: object): Promise<unknown[]> {
  const places = { orgId: person.orgId, namespaceIds: await spacesOf(person) };
  return rankingValues(places, { text, conditions, threadId: null, minScore: 0, includeExpired: false, limit: 10 });
}

/** What the ranking reads for all namespaces of somebody. */
async function scansOf(person: Person, text: string, conditions = {}): Promise<Plan[]> {
  const values = (await valuesOf(person, text, conditions)).map(literal).join(', ');
  const client = await app.database.pool.connect();
  try {
    await client.query('set plan_cache_mode = force_generic_plan');
    await client.query(`prepare rank as ${RANK}`);
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, format json) execute rank(${values})`,
    );
    return nodesOf(rows[0]!['QUERY PLAN'][0].Plan).filter(
      (node) => node['Relation Name'] !== 'pg_ts_config' && (node['Relation Name'] ?? node['Index Name']),
    );
  } finally {
    client.release(true);
  }
}

const literal = (value: unknown): string => {
  if (value === null) return 'null';
  return pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : `${value as string | number | boolean}`);
};

const readBy = (scan: Plan): number =>
  (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0) + (scan['Rows Removed by Index Recheck'] ?? 0)) *
  scan['Actual Loops'];

const queries = ['zither of sensors', 'humidty of sensros', 'nothing like it', 'two percent a year', 'humidity'];

describe(`${CHUNKS} chunks in ${NAMESPACES} namespaces`, () => {
  test.each(queries)('%s: reads what is of the namespaces, whatever others have', async (query) => {
    const scans = [...(await scansOf(ann, query)), ...(await scansOf(ann, query, { tags: ['rare'] }))];
    expect(scans.length).toBeGreaterThan(0);
    for (const scan of scans) {
      expect(scan['Node Type'], JSON.stringify(scan)).not.toBe('Seq Scan');
      if (scan['Index Name']) expect(scan['Index Cond']).toMatch(/namespace_id|\bid =|artifact_id =/);
      expect(readBy(scan), JSON.stringify(scan)).toBeLessThanOrEqual((OWN + 1) * 5);
    }
  });

  test.each(queries)('%s: reads a bounded number of rows', async (query) => {
    const scans = [...(await scansOf(bob, query)), ...(await scansOf(bob, query, { tags: ['rare'] }))];
    for (const scan of scans) expect(readBy(scan), JSON.stringify(scan)).toBeLessThanOrEqual(CHUNKS * 2);
  });

  test('conditions hold before chunks are chosen', async () => {
    const found = async (text: string, conditions = {}) => {
      const { rows } = await app.database.pool.query<{ total: number }>(RANK, await valuesOf(bob, text, conditions));
      return rows[0]?.total ?? 0;
    };
    expect(await found('zither')).toBe(CHUNKS / EVERY);
    // 20,000 chunks are looked at of those with a common word, and 2,000 of these are ranked: two of the rare ones
    expect(await found('humidity', { tags: ['rare'] })).toBeGreaterThan(10);
  });
});
