import type { SlowReads } from '../../data/slow-reads.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { DAYS_AFTER_EXPIRY } from '../artifacts/artifact.reads.ts';
import type { EmbeddedPlaces, RankedArtifact, RankingQuery, SearchedPlaces, WordRanking } from './artifact-ranking.ts';
import { conditionsOn, conditionValues, hasConditions } from './ranking-conditions.ts';
import { partOf } from './text/grams.ts';
import { UNSPACED } from './text/unspaced.ts';

/** Different words of a query that are looked at, and how many of them count. */
const MOST_DIFFERENT = 200;
const MOST_WORDS = 32;
/** A word that more chunks have than this finds nothing by itself, unless all words are like that. */
const COMMON = 2_000;
/** Chunks that are looked at which have every word, as many which have any. */
const MOST_FOUND = 20_000;
/**
 * Chunks that are ranked of those, and as many labels: ranking reads the words of each, which is what costs. A page has
 * at most fifty artifacts.
 */
const MOST_RANKED = 2_000;

/** How many of the best that words find are fused with as many that vectors find: the most that a search answers. */
export const FUSED = 50;

/** How alike a corrected word is to the one that was meant counts so much. */
const CORRECTED = 0.8;
/** So much of what is left to the best score is what has the query as an exact part. */
const EXACT = 0.5;

const HEADS = 'is_latest and deleted_at is null';

/** Rows of a table that are of the namespaces of the search. */
function inSpaces(columns: string, table: string, condition: string, most: number): string {
  return `select t.* from spaces s cross join lateral (select ${columns} from ${table} t
    where t.org_id = $1 and t.namespace_id = s.space_id and ${condition} limit ${most}) t limit ${most}`;
}

/** How often a lexeme is in a column of the namespaces, up to where it is common. */
const countOf = (table: string, column: string, condition: string): string =>
  `select count(*)::int
    from (${inSpaces('1', table, `${condition} and t.${column} @@ search_term(lexeme)`, COMMON)}) x`;
const COUNTS = `cross join lateral (${countOf('artifact_chunks', 'words', 'true')}) c(chunks)
    cross join lateral (${countOf('artifacts', 'label_words', HEADS)}) l(labels)`;

/**
 * The words of a query with their weight: a rare word says more than a common one. A word that nobody wrote in the
 * namespaces stands for up to three that look like it. Each word is asked for in the form that it has in each language
 * of the namespaces, and one that none of them or only some of them index says nothing: it is of no use, unless the
 * query has no other.
 */
const WORDS = `spaces as materialized (select unnest($2::text[]) as space_id),
  configs as materialized (
    select distinct c.oid::regconfig as config, l.config as name from artifact_languages l
    join pg_catalog.pg_ts_config c on c.cfgname = l.config and c.cfgnamespace = 'pg_catalog'::regnamespace
    where l.namespace_id = any($2)),
  tokens as materialized (
    select word, min(at) as at from (
      select lower(p.token) as word, p.at
      from ts_parse('default', cut_search_text($4, true)) with ordinality p(tokid, token, at)
      where p.tokid <> 12 order by p.at limit 1000) p
    group by word order by at limit ${MOST_DIFFERENT}),
  lexed as materialized (
    select t.word, t.at, c.name, l.lexeme, bool_or(l.lexeme is null) over (partition by t.word) as is_stop
    from tokens t cross join configs c
    left join lateral unnest(to_tsvector(c.config, t.word)) l(lexeme, positions, weights) on true),
  forms as materialized (
    select name, lexeme, min(word) as word, min(at) as at from lexed
    where lexeme is not null and (not is_stop or not exists (select from lexed where not is_stop))
    group by name, lexeme),
  terms as (
    select distinct on (f.lexeme) f.lexeme, f.word, f.at,
      (select o.lexeme from forms o where o.word = f.word order by o.name, o.lexeme limit 1) as term
    from forms f order by f.lexeme, f.name),
  words as (
    select term, lexeme, word from (
      select t.*, dense_rank() over (order by first, term) as nth from (
        select *, min(at) over (partition by term) as first from terms) t) t
    where nth <= ${MOST_WORDS}),
  counted as materialized (select term, word, lexeme, chunks + labels as found from words ${COUNTS}),
  unknown as (
    select term, min(word) as word from counted group by term
    having max(found) = 0 and length(min(word)) between 4 and 40),
  corrected as (
    select u.term, l.lexeme, max(s.likeness) * ${CORRECTED} as weight
    from unknown u cross join lateral (
      select word, similarity(word, u.word) as likeness from (
        select v.word from spaces s cross join lateral (select word from artifact_words
          where org_id = $1 and namespace_id = s.space_id and word % u.word offset 0) v
        union
        select n.word from spaces s cross join lateral (select name from artifacts
          where org_id = $1 and namespace_id = s.space_id and ${HEADS} and name %> u.word offset 0) a
          cross join lateral regexp_split_to_table(lower(a.name), '[^[:alnum:]]+') n(word) where n.word % u.word) o
      order by likeness desc, word limit 3) s
    cross join configs f
    cross join lateral unnest(to_tsvector(f.config, s.word)) l(lexeme, positions, weights)
    group by u.term, l.lexeme),
  used as materialized (
    select term, lexeme, 1::float8 as weight, found from counted where found > 0
    union all
    select term, lexeme, weight, chunks + labels from corrected ${COUNTS} where chunks + labels > 0),
  size as materialized (
    select count(*) + 1 as chunks from (${inSpaces('1', 'artifact_chunks', 'true', 100_000)}) x),
  weighted as materialized (select term, search_term(lexeme) as asked, lexeme, found,
      weight * ln(1 + chunks / least(found, chunks)::float8) as weight from used, size),
  whole as materialized (
    select sum(coalesce(u.weight, ln(1 + chunks))) as weight from (select distinct term from counted) c cross join size
    left join lateral (select max(ln(1 + chunks / least(found, chunks)::float8)) as weight from used
      where term = c.term) u on true),
  sought as materialized (select string_agg(asked::text, ' | ')::tsquery as any_word,
      (select string_agg('(' || forms || ')', ' & ')::tsquery from (
        select string_agg(asked::text, ' | ') as forms from weighted group by term) t) as every_word
    from weighted where found < ${COMMON} or not exists (select 1 from weighted where found < ${COMMON})),
  formulas as materialized (
    select name, search_formula(config, $3) as formula from configs where $5)`;

/** What an artifact has to be besides what it says. */
const meets = conditionsOn([7, 8, 14, 15, 16, 17, 18, 19, 20]);

/** What has the words that are asked for, and fits the operators of the query if it has some: in its own language. */
const fitting = (columns: string, table: string, has: string, fits: string, most: number): string =>
  `(${inSpaces(columns, table, `not $5 and ${has}`, most)})
    union all
    (select f.* from formulas o cross join lateral (${inSpaces(columns, table, `${has} and ${fits}`, most)}) f)`;

const chunksWith = (words: 'every_word' | 'any_word'): string => {
  const has = `t.words @@ (select ${words} from sought)`;
  const fits = 't.config = o.name and t.words @@ o.formula';
  return `select artifact_id, position, ${words === 'every_word'} as has_all, false as is_exact
    from (${fitting('artifact_id, position', 'artifact_chunks', has, fits, MOST_FOUND)}) c`;
};

const LABELS = fitting(
  'id',
  'artifacts',
  `${HEADS} and ${meets('t')} and t.label_words @@ (select any_word from sought)`,
  't.label_config = o.name and t.label_words @@ o.formula',
  MOST_RANKED,
);
const NAMES = inSpaces('id', 'artifacts', `${HEADS} and ${meets('t')} and t.name ilike $13`, MOST_RANKED);
const PARTS = inSpaces(
  'artifact_id, position',
  'artifact_chunks',
  't.grams @> $11::int[] and position(fold_search_text($12) in fold_search_text(t.content)) > 0',
  MOST_RANKED,
);

/** What a word counts in the description or summary, the tags or keywords, the name, and the content. */
const WEIGHTS = `'{1,0.5,0.7,0.8}'`;

/**
 * Parameters: organization, namespaces, query, query without what it excludes, whether all of it must fit, whether
 * expired artifacts count, types, thread, least score, limit, the exact part with its grams, a pattern of it, the other
 * conditions, and whether there is any.
 */
export const RANK = `with ${WORDS},
  found as (
    select artifact_id, position, bool_or(has_all) as has_all, bool_or(is_exact) as is_exact
    from (${chunksWith('every_word')} union all ${chunksWith('any_word')} union all
      select artifact_id, position, false, true
      from (${PARTS}) e) c
    group by artifact_id, position),
  chosen as (
    select artifact_id, position, is_exact from (
      select artifact_id, position, is_exact,
        row_number() over (partition by artifact_id order by is_exact desc, has_all desc, position) as nth
      -- as a value: whether it exists could be answered by reading the artifacts of everybody
      from found f where not $21 or (select ${meets('a')} from artifacts a where a.id = f.artifact_id)) f
    -- of every artifact its first chunk, before any has its second
    order by nth, is_exact desc, artifact_id limit ${MOST_RANKED}),
  candidates as (
    select k.artifact_id, k.position, k.words, c.is_exact from chosen c
    join artifact_chunks k on k.artifact_id = c.artifact_id and k.position = c.position
    union all
    (select id, null, null, false from (${LABELS}) l limit ${MOST_RANKED})
    union all
    (select id, null, null, true from (${NAMES}) n)),
  -- in the statement that is sent anyway: searches without an embedding model cost nothing more
  embedded as materialized (
    select w.id as workspace_id, w.embedding_model_id as model_id, array_agg(s.space_id order by s.space_id) as spaces
    from spaces s
    cross join lateral (select workspace_id from namespaces where id = s.space_id offset 0) n
    cross join lateral (select id, embedding_model_id from workspaces
      where id = n.workspace_id and embedding_model_id is not null offset 0) w
    cross join lateral (select 1 from artifact_chunk_vectors
      where org_id = $1 and namespace_id = s.space_id and model_id = w.embedding_model_id limit 1) v
    group by w.id, w.embedding_model_id),
  hits as (
    select distinct on (c.artifact_id) c.artifact_id, c.position, s.score
    from candidates c join artifacts a on a.id = c.artifact_id
    cross join lateral (select coalesce(c.words, '') || coalesce(a.label_words, '') as words offset 0) d
    cross join lateral (
      select least(1, coalesce(sum(best) / (select weight from whole), 0)) as found from (
        select max(w.weight * (0.1 + 0.9 * ts_rank(${WEIGHTS}, d.words, w.asked))) as best
        from weighted w where d.words @@ w.asked group by w.term) b) b
    cross join lateral (select case when c.is_exact then found + (1 - found) * ${EXACT} else found end as score) s
    order by c.artifact_id, s.score desc, c.position),
  ranked as (
  select a.id as "artifactId", round(h.score::numeric, 4)::float8 as score, k.content as chunk,
    array(select lexeme from weighted) as lexemes, count(*) over ()::int as total
  from hits h
  -- found by its id, and not by its namespace once for each hit
  cross join lateral (select * from artifacts where id = h.artifact_id offset 0) a
  left join artifact_chunks k on k.artifact_id = a.id and k.position = h.position
  where a.org_id = $1 and a.namespace_id = any($2) and a.is_latest and a.deleted_at is null
    and (a.expires_at is null or a.expires_at > now()
      or $6 and a.expires_at > now() - interval '${DAYS_AFTER_EXPIRY} days')
    and ${meets('a')} and h.score >= $9
  order by h.score desc, a.id desc
  -- what is fused by rank is the same for every limit
  limit (select case when exists (select from embedded) then greatest($10::int, ${FUSED}) else $10::int end))
  select r.*, e.embedded from (select (select json_agg(json_build_object('workspaceId', workspace_id,
      'modelId', model_id, 'namespaceIds', spaces) order by workspace_id) from embedded) as embedded) e
    left join ranked r on true
  order by r.score desc, r."artifactId" desc`;

/** A query that says what must be in a text. */
export const hasOperators = (text: string): boolean => OPERATORS.test(text);

// in a question, `or` is a word like others
const OPERATORS = /"|(^|\s)-\S|(^|\s)OR(\s|$)/;
const EXCLUDED = /(^|\s)-("[^"]*"?|\S+)/g;
/** A quoted part, or a run of a script without spaces outside of one. */
const QUOTED_OR_RUN = new RegExp(`"[^"]*"?|[${UNSPACED}]+`, 'gu');

/** A run as what a formula takes for one word: its pairs are a phrase. */
function quotedRun(found: string, at: number, query: string): string {
  if (found.startsWith('"')) return found;
  return `${query[at - 1] === '-' ? '' : ' '}"${found}" `;
}

/** The parameters of {@link RANK}. */
export function rankingValues({ orgId, namespaceIds }: SearchedPlaces, query: RankingQuery): unknown[] {
  const part = partOf(query.text);
  const [types, threadId, ...others] = conditionValues(query);
  return [
    orgId,
    namespaceIds,
    query.text.replace(QUOTED_OR_RUN, quotedRun),
    query.text.replace(EXCLUDED, ' '),
    hasOperators(query.text),
    query.includeExpired,
    types,
    threadId,
    query.minScore,
    query.limit,
    part?.grams ?? null,
    part?.text ?? null,
    part && `%${part.text.replace(/[\\%_]/g, '\\$&')}%`,
    ...others,
    hasConditions(query),
  ];
}

/** A found artifact; or one row without, if nothing is found. */
interface RankedRow extends Omit<RankedArtifact, 'artifactId'> {
  artifactId: string | null;
  total: number;
  embedded: EmbeddedPlaces[] | null;
}

/**
 * Ranks by words, as the text search configurations of PostgreSQL know them for the language of each artifact: those of
 * chunks and those of labels (name, file name, tags, keywords, description, summary). What scripts without spaces
 * write is found by pairs of characters, words with typing errors by their trigrams, and the query as an exact part of
 * a chunk or name by its grams (docs/decisions/0036). A query with `"…"`, `OR` or `-` finds only what fits all of it;
 * of any other, each word that is found counts.
 */
export class TextRanking {
  readonly #reads: SlowReads;

  constructor(reads: SlowReads) {
    this.#reads = reads;
  }

  async rank(caller: AnyCaller, places: SearchedPlaces, query: RankingQuery): Promise<WordRanking> {
    const reads = this.#reads.searchesOf(places.orgId, caller);
    const rows = await reads.read<RankedRow>(RANK, rankingValues(places, query));
    const artifacts = rows.filter((row): row is RankedRow & RankedArtifact => row.artifactId !== null);
    return { artifacts, total: artifacts[0]?.total ?? 0, embedded: rows[0]?.embedded ?? [] };
  }
}
