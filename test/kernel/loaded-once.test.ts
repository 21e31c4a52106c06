import { expect, test } from 'vitest';
import { loadedOnce } from '../../src/kernel/loaded-once.ts';

test('what could not be loaded is loaded again by the next', async () => {
  let tries = 0;
  const load = loadedOnce(async () => {
    tries++;
    if (tries === 1) throw new Error('not yet');
    return Promise.resolve(tries);
  });
  await expect(load()).rejects.toThrow('not yet');
  expect([await load(), await load()]).toEqual([2, 2]);
});
