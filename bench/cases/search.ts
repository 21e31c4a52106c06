import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { type Account, call } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import { type CorpusQuestion, documents, fixedRandom, mistyped, paraphrases, questions } from '../search/corpus.ts';
import { languages } from '../search/languages.ts';
import type { ServerProcess } from '../server-process.ts';
import { gramsCost } from './indexing.ts';

const SEED = 20_261_122;
const FIRST = 10;

interface Answer {
  results: { artifact: { name: string }; score: number }[];
}

/** How good the answers of a search are, and what a search costs beside a hand-written server with the same SQL. */
export async function search(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  url: string,
  rounds: Rounds,
): Promise<void> {
  const workspace = `/v1/orgs/${account.orgId}/workspaces/${account.workspaceId}`;
  const { namespaces } = await call<{ namespaces: { namespace_id: string }[] }>(
    product,
    account.token,
    'GET',
    `${workspace}/namespaces`,
  );
  const artifacts = `${workspace}/namespaces/${namespaces[0]!.namespace_id}/artifacts`;
  for (const document of documents) await call(product, account.token, 'POST', artifacts, document);
  await allIndexed(product, account.token, artifacts);
  await analyze(url);
  const random = fixedRandom(SEED);
  console.log(`\nquality of the search: ${documents.length} documents, ${questions.length} questions of each kind`);
  for (const [kind, asked] of [
    ['in words of the document', questions],
    ['in other words', paraphrases],
  ] as const) {
    await quality(kind, product, account.token, artifacts, asked);
    const wrong = asked.map(({ text, answer }) => ({ text: mistyped(text, random), answer }));
    await quality(`${kind}, one typing error (seed ${SEED})`, product, account.token, artifacts, wrong);
  }
  await inLanguages(product, account.token, `${workspace}/namespaces`);
  await gramsCost(url);
  print(
    'query of the first 10 artifacts',
    await compare(
      servers,
      questions.map(({ text: query }) => ({
        method: 'POST' as const,
        path: `${artifacts}/query`,
        body: JSON.stringify({ query }),
      })),
      account.token,
      rounds,
    ),
  );
}

/** The quality by language, where the texts of all of them are in one namespace. */
async function inLanguages(product: ServerProcess, token: string, namespaces: string): Promise<void> {
  const { namespace_id: id } = await call<{ namespace_id: string }>(product, token, 'POST', namespaces, {
    name: 'Languages',
  });
  const artifacts = `${namespaces}/${id}/artifacts`;
  for (const { language, answers, others } of languages) {
    for (const [name, content] of answers) await call(product, token, 'POST', artifacts, { name, content });
    for (const [n, content] of others.entries())
      await call(product, token, 'POST', artifacts, { name: `${language} ${n}`, content });
  }
  await allIndexed(product, token, artifacts);
  console.log(`\nquality of the search by language, all in one namespace`);
  for (const { language, answers } of languages) {
    const asked = answers.map(([answer, , text]) => ({ text, answer }));
    await quality(language, product, token, artifacts, asked);
  }
}

/** Resolves when all artifacts of a namespace are indexed. */
export async function allIndexed(product: ServerProcess, token: string, artifacts: string): Promise<void> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { artifacts: { is_indexed: boolean }[]; next_cursor: string | null } = await call(
      product,
      token,
      'GET',
      `${artifacts}?limit=200${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    if (page.artifacts.every((artifact) => artifact.is_indexed)) cursor = page.next_cursor;
    else await setTimeout(200);
  }
}

/** Tells PostgreSQL what is in the tables, as it finds out by itself in a minute or two. */
async function analyze(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const table of ['artifacts', 'artifact_chunks', 'artifact_words'])
      await client.query(`vacuum analyze ${table}`);
  } finally {
    await client.end();
  }
}

/** Prints how many answers are among the first ten, and the mean of 1 / their place. */
async function quality(
  name: string,
  product: ServerProcess,
  token: string,
  artifacts: string,
  asked: readonly CorpusQuestion[],
): Promise<void> {
  let reciprocal = 0;
  const missed: string[] = [];
  for (const { text: query, answer } of asked) {
    const { results } = await call<Answer>(product, token, 'POST', `${artifacts}/query`, { query, limit: FIRST });
    const place = results.findIndex(({ artifact }) => artifact.name === answer);
    if (place < 0) missed.push(query);
    else reciprocal += 1 / (place + 1);
  }
  const recall = (asked.length - missed.length) / asked.length;
  console.log(`  ${name}: recall@${FIRST} ${recall.toFixed(3)}, MRR ${(reciprocal / asked.length).toFixed(3)}`);
  for (const query of missed) console.log(`    not found: ${query}`);
}
