import pg from 'pg';
import { chunksOf } from '../../src/knowledge/indexing/text/chunks.ts';
import { gramsOf } from '../../src/knowledge/indexing/text/grams.ts';
import { languageOf } from '../../src/knowledge/indexing/text/language.ts';
import { documents, fixedRandom } from '../search/corpus.ts';
import { languages } from '../search/languages.ts';

const SEED = 20_261_124;
/** Chunks of each round, and how many rounds each way of indexing has. */
const CHUNKS = 300;
const ROUNDS = 6;

const INSERT = `insert into TABLE
    (artifact_id, org_id, workspace_id, namespace_id, position, content, token_count, config, words, grams)
  select 'art_' || $1, 'org_bench', 'ws_bench', 'ns_bench', c.position - 1, c.content, 500, l.config,
    to_tsvector(l.config::regconfig, cut_search_text(c.content, false)), c.grams::int[]
  from unnest($2::text[], $3::text[]) with ordinality c(content, grams, position), search_config($4) l(config)`;

/** What exact parts cost: chunks are written with grams and without, in turns, to tables like that of the product. */
export async function gramsCost(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const random = fixedRandom(SEED);
  try {
    for (const [kind, texts] of [
      ['English', documents.map(({ content }) => content)],
      ['nine languages', languages.flatMap(({ answers, others }) => [...answers.map(([, text]) => text), ...others])],
    ] as const) {
      const ms: Record<'plain' | 'grams', number[]> = { plain: [], grams: [] };
      for (const way of ['plain', 'grams'] as const)
        await client.query(`create temporary table bench_${way} (like artifact_chunks including all)`);
      for (let round = 0; round < ROUNDS; round += 1) {
        const text = shuffled(texts, random);
        for (const way of round % 2 === 0 ? (['plain', 'grams'] as const) : (['grams', 'plain'] as const))
          ms[way].push(await indexed(client, way, text, round));
      }
      const [plain, grams] = [best(ms.plain), best(ms.grams)];
      console.log(`\nindexing with grams beside without, ${kind}, chunks of 500 tokens (seed ${SEED})`);
      console.log(`  chunks/s: ${rate(grams)} beside ${rate(plain)}, ratio ${(plain / grams).toFixed(2)}`);
      // what an index collects is in its tree after that
      for (const way of ['plain', 'grams']) await client.query(`vacuum bench_${way}`);
      const sizes = await Promise.all((['grams', 'plain'] as const).map((way) => sizeOf(client, `bench_${way}`)));
      for (const [at, part] of ['rows', 'indexes', 'together'].entries()) {
        const [withGrams, without] = sizes.map((size) => size[at]! / (CHUNKS * ROUNDS));
        const ratio = (withGrams! / without!).toFixed(2);
        console.log(
          `  bytes of a chunk, ${part}: ${withGrams!.toFixed(0)} beside ${without!.toFixed(0)}, ratio ${ratio}`,
        );
      }
      for (const way of ['plain', 'grams']) await client.query(`drop table bench_${way}`);
    }
  } finally {
    await client.end();
  }
}

const best = (ms: readonly number[]): number => Math.min(...ms);
const rate = (ms: number): string => ((CHUNKS * 1_000) / ms).toFixed(0);

/** Texts in random order, as often as so many chunks need. */
function shuffled(texts: readonly string[], random: () => number): string {
  const parts: string[] = [];
  for (let characters = 0; characters < CHUNKS * 3_000; characters += parts.at(-1)!.length)
    parts.push(texts[Math.floor(random() * texts.length)]!);
  return parts.join(' ');
}

/** Does what the process that reads files does and what the indexer writes. @returns how long that took */
async function indexed(client: pg.Client, way: 'plain' | 'grams', text: string, round: number): Promise<number> {
  const start = performance.now();
  const language = languageOf(text) ?? 'en';
  const contents = chunksOf(text)
    .slice(0, CHUNKS)
    .map((chunk) => text.slice(chunk.start, chunk.end));
  const grams = contents.map((content) => (way === 'grams' ? `{${gramsOf(content).join()}}` : null));
  await client.query(INSERT.replace('TABLE', `bench_${way}`), [round, contents, grams, language]);
  return performance.now() - start;
}

/** Bytes of the rows, of the indexes, and of both. */
async function sizeOf(client: pg.Client, table: string): Promise<number[]> {
  const { rows } = await client.query<{ rows: number; indexes: number; whole: number }>(
    `select pg_table_size($1::regclass)::float8 as rows, pg_indexes_size($1::regclass)::float8 as indexes,
      pg_total_relation_size($1::regclass)::float8 as whole`,
    [table],
  );
  const { rows: inRows, indexes, whole } = rows[0]!;
  return [inRows, indexes, whole];
}
