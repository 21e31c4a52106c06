import type { RankingQuery } from './artifact-ranking.ts';

/**
 * What an artifact has to be besides what it says, as a condition on its row.
 * @param numbers of the parameters that {@link conditionValues} gives, in its order
 */
export function conditionsOn(numbers: readonly number[]): (artifact: string) => string {
  const [types, thread, media, tags, metadata, createdFrom, createdTo, updatedFrom, updatedTo] = numbers.map(
    (number) => `$${number}`,
  );
  const within = (column: string, from: string | undefined, to: string | undefined): string =>
    `(${from}::timestamptz is null or ${column} >= ${from}) and (${to}::timestamptz is null or ${column} < ${to})`;
  return (a) => `(${types}::text[] is null or ${a}.artifact_type = any(${types}))
    and (${thread}::text is null or ${a}.thread_id = ${thread})
    and (${media}::text[] is null or split_part(lower(${a}.mime_type), ';', 1) = any(${media})
      or split_part(lower(${a}.mime_type), '/', 1) || '/*' = any(${media}))
    and (${tags}::text[] is null or ${a}.tags @> ${tags})
    and (${metadata}::jsonb is null or ${a}.metadata @> ${metadata})
    and ${within(`${a}.created_at`, createdFrom, createdTo)} and ${within(`${a}.updated_at`, updatedFrom, updatedTo)}`;
}

/** The parameters of {@link conditionsOn}; `null` where nothing is asked. */
export function conditionValues({ threadId, conditions }: RankingQuery): unknown[] {
  return [
    some(conditions.artifactTypes),
    threadId,
    some(conditions.mimeTypes?.map((type) => type.toLowerCase())),
    some(conditions.tags),
    conditions.metadata && Object.keys(conditions.metadata).length > 0 ? JSON.stringify(conditions.metadata) : null,
    conditions.createdFrom ?? null,
    conditions.createdTo ?? null,
    conditions.updatedFrom ?? null,
    conditions.updatedTo ?? null,
  ];
}

/** Whether a query asks for more than what artifacts say. */
export const hasConditions = (query: RankingQuery): boolean => conditionValues(query).some((value) => value !== null);

const some = (list: readonly string[] | null | undefined): readonly string[] | null =>
  list && list.length > 0 ? list : null;
