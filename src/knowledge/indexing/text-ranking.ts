import type { SlowReads } from '../../data/slow-reads.ts';
import type { NamespacePlace } from '../../kernel/checked-place.ts';
import { DAYS_AFTER_EXPIRY } from '../artifacts/artifact.reads.ts';
import type { ArtifactRanking, RankedArtifact, RankedList, RankingQuery } from './artifact-ranking.ts';

/** Different words of a query that count. */
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

/** A search that takes longer is refused. */
const LIMIT_MS = 2_000;

/** How alike a corrected word is to the one that was meant counts so much. */
const CORRECTED = 0.8;

/**
 * The words of a query with their weight: a rare word says more than a common one. A word that nobody wrote in the
 * namespace stands for up to three that look like it.
 */
const WORDS = `words as (
    select l.lexeme, min(w.word) as word from (
      select lower(p.token) as word, p.at from ts_parse('default', $4) with ordinality p(tokid, token, at)
      where p.tokid <> 12 order by p.at limit 1000) w
    cross join lateral unnest(to_tsvector('english', w.word)) l(lexeme, positions, weights)
    group by l.lexeme order by min(w.at) limit ${MOST_WORDS}),
  counted as materialized (select word, lexeme, chunks + labels as found from words
    cross join lateral (${countOf('artifact_chunks', 'words', 'true')}) c(chunks)
    cross join lateral (${countOf('artifacts', 'label_words', 'is_latest and deleted_at is null')}) l(labels)),
  corrected as (
    select c.lexeme as term, l.lexeme, max(s.likeness) * ${CORRECTED} as weight
    from counted c cross join lateral (
      select word, similarity(word, c.word) as likeness from (
        select v.word from artifact_words v where v.namespace_id = $2 and v.org_id = $1 and v.word % c.word
        union
        select n.word from artifacts a
          cross join lateral regexp_split_to_table(lower(a.name), '[^[:alnum:]]+') n(word)
        where a.namespace_id = $2 and a.org_id = $1 and a.is_latest and a.deleted_at is null and a.name %> c.word
          and n.word % c.word) o
      order by likeness desc, word limit 3) s
    cross join lateral unnest(to_tsvector('english', s.word)) l(lexeme, positions, weights)
    where c.found = 0 and length(c.word) between 4 and 40 group by c.lexeme, l.lexeme),
  used as materialized (
    select lexeme as term, lexeme, 1::float8 as weight, found from counted where found > 0
    union all
    select term, lexeme, weight, chunks + labels from corrected
      cross join lateral (${countOf('artifact_chunks', 'words', 'true')}) c(chunks)
      cross join lateral (${countOf('artifacts', 'label_words', 'is_latest and deleted_at is null')}) l(labels)
    where chunks + labels > 0),
  space as materialized (select (select count(*) from (select from artifact_chunks
      where org_id = $1 and namespace_id = $2 limit 100000) x) + 1 as chunks),
  weighted as materialized (select term, quote_literal(lexeme)::tsquery as asked, lexeme, found,
      weight * ln(1 + chunks / least(found, chunks)::float8) as weight from used, space),
  whole as materialized (select sum(coalesce(u.weight, ln(1 + chunks))) as weight from counted c cross join space
    left join lateral (select max(ln(1 + chunks / least(found, chunks)::float8)) as weight from used
      where term = c.lexeme) u on true),
  sought as materialized (select string_agg(asked::text, ' | ')::tsquery as any_word,
      (select string_agg(asked::text, ' & ')::tsquery from weighted) as every_word from weighted
    where found < ${COMMON} or not exists (select 1 from weighted where found < ${COMMON}))`;

/** The chunks of the namespace with these words, for the operators of the query too. */
const chunksWith = (words: 'every_word' | 'any_word'): string => `(select artifact_id, position,
      ${words === 'every_word'} as has_all from artifact_chunks
      where org_id = $1 and namespace_id = $2 and words @@ (select ${words} from sought)
        and (not $5 or words @@ websearch_to_tsquery('english', $3)) limit ${MOST_FOUND})`;

/** How often the lexeme of `words` or `corrected` is in a column of the namespace, up to where it is common. */
function countOf(table: string, column: string, condition: string): string {
  return `select count(*)::int from (select from ${table} t where t.org_id = $1 and t.namespace_id = $2
    and ${condition} and t.${column} @@ quote_literal(lexeme)::tsquery limit ${COMMON}) x`;
}

/** What a word counts in the description or summary, the tags or keywords, the name, and the content. */
const WEIGHTS = `'{1,0.5,0.7,0.8}'`;

/**
 * Parameters: organization, namespace, query, query without what it excludes, whether all of it must fit, whether
 * expired artifacts count, types, thread, least score, limit.
 */
export const RANK = `with ${WORDS},
  found as (
    select artifact_id, position, bool_or(has_all) as has_all
    from (${chunksWith('every_word')} union all ${chunksWith('any_word')}) c group by artifact_id, position),
  chosen as (
    select artifact_id, position from (
      select artifact_id, position, row_number() over (partition by artifact_id order by has_all desc, position) as nth
      from found) f
    -- of every artifact its first chunk, before any has its second
    order by nth, artifact_id limit ${MOST_RANKED}),
  candidates as (
    select k.artifact_id, k.position, k.words from chosen c
    join artifact_chunks k on k.artifact_id = c.artifact_id and k.position = c.position
    union all
    (select id, null, null from artifacts
      where org_id = $1 and namespace_id = $2 and is_latest and deleted_at is null
        and label_words @@ (select any_word from sought)
        and (not $5 or label_words @@ websearch_to_tsquery('english', $3)) limit ${MOST_RANKED})),
  hits as (
    select distinct on (c.artifact_id) c.artifact_id, c.position,
      least(1, s.found / (select weight from whole)) as score
    from candidates c join artifacts a on a.id = c.artifact_id
    cross join lateral (select coalesce(c.words, '') || coalesce(a.label_words, '') as words offset 0) d
    cross join lateral (
      select sum(best) as found from (
        select max(w.weight * (0.1 + 0.9 * ts_rank(${WEIGHTS}, d.words, w.asked))) as best
        from weighted w where d.words @@ w.asked group by w.term) b) s
    order by c.artifact_id, s.found desc, c.position)
  select a.id as "artifactId", round(least(1, h.score)::numeric, 4)::float8 as score, k.content as chunk,
    array(select lexeme from weighted) as lexemes, count(*) over ()::int as total
  from hits h join artifacts a on a.id = h.artifact_id and a.org_id = $1 and a.namespace_id = $2
  left join artifact_chunks k on k.artifact_id = a.id and k.position = h.position
  where a.is_latest and a.deleted_at is null
    and (a.expires_at is null or a.expires_at > now()
      or $6 and a.expires_at > now() - interval '${DAYS_AFTER_EXPIRY} days')
    and ($7::text[] is null or a.artifact_type = any($7)) and ($8::text is null or a.thread_id = $8)
    and h.score >= $9
  order by h.score desc, a.id desc limit $10`;

// in a question, `or` is a word like others
const OPERATORS = /"|(^|\s)-\S|(^|\s)OR(\s|$)/;
const EXCLUDED = /(^|\s)-("[^"]*"?|\S+)/g;

/**
 * Ranks by words, as PostgreSQL's English configuration knows them: those of chunks and those of labels (name, file
 * name, tags, keywords, description, summary). Words with typing errors are found by their trigrams. A query with
 * `"…"`, `OR` or `-` finds only what fits all of it; of any other, each word that is found counts.
 */
export class TextRanking implements ArtifactRanking {
  readonly #reads: SlowReads;

  constructor(reads: SlowReads) {
    this.#reads = reads;
  }

  async rank({ orgId, namespaceId }: NamespacePlace, query: RankingQuery): Promise<RankedList> {
    const reads = this.#reads.of(orgId, { limitMs: LIMIT_MS });
    const rows = await reads.read<RankedArtifact & { total: number }>(RANK, [
      orgId,
      namespaceId,
      query.text,
      query.text.replace(EXCLUDED, ' '),
      OPERATORS.test(query.text),
      query.includeExpired,
      query.artifactTypes,
      query.threadId,
      query.minScore,
      query.limit,
    ]);
    return { artifacts: rows, total: rows[0]?.total ?? 0 };
  }
}
