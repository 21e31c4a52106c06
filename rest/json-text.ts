import { setImmediate } from 'node:timers/promises';

/** Most items of a list that are written at once. */
const PORTION = 100;

const COMMA = 0x2c;

/**
 * The JSON text of a body, the same as that of `JSON.stringify`; in UTF-8 if the body is or has a long list. Such lists
 * are written in portions, between which other requests have their turn: a megabyte at once would keep them all
 * waiting. As bytes, the text is made and measured only once; strings of its size are what fills the heap. The text of
 * any other body is there at once.
 */
export function jsonTextOf(body: unknown): string | Promise<Buffer> {
  if (isLong(body)) return bytesOf((parts) => addList(parts, body));
  if (typeof body !== 'object' || body === null || !Object.values(body).some(isLong)) return JSON.stringify(body);
  return bytesOf((parts) => addFields(parts, body));
}

async function bytesOf(add: (parts: Buffer[]) => Promise<void>): Promise<Buffer> {
  const parts: Buffer[] = [];
  await add(parts);
  await setImmediate();
  return Buffer.concat(parts);
}

const isLong = (value: unknown): value is unknown[] => Array.isArray(value) && value.length > PORTION;

async function addFields(parts: Buffer[], object: object): Promise<void> {
  let before = '{';
  for (const [key, value] of Object.entries(object)) {
    const text = isLong(value) ? '' : (JSON.stringify(value) as string | undefined);
    if (text === undefined) continue;
    parts.push(Buffer.from(`${before}${JSON.stringify(key)}:${text}`));
    if (isLong(value)) await addList(parts, value);
    before = ',';
  }
  parts.push(Buffer.from('}'));
}

async function addList(parts: Buffer[], items: readonly unknown[]): Promise<void> {
  for (let from = 0; from < items.length; from += PORTION) {
    await setImmediate();
    const bytes = Buffer.from(JSON.stringify(items.slice(from, from + PORTION)));
    const isLast = from + PORTION >= items.length;
    // between two portions there is a comma in place of their brackets
    if (from > 0) bytes[0] = COMMA;
    parts.push(isLast ? bytes : bytes.subarray(0, -1));
  }
}
