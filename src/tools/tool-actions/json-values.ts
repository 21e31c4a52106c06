/** Whether a value is an object of JSON. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const tests: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isRecord,
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
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [write(key), withTexts(item, write, writeNumber)]),
  );
}

/** The JSON of a value with its keys in order: equal values have equal texts. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) =>
    isRecord(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) : item,
  );
