const MAX_ITEMS = 10;
const MAX_DEPTH = 2;

/** A value as graphql-js prints it in its messages: the library does not export its function. */
export function printedValue(value: unknown, around: readonly object[] = []): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return value.name ? `[function ${value.name}]` : '[function]';
  if (typeof value !== 'object' || value === null) return String(value);
  if (around.includes(value)) return '[Circular]';
  const within = [...around, value];
  if (isJsonable(value)) {
    const json = value.toJSON();
    if (json !== value) return typeof json === 'string' ? json : printedValue(json, within);
  } else if (Array.isArray(value)) {
    return printedArray(value, within);
  }
  return printedObject(value, within);
}

const isJsonable = (value: object): value is { toJSON(): unknown } =>
  'toJSON' in value && typeof value.toJSON === 'function';

function printedArray(array: readonly unknown[], within: readonly object[]): string {
  if (array.length === 0) return '[]';
  if (within.length > MAX_DEPTH) return '[Array]';
  const items = array.slice(0, MAX_ITEMS).map((item) => printedValue(item, within));
  const more = array.length - items.length;
  if (more > 0) items.push(`... ${more} more ${more === 1 ? 'item' : 'items'}`);
  return `[${items.join(', ')}]`;
}

function printedObject(object: object, within: readonly object[]): string {
  const entries = Object.entries(object);
  if (entries.length === 0) return '{}';
  if (within.length > MAX_DEPTH) return `[${kindOf(object)}]`;
  return `{ ${entries.map(([key, value]) => `${key}: ${printedValue(value, within)}`).join(', ')} }`;
}

/** The name of its class, or of its kind for what has none. */
function kindOf(object: object): string {
  const kind = Object.prototype.toString.call(object).slice('[object '.length, -1);
  const { constructor: maker } = object;
  return kind === 'Object' && typeof maker === 'function' ? maker.name || kind : kind;
}
