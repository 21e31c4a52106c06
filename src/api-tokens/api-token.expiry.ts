import type { Actor } from '../access/caller.ts';
import { InputError, type InputIssue, invalidInput, valueIssue } from '../core/errors.ts';
import type { TokenInput } from './api-token.rules.ts';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 90;
const MAX_DAYS = 365;
/** A token that has expired can be refreshed for so much longer. */
const REFRESH_DAYS = 30;

/**
 * When the token expires that a token is asked for by; `null` for never. What it makes never lives past that, however
 * often it is refreshed.
 */
export interface ParentLimits {
  expiresAt: Date | null;
}

/** The end of a new token; `null` for never. @throws InputError */
export function expiryOf(
  { expiresInDays, expiresAt }: TokenInput,
  now: Date,
  { allowNever, parent }: { allowNever: boolean; parent: ParentLimits | null },
): Date | null {
  const refuse = (field: string, message: string) => invalidInput(['input', field], message);
  const last = parent?.expiresAt ?? null;
  const days = (count: number) => new Date(now.getTime() + count * DAY_MS);
  // null is a wish of its own: never
  const isTwice = expiresAt !== undefined && expiresInDays !== undefined;
  if (isTwice && (expiresAt || expiresInDays)) throw refuse('expiresAt', 'give either expires_at or expires_in_days');
  if (expiresAt === undefined && expiresInDays === undefined) return earlier(days(DEFAULT_DAYS), last);
  const field = expiresAt === undefined ? 'expiresInDays' : 'expiresAt';
  const end = expiresAt ?? (expiresInDays ? days(expiresInDays) : null);
  if (!end && !allowNever) throw refuse(field, 'tokens have to expire here');
  if (expiresAt && expiresAt <= now) throw refuse(field, 'must be in the future');
  if (expiresAt && expiresAt > days(MAX_DAYS)) throw refuse(field, `must be within ${MAX_DAYS} days`);
  if (last && (!end || end > last)) throw refuse(field, 'must not be later than the end of the token that asks for it');
  return end;
}

/** The earlier of two ends; `null` is never. */
function earlier(a: Date | null, b: Date | null): Date | null {
  if (!a || !b) return a ?? b;
  return a < b ? a : b;
}

/** Until when a token can be refreshed; `null` for ever. @param endsBy the end of its family, where it has one */
export const refreshExpiryOf = (expiresAt: Date | null, endsBy: Date | null): Date | null =>
  earlier(expiresAt && new Date(expiresAt.getTime() + REFRESH_DAYS * DAY_MS), endsBy);

/** The end of a successor, which lives as long as the token before it, but never past the end of its family. */
export const successorExpiry = (
  { issuedAt, expiresAt, endsBy }: { issuedAt: Date; expiresAt: Date | null; endsBy: Date | null },
  now: Date,
): Date | null => earlier(expiresAt && new Date(now.getTime() + expiresAt.getTime() - issuedAt.getTime()), endsBy);

/** The rate that a token has by what it sets: without a burst that is twice its rate, see `CallerLimit`. */
const rateOf = ({ rateLimitRps, rateLimitBurst }: Pick<TokenInput, 'rateLimitRps' | 'rateLimitBurst'>) => ({
  rateLimitRps: rateLimitRps ?? null,
  rateLimitBurst: rateLimitBurst ?? (rateLimitRps ? 2 * rateLimitRps : null),
});

/** A token makes no faster ones. @throws InputError */
export function checkRates({ principal: { token } }: Actor, input: TokenInput): void {
  if (!token) return;
  const issues: InputIssue[] = [];
  for (const field of ['rateLimitRps', 'rateLimitBurst'] as const) {
    const own = rateOf(token)[field];
    if (own !== null && (rateOf(input)[field] ?? Number.POSITIVE_INFINITY) > own)
      issues.push(valueIssue(['input', field], `must not be above that of the token that asks for it, ${own}`));
  }
  if (issues.length > 0) throw new InputError(issues);
}
