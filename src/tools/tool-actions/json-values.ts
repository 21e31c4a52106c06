import { isJsonObject } from '../../kernel/json-object.ts';

const tests: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isJsonObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
};

/** Whether a value has a type of JSON Schema. A type that is another word fits every value. */
export const typeMatches = (type: string, value: unknown): boolean =>
  Object.hasOwn(tests, type) ? tests[type]!(value) : true;

/** A copy of JSON with other texts, those of keys too, and other numbers. The value must not be nested too deeply. */
export function withTexts(
  value: unknown,
  write: (text: string) => string,
  writeNumber: (number: number) => unknown,
): unknown {
  if (typeof value === 'string') return write(value);
  if (typeof value === 'number') return writeNumber(value);
  if (Array.isArray(value)) return value.map((item) => withTexts(item, write, writeNumber));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [write(key), withTexts(item, write, writeNumber)]),
  );
}
