import { InputError, type InputIssue } from '../graphql/errors.ts';
import type { SecretValue } from './envelope.ts';

const MAX_KEY_LENGTH = 255;
const MASK = '********';

/**
 * A value is an object with at least one key; keys have 1 to 255 characters, what they hold is a JSON scalar or an object.
 * @throws InputError, which never repeats what is inside
 */
export function checkValue(value: SecretValue, path: readonly string[]): void {
  const issues: InputIssue[] = [];
  const refuse = (key: string | null, msg: string) =>
    issues.push({
      path: key === null ? [...path] : [...path, key],
      type: 'value_error',
      msg: `Value error, ${msg}`,
      input: '[redacted]',
      ctx: { error: msg },
    });
  const entries = Object.entries(value);
  if (entries.length === 0) refuse(null, 'it must have at least one key');
  for (const [key, held] of entries) {
    const length = [...key].length;
    if (length === 0 || length > MAX_KEY_LENGTH) {
      refuse(null, `keys must have 1 to ${MAX_KEY_LENGTH} characters`);
      break; // such a key is not repeated either
    }
    if (Array.isArray(held)) refuse(key, 'it must be a string, a number, a boolean, null or an object');
  }
  if (issues.length > 0) throw new InputError(issues);
}

/** The same keys, and nothing of what they hold. */
export const masked = (value: SecretValue): SecretValue =>
  Object.fromEntries(Object.keys(value).map((key) => [key, MASK]));
