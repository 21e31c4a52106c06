import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import { type Statement, statement } from '../../data/writes.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { UNSPACED } from './text/unspaced.ts';

/** Words of one piece of content that are kept. */
const MOST_WORDS = 20_000;
const LOCK = 5_091_122;
const WORD = new RegExp(`(?:(?![${UNSPACED}])[\\p{L}\\p{M}]){4,32}`, 'gu');

/**
 * Lets nobody forget words of the namespace until the transaction ends. Runs before {@link vocabularyOf}, which sees
 * what was forgotten until then.
 */
export const holdVocabulary = (namespaceId: string): Statement =>
  statement`select pg_advisory_xact_lock_shared(hashtextextended(${namespaceId}, ${LOCK}))`;

/** The words of an artifact, for searches whose words nobody wrote: see {@link TextRanking}. */
export function vocabularyOf(
  { orgId, namespaceId }: { orgId: string; namespaceId: string },
  texts: readonly string[],
): Statement {
  const words = new Set<string>();
  for (const text of texts)
    for (const [word] of text.toLowerCase().matchAll(WORD)) {
      if (words.size >= MOST_WORDS) break;
      words.add(word);
    }
  // in one order, so that two of these never wait for each other
  return statement`insert into artifact_words (namespace_id, word, org_id)
    select ${namespaceId}, w.word, ${orgId} from unnest(${[...words].sort()}::text[]) w(word)
    where not exists (select 1 from artifact_words o where o.namespace_id = ${namespaceId} and o.word = w.word)
    on conflict do nothing`;
}

const NAME = 'artifact_words';
const PAGE = 1_000;
const NAMESPACE = `select namespace_id as id from artifact_words where namespace_id > $1 order by 1 limit 1`;

/**
 * Removes those words of a page that no chunk has in any of the languages. Words that the search skips are in none, and
 * are few: they stay.
 */
const pageOf = (namespaceId: string, after: string) => statement`with page as (
    select word, org_id from artifact_words where namespace_id = ${namespaceId} and word > ${after}
    order by word limit ${PAGE}),
  forms as (select p.word, p.org_id, plainto_tsquery(c.oid::regconfig, p.word) as asked
    from page p cross join artifact_languages l join pg_catalog.pg_ts_config c
      on c.cfgname = l.config and c.cfgnamespace = 'pg_catalog'::regnamespace
    where l.namespace_id = ${namespaceId}),
  known as (select f.word from forms f where exists (select 1 from artifact_chunks c
      where c.org_id = f.org_id and c.namespace_id = ${namespaceId} and c.words @@ f.asked)),
  forgotten as (delete from artifact_words w
    where w.namespace_id = ${namespaceId} and w.word in (select word from forms where numnode(asked) > 0)
      and w.word not in (select word from known))
  select max(word) as last from page`;

/**
 * Forgets words that no chunk has any more, page by page.
 * @param signal ends it after a page
 */
export async function forgetWords(
  { sql, changes }: { sql: Sql; changes: Changes },
  signal: AbortSignal,
): Promise<void> {
  for (let namespace = await next(''); namespace; namespace = await next(namespace)) {
    const id = namespace;
    for (let last: string | null = ''; last !== null && !signal.aborted; ) {
      const after: string = last;
      last = await changes.run(systemCaller(NAME), async (tx) => {
        await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${id}, ${LOCK}))`);
        const [page] = await tx.query<{ last: string | null }>(pageOf(id, after));
        return page?.last ?? null;
      });
    }
  }

  async function next(after: string): Promise<string | null> {
    if (signal.aborted) return null;
    const [row] = await sql.read<{ id: string }>(NAMESPACE, [after]);
    return row?.id ?? null;
  }
}

/** The task that does so once a day. */
export const forgettingTask = (deps: { sql: Sql; changes: Changes }): Task =>
  scheduled(NAME, { everySeconds: 86_400 }, ({ signal }) => forgetWords(deps, signal));
