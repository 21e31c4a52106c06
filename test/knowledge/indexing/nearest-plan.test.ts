import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  MOST_SCANNED,
  NEAREST,
  NEAREST_BY_EXTENSION,
  nearestValues,
} from '../../../src/knowledge/indexing/vectors/nearest-artifacts.ts';
import { arrayOf } from '../../../src/knowledge/indexing/vectors/stored-vectors.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { type Person, register } from '../../support/person.ts';
import { nodesOf, type Plan } from '../../support/query-plan.ts';
import { newArtifact } from '../artifacts/artifacts.ts';

/** Chunks of somebody else, more than a search looks at, and of somebody with few. */
const MANY = MOST_SCANNED + 500;
const FEW = 40;
const COMPONENTS = 8;
const VECTOR = Array.from({ length: COMPONENTS }, () => 1 / Math.sqrt(COMPONENTS));

// `npm run check:pgvector` runs this file on a server that has the extension
const STATEMENTS = process.env.TEST_HAS_PGVECTOR ? [NEAREST, NEAREST_BY_EXTENSION] : [NEAREST];

let app: TestApp;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  app = await startTestApp({ ownDatabase: true });
  [ann, bob] = [await register(app, { name: 'ann' }), await register(app, { name: 'bob' })];
  await filled(ann, FEW);
  await filled(bob, MANY);
  await fill(app, 'vacuum analyze artifacts, artifact_chunks, artifact_chunk_vectors');
});
afterAll(() => app.close());

/** One artifact with so many chunks, each with a vector of its own. */
async function filled(of: Person, count: number): Promise<void> {
  const { artifact_id: id } = await newArtifact(of, { content: 'Humidity drifts by two percent a year.' });
  await app.jobsDone();
  await fill(
    app,
    `insert into artifact_chunks
        (artifact_id, org_id, workspace_id, namespace_id, position, content, token_count, grams)
      select artifact_id, org_id, workspace_id, namespace_id, n, content, token_count, grams
      from artifact_chunks, generate_series(1, $2::int - 1) n where artifact_id = $1`,
    [id, count],
  );
  await fill(
    app,
    `insert into artifact_chunk_vectors
        (artifact_id, position, org_id, namespace_id, model_id, model_name, dimensions, signs, vector)
      select artifact_id, position, org_id, namespace_id, 'm', 'm-1', ${COMPONENTS},
        (position % 256)::bit(${COMPONENTS})::varbit, $2::real[]
      from artifact_chunks where artifact_id = $1`,
    [id, arrayOf(VECTOR)],
  );
}

const query = { text: '', threadId: null, minScore: 0, includeExpired: false, limit: 10 };

async function valuesOf({ orgId }: Person, conditions: object): Promise<unknown[]> {
  const { id } = await app.database.prisma.namespace.findFirstOrThrow({ where: { orgId, slug: 'default' } });
  return nearestValues(orgId, { modelId: 'm', namespaceIds: [id] }, 'm-1', VECTOR, { ...query, conditions });
}

/** What the statement reads for somebody, by the plan for all values, as the service has it. */
async function scansOf(person: Person, conditions: object): Promise<Plan[]> {
  return (await Promise.all(STATEMENTS.map((statement) => scansOfStatement(statement, person, conditions)))).flat();
}

async function scansOfStatement(statement: string, person: Person, conditions: object): Promise<Plan[]> {
  const client = await app.database.pool.connect();
  try {
    await client.query('begin'); // a pooler would give the session to others
    await client.query('set local plan_cache_mode = force_generic_plan');
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({
      text: `explain (analyze, format json) ${statement}`,
      values: await valuesOf(person, conditions),
    });
    return nodesOf(rows[0]!['QUERY PLAN'][0].Plan).filter((node) => node['Relation Name'] ?? node['Index Name']);
  } finally {
    client.release(true);
  }
}

const readBy = (scan: Plan): number =>
  (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)) * scan['Actual Loops'];

test.each([{}, { tags: ['lab'] }])(
  'with %j, vectors of the namespace are read, whatever others have',
  async (given) => {
    const scans = await scansOf(ann, given);
    expect(scans.length).toBeGreaterThan(0);
    for (const scan of scans) {
      // there are two artifacts in all
      if (scan['Relation Name'] !== 'artifacts') expect(scan['Node Type'], JSON.stringify(scan)).not.toBe('Seq Scan');
      expect(readBy(scan), JSON.stringify(scan)).toBeLessThanOrEqual(FEW * 2);
    }
  },
);

test('of a namespace with many, so many are read, and the answer says so', async () => {
  for (const scan of await scansOf(bob, {})) expect(readBy(scan)).toBeLessThanOrEqual(MOST_SCANNED + 1);
  for (const statement of STATEMENTS) {
    const cutOf = async (person: Person) =>
      (await app.database.pool.query<{ score: number; isCut: boolean }>(statement, await valuesOf(person, {}))).rows;
    expect(await cutOf(bob)).toMatchObject([{ score: 1, isCut: true }]);
    expect(await cutOf(ann)).toMatchObject([{ score: 1, isCut: false }]);
  }
});

test('each statement gives an artifact the likeness of its nearest chunk', async () => {
  const carl = await register(app, { name: 'carl' });
  await filled(carl, 30);
  // the chunk at position n is at the angle 45 + n
  await app.database.pool.query(
    `update artifact_chunk_vectors set signs = '11', dimensions = 2,
      vector = array[cosd(position + 45), sind(position + 45)]::real[] where org_id = $1`,
    [carl.orgId],
  );
  const { id } = await app.database.prisma.namespace.findFirstOrThrow({
    where: { orgId: carl.orgId, slug: 'default' },
  });
  const of = { modelId: 'm', namespaceIds: [id] };
  for (const statement of STATEMENTS)
    for (const degrees of [45, 30, 0]) {
      const vector = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
      const values = nearestValues(carl.orgId, of, 'm-1', vector, { ...query, conditions: {} });
      const { rows } = await app.database.pool.query<{ score: number }>(statement, values);
      const likeness = Math.cos(((45 - degrees) * Math.PI) / 180);
      expect(rows).toMatchObject([{ score: expect.closeTo(likeness, 3) as number }]);
    }
});
