import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';

/** Seconds between two tries: eight tries take almost a day. */
const WAITS = [5, 300, 1_800, 7_200, 18_000, 21_600, 36_000];
/** Tries of a delivery. */
export const MAX_TRIES = WAITS.length + 1;
/** No receiver puts a try off for longer. */
const MAX_RETRY_AFTER = 21_600;
/** No try is later than this after it was queued, but for the first ones of what waited so long for its turn. */
const MAX_AGE_SECONDS = 86_400;
const FIRST_TRIES = 3;
/** What the log keeps of an answer. */
const KEPT_ANSWER = 1_024;

/** An attempt as the row of its delivery keeps it. */
export interface StoredAttempt {
  /** When it began, in ISO 8601. */
  at: string;
  status_code: number | null;
  /** The code of the outbound error, or of what the service found; `null` for an answer that says all. */
  error: string | null;
  duration_ms: number;
  answer: string | null;
}

/** Attempts for callers who may not read what was sent: a receiver may send it back. */
export const withoutAnswers = (attempts: readonly StoredAttempt[]): StoredAttempt[] =>
  attempts.map((attempt) => ({ ...attempt, answer: null }));

/** How an attempt ended. */
export interface AttemptResult {
  attempt: StoredAttempt;
  isDelivered: boolean;
  /** Seconds that the receiver asks to wait; `null` if it does not say. */
  retryAfter: number | null;
}

/** How an answer is meant: an error where its status does not say it. */
export interface Verdict {
  isDelivered: boolean;
  error: string | null;
}

const byStatus = ({ isOk }: OutboundResponse): Verdict => ({ isDelivered: isOk, error: null });

/** An attempt that failed before anything was sent. */
export const failedAttempt = (error: string, at = new Date(), startedAt = performance.now()): AttemptResult => ({
  attempt: {
    at: at.toISOString(),
    duration_ms: Math.round(performance.now() - startedAt),
    status_code: null,
    error,
    answer: null,
  },
  isDelivered: false,
  retryAfter: null,
});

/**
 * Makes one attempt.
 * @param secrets values that no log may show, although the receiver sends them back
 */
export async function attempted(
  call: () => Promise<OutboundResponse>,
  { secrets, judge = byStatus }: { secrets: readonly string[]; judge?: (answer: OutboundResponse) => Verdict },
): Promise<AttemptResult> {
  const at = new Date();
  const startedAt = performance.now();
  try {
    const answer = await call();
    const duration = Math.round(performance.now() - startedAt);
    const { isDelivered, error } = judge(answer);
    const excerpt = excerptOf(answer, secrets);
    return {
      attempt: { at: at.toISOString(), duration_ms: duration, status_code: answer.status, error, answer: excerpt },
      isDelivered,
      retryAfter: retryAfterOf(answer.headers.get('retry-after')),
    };
  } catch (error) {
    if (error instanceof OutboundError) return failedAttempt(error.code, at, startedAt);
    throw error;
  }
}

/** The beginning of an answer. A receiver may send back what it was sent: values that are secret are taken out. */
export function excerptOf(answer: OutboundResponse, secrets: readonly string[]): string {
  // longer than what is kept, so that a secret at its end is still whole; control characters fit no column and no log
  const known = [...new Set(secrets.flatMap(spellingsOf))].toSorted((a, b) => b.length - a.length);
  const longest = known[0]?.length ?? 0;
  const start = answer.body
    .subarray(0, 4 * (KEPT_ANSWER + longest))
    .toString('utf8')
    .slice(0, KEPT_ANSWER + longest);
  const masked = known.reduce((text, secret) => text.replaceAll(secret, '[redacted]'), start);
  return masked
    .slice(0, KEPT_ANSWER)
    .replaceAll(/(?![\t\n])\p{Cc}/gu, '\uFFFD')
    .toWellFormed();
}

/** A header value and what follows its scheme (`Bearer abc`), as answers, addresses and JSON may spell them. */
function spellingsOf(secret: string): string[] {
  const afterScheme = /^\S+\s+(.{4,})$/s.exec(secret)?.[1];
  return [secret, ...(afterScheme ? [afterScheme] : [])]
    .map((text) => text.toWellFormed())
    .filter((text) => text !== '')
    .flatMap((text) => {
      const encoded = encodeURIComponent(text);
      const form = new URLSearchParams({ k: text }).toString().slice(2);
      return [
        text,
        encoded,
        encoded.replaceAll(/%../g, (code) => code.toLowerCase()),
        form,
        JSON.stringify(text).slice(1, -1),
      ];
    });
}

/** The seconds of a `Retry-After`: a number, or a date. */
export function retryAfterOf(header: string | null, now = Date.now()): number | null {
  if (header === null) return null;
  const text = header.trim();
  const date = text.endsWith(' GMT') ? Date.parse(text) : Number.NaN;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((date - now) / 1_000);
  return Number.isFinite(seconds) ? Math.min(MAX_RETRY_AFTER, Math.max(0, seconds)) : null;
}

/** A delivery that was tried, and failed. */
export interface Tried {
  /** Tries before this one. */
  tries: number;
  maxTries: number;
  queuedAt: Date;
}

/**
 * Seconds until the next try of a delivery that failed; `null` if this was the last one.
 */
export function waitAfter(
  { tries, maxTries, queuedAt }: Tried,
  retryAfter: number | null,
  now = Date.now(),
): number | null {
  if (tries + 1 >= maxTries) return null;
  const wait = Math.max(WAITS[Math.min(tries, WAITS.length - 1)]!, retryAfter ?? 0);
  const left = MAX_AGE_SECONDS - (now - queuedAt.getTime()) / 1_000;
  if (left > wait || tries < FIRST_TRIES) return wait;
  return left > 0 ? left : null;
}
