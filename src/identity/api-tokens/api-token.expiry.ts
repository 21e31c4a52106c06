import type { Caller } from '../../kernel/caller.ts';
import { InputError, type InputIssue, invalidInput, valueIssue } from '../../kernel/errors.ts';
import type { TokenInput } from './api-token.rules.ts';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 90;
const MAX_DAYS = 365;
/** How much longer an expired token can be refreshed. */
const REFRESH_DAYS = 30;

/**
 * Expiry of the token that asks for a new one; `null` never expires. No token that it creates outlives it, however
 * often it is refreshed.
 */
export interface ParentLimits {
  expiresAt: Date | null;
}

/** Expiry of a new token; `null` never expires. @throws InputError */
export function expiryOf(
  { expiresInDays, expiresAt }: TokenInput,
  now: Date,
  { allowNever, parent }: { allowNever: boolean; parent: ParentLimits | null },
): Date | null {
  const refuse = (field: string, message: string) => invalidInput(['input', field], message);
  const last = parent?.expiresAt ?? null;
  const days = (count: number) => new Date(now.getTime() + count * DAY_MS);
  // An explicit null asks for a token that never expires.
  const isTwice = expiresAt !== undefined && expiresInDays !== undefined;
  if (isTwice && (expiresAt || expiresInDays)) throw refuse('expiresAt', 'give either expires_at or expires_in_days');
  if (expiresAt === undefined && expiresInDays === undefined) return earlier(days(DEFAULT_DAYS), last);
  const field = expiresAt === undefined ? 'expiresInDays' : 'expiresAt';
  const end = expiresAt ?? (expiresInDays ? days(expiresInDays) : null);
  if (!end && !allowNever) throw refuse(field, 'this service requires an expiry: give expires_at or expires_in_days');
  if (expiresAt && expiresAt <= now) throw refuse(field, 'must be in the future');
  if (expiresAt && expiresAt > days(MAX_DAYS)) throw refuse(field, `must be within ${MAX_DAYS} days`);
  if (last && (!end || end > last))
    throw refuse(field, 'must not be later than the expiry of the token that creates it');
  return end;
}

/** The earlier of two ends; `null` is never. */
function earlier(a: Date | null, b: Date | null): Date | null {
  if (!a || !b) return a ?? b;
  return a < b ? a : b;
}

/** End of the refresh period; `null` never ends. @param endsBy the end of the token's family, if it has one */
export const refreshExpiryOf = (expiresAt: Date | null, endsBy: Date | null): Date | null =>
  earlier(expiresAt && new Date(expiresAt.getTime() + REFRESH_DAYS * DAY_MS), endsBy);

/** Expiry of a successor: it lives as long as the token before it, but not past the end of its family. */
export const successorExpiry = (
  { issuedAt, expiresAt, endsBy }: { issuedAt: Date; expiresAt: Date | null; endsBy: Date | null },
  now: Date,
): Date | null => earlier(expiresAt && new Date(now.getTime() + expiresAt.getTime() - issuedAt.getTime()), endsBy);

/** The effective rate of a token. Default burst: twice the rate, see `CallerLimit`. */
const rateOf = ({ rateLimitRps, rateLimitBurst }: Pick<TokenInput, 'rateLimitRps' | 'rateLimitBurst'>) => ({
  rateLimitRps: rateLimitRps ?? null,
  rateLimitBurst: rateLimitBurst ?? (rateLimitRps ? 2 * rateLimitRps : null),
});

/** A token cannot create a token with a higher rate limit. @throws InputError */
export function checkRates({ principal: { token } }: Caller, input: TokenInput): void {
  if (!token) return;
  const issues: InputIssue[] = [];
  for (const field of ['rateLimitRps', 'rateLimitBurst'] as const) {
    const own = rateOf(token)[field];
    if (own !== null && (rateOf(input)[field] ?? Number.POSITIVE_INFINITY) > own)
      issues.push(valueIssue(['input', field], `must not be above the limit of the token that creates it, ${own}`));
  }
  if (issues.length > 0) throw new InputError(issues);
}
