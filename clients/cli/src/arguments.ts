import { InvalidArgumentError } from 'commander';
import { UsageError } from './failures.ts';

/** The number in an option. @throws InvalidArgumentError for what is no positive number */
export function countOf(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a positive number.');
  return Number(text);
}

/** The values in `NAME=VALUE`, by name. @throws UsageError for what has no name */
export function valuesOf(pairs: readonly string[], noun: string): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError(`A ${noun} is NAME=VALUE: '${pair}' is none.`);
    values[pair.slice(0, at)] = jsonOrText(pair.slice(at + 1));
  }
  return values;
}

/** Numbers, lists and objects are JSON; everything else is a text. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
