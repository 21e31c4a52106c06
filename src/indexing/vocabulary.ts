import { type Statement, statement } from '../data/writes.ts';

/** Words of one piece of content that are kept. */
const MOST_WORDS = 20_000;
const WORD = /[\p{L}\p{M}]{4,32}/gu;

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
