import type { Actor } from '../access/caller.ts';
import { InputError, type InputIssue, invalidInput } from '../graphql/errors.ts';
import type { TokenInput } from './api-token.rules.ts';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 90;
const MAX_DAYS = 365;
/** A token that has expired can be refreshed for so much longer. */
const REFRESH_DAYS = 30;

/** When the token expires that a token is asked for by; `null` for never. */
export interface ParentLimits {
  expiresAt: Date | null;
}

/** The end of a new token; `null` for never. @throws InputError */
export function expiryOf(
  { expiresInDays, expiresAt }: TokenInput,
  now: Date,
  { allowNever, parent }: { allowNever: boolean; parent: ParentLimits | null },
): Date | null {
  const at = (field: string, message: string) => invalidInput(['input', field], message);
  const last = parent?.expiresAt ?? null;
  const days = (count: number) => new Date(now.getTime() + count * DAY_MS);
  if (expiresAt) {
    if (expiresInDays) throw at('expiresAt', 'give either expires_at or expires_in_days');
    if (expiresAt <= now) throw at('expiresAt', 'must be in the future');
    if (expiresAt > days(MAX_DAYS)) throw at('expiresAt', `must be within ${MAX_DAYS} days`);
    if (last && expiresAt > last) throw at('expiresAt', 'must not be later than the end of the token that asks for it');
    return expiresAt;
  }
  if (expiresInDays === null) {
    if (!allowNever) throw at('expiresInDays', 'tokens have to expire here');
    if (last) throw at('expiresInDays', 'must not be later than the end of the token that asks for it');
    return null;
  }
  if (expiresInDays === undefined) {
    const usual = days(DEFAULT_DAYS);
    return last && last < usual ? last : usual;
  }
  const end = days(expiresInDays);
  if (last && end > last) throw at('expiresInDays', 'must not be later than the end of the token that asks for it');
  return end;
}

/** Until when a token can be refreshed; `null` for ever. */
export const refreshExpiryOf = (expiresAt: Date | null): Date | null =>
  expiresAt && new Date(expiresAt.getTime() + REFRESH_DAYS * DAY_MS);

/** The end of a successor, which lives as long as the token before it. */
export const successorExpiry = (
  { issuedAt, expiresAt }: { issuedAt: Date; expiresAt: Date | null },
  now: Date,
): Date | null => expiresAt && new Date(now.getTime() + expiresAt.getTime() - issuedAt.getTime());

/** A token makes no faster ones. @throws InputError */
export function checkRates({ principal: { token } }: Actor, input: TokenInput): void {
  if (!token) return;
  const issues: InputIssue[] = [];
  for (const field of ['rateLimitRps', 'rateLimitBurst'] as const) {
    const own = token[field];
    if (own !== null && (input[field] ?? Number.POSITIVE_INFINITY) > own)
      issues.push(
        ...invalidInput(['input', field], `must not be above that of the token that asks for it, ${own}`).issues,
      );
  }
  if (issues.length > 0) throw new InputError(issues);
}
