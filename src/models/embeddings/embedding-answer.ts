import type { Vector } from '../../kernel/embedding.ts';

/** More components than any known model gives. */
const MOST_COMPONENTS = 4_096;
/** Code points of a token, where the provider does not count them itself. */
const CHARACTERS_PER_TOKEN = 4;
const MOST_RETRY_SECONDS = 3_600;

/** The vectors of an answer, of the length 1 and in the order of the texts; `null` if it is something else. */
export function vectorsIn(answer: unknown, count: number): Vector[] | null {
  const data = isObject(answer) ? answer.data : null;
  if (!Array.isArray(data) || data.length !== count) return null;
  const byIndex = new Map<unknown, Vector | null>();
  for (const [at, item] of (data as unknown[]).entries())
    if (isObject(item)) byIndex.set(item.index ?? at, normalized(item.embedding));
  const vectors = Array.from({ length: count }, (_, index) => byIndex.get(index) ?? null);
  const isWhole = vectors.every((vector): vector is Vector => vector !== null && vector.length === vectors[0]?.length);
  return isWhole ? vectors : null;
}

function normalized(given: unknown): Vector | null {
  if (!Array.isArray(given) || given.length === 0 || given.length > MOST_COMPONENTS) return null;
  if (!given.every((component): component is number => Number.isFinite(component))) return null;
  const length = Math.hypot(...given);
  return length > 0 && Number.isFinite(length) ? given.map((component) => component / length) : null;
}

/** How many tokens were used: what the provider says, or an estimate. */
export function tokensOf(answer: unknown, texts: readonly string[]): number {
  const usage = isObject(answer) ? answer.usage : null;
  const said = isObject(usage) ? (usage.prompt_tokens ?? usage.total_tokens) : null;
  if (typeof said === 'number' && Number.isInteger(said) && said >= 0 && said <= 1_000_000_000) return said;
  return Math.ceil(texts.reduce((sum, text) => sum + text.length, 0) / CHARACTERS_PER_TOKEN);
}

/** The seconds of a `Retry-After`, at most an hour; `null` without one that can be read. */
export function retryAfterOf(headers: Headers, now = Date.now()): number | null {
  const text = headers.get('retry-after')?.trim() ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now) / 1_000);
  return Number.isFinite(seconds) ? Math.max(1, Math.min(MOST_RETRY_SECONDS, seconds)) : null;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
