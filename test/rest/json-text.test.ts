import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { jsonTextOf } from '../../rest/json-text.ts';

const items = Array.from({ length: 250 }, (_, n) => ({ n, text: `"${n}"\n`, gone: undefined, list: [n, [undefined]] }));

test('a body has the text that JSON.stringify gives, however long its lists are', async () => {
  const at = new Date(0);
  const bodies = [
    null,
    'text',
    7,
    {},
    [],
    { a: undefined, b: [], c: at },
    items.slice(0, 100),
    items.slice(0, 101),
    items.slice(0, 200),
    items,
    [...items, undefined],
    [items, ...items],
    { total: 250, gone: undefined, 'a "key"': items, next: null, at, other: items.slice(0, 3), more: items },
  ];
  for (const body of bodies) expect((await jsonTextOf(body))?.toString()).toBe(JSON.stringify(body));
});

test('a body with a list of more than a hundred items is bytes, any other one a text', async () => {
  const isText = async (body: unknown) => typeof (await jsonTextOf(body)) === 'string';
  const [short, long] = [items.slice(0, 100), items.slice(0, 101)];
  for (const body of [null, 'text', short, { short }, { inner: { long } }]) expect(await isText(body)).toBe(true);
  for (const body of [long, { long }]) expect(await isText(body)).toBe(false);
});

test('between the portions of a long list, the event loop serves others', async () => {
  let isWritten = false;
  let turns = 0;
  const written = Promise.resolve(jsonTextOf({ items })).finally(() => {
    isWritten = true;
  });
  while (!isWritten) {
    await setImmediate();
    turns++;
  }
  await written;
  expect(turns).toBeGreaterThanOrEqual(3);
});
