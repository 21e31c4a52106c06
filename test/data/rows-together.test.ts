import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { RowsTogether } from '../../src/data/rows-together.ts';

it('keeps what is made for all who ask in one turn of the event loop, and no longer', async () => {
  const rows = new RowsTogether();
  const first = rows.once('a', () => ({}));
  await Promise.resolve();
  expect(rows.once('a', () => ({}))).toBe(first);
  expect(rows.once('b', () => ({}))).not.toBe(first);
  await setImmediate();
  expect(rows.once('a', () => ({}))).not.toBe(first);
});

it('keeps nothing, too', async () => {
  const rows = new RowsTogether();
  expect(rows.once('a', () => undefined)).toBeUndefined();
  expect(rows.once('a', () => 1)).toBeUndefined();
});
