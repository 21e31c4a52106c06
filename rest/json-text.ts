import { setImmediate } from 'node:timers/promises';

/** Most items of a list that are written at once. */
const PORTION = 100;

/**
 * The JSON text of a body, the same as that of `JSON.stringify`. The lists of a body are written in portions, between
 * which other requests have their turn: a megabyte at once would keep them all waiting.
 */
export async function jsonTextOf(body: unknown): Promise<string> {
  if (isLong(body)) return textOfList(body);
  if (typeof body !== 'object' || body === null || !Object.values(body).some(isLong)) return JSON.stringify(body);
  const fields: string[] = [];
  for (const [key, value] of Object.entries(body)) {
    const text = isLong(value) ? await textOfList(value) : (JSON.stringify(value) as string | undefined);
    if (text !== undefined) fields.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${fields.join(',')}}`;
}

const isLong = (value: unknown): value is unknown[] => Array.isArray(value) && value.length > PORTION;

async function textOfList(items: readonly unknown[]): Promise<string> {
  const portions: string[] = [];
  for (let from = 0; from < items.length; from += PORTION) {
    await setImmediate();
    portions.push(JSON.stringify(items.slice(from, from + PORTION)).slice(1, -1));
  }
  return `[${portions.join(',')}]`;
}
