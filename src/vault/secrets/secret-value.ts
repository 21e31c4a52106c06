import { InputError, type InputIssue } from '../../kernel/errors.ts';
import type { SecretValue } from './envelope.ts';

const MAX_KEY_LENGTH = 255;
const MASK = '********';

/**
 * Checks a value: an object with at least one key, keys of 1 to 255 characters, each with a JSON scalar or an object.
 * Numbers must survive a round trip: `1e400` and `12345678901234567890` would not.
 * @throws InputError, which never repeats the content
 */
export function checkValue(value: SecretValue, path: readonly string[]): void {
  const issues: InputIssue[] = [];
  const refuse = (where: readonly (string | number)[], msg: string) =>
    issues.push({
      path: [...path, ...where],
      type: 'value_error',
      msg: `Value error, ${msg}`,
      input: '[redacted]',
      ctx: { error: msg },
    });
  const entries = Object.entries(value);
  if (entries.length === 0) refuse([], 'it must have at least one key');
  for (const [key, held] of entries) {
    const length = [...key].length;
    if (length === 0 || length > MAX_KEY_LENGTH) {
      refuse([], `keys must have 1 to ${MAX_KEY_LENGTH} characters`);
      break; // the error must not repeat such a key either
    }
    if (Array.isArray(held)) refuse([key], 'it must be a string, a number, a boolean, null or an object');
    const inexact = inexactNumber(held);
    if (inexact) refuse([key, ...inexact], 'the number is too large to be kept exactly: send it as a string');
  }
  if (issues.length > 0) throw new InputError(issues);
}

/** Path of the first number that JSON does not keep exactly; null if there is none. The depth was limited before. */
function inexactNumber(held: unknown): (string | number)[] | null {
  if (typeof held === 'number') {
    const isExact = Number.isFinite(held) && (!Number.isInteger(held) || Number.isSafeInteger(held));
    return isExact ? null : [];
  }
  if (typeof held !== 'object' || held === null) return null;
  for (const [key, inner] of Object.entries(held)) {
    const found = inexactNumber(inner);
    if (found) return [Array.isArray(held) ? Number(key) : key, ...found];
  }
  return null;
}

/** The same keys with masked values. */
export const masked = (value: SecretValue): SecretValue =>
  Object.fromEntries(Object.keys(value).map((key) => [key, MASK]));
