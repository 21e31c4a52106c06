import { expect, test } from 'vitest';
import { Slots } from '../../src/kernel/slots.ts';

test('the last slots are for owners of whom nothing runs, and who waits goes on when there is room', async () => {
  const slots = new Slots({ total: 4, perOwner: 3, waitingPerOwner: 9, reserved: 2 }, () => new Error('busy'));
  const { signal } = new AbortController();
  const started: string[] = [];
  const take = async (owner: string) => {
    await slots.take(owner, signal);
    started.push(owner);
  };
  const all = ['a', 'a', 'a', 'b', 'b', 'c', 'd'].map(take);
  expect([slots.running, slots.waiting]).toEqual([4, 3]);
  await Promise.all([all[0], all[1], all[3], all[5]]);
  expect(started).toEqual(['a', 'a', 'b', 'c']);
  slots.release('c');
  await all[6];
  expect(started.at(-1)).toBe('d');
  slots.release('b');
  await all[4];
  expect([started.at(-1), slots.running, slots.waiting]).toEqual(['b', 4, 1]);
  slots.release('d');
  slots.release('b');
  expect([slots.running, slots.waiting]).toEqual([2, 1]);
  slots.release('a');
  await all[2];
  expect([slots.running, slots.waiting]).toEqual([2, 0]);
});
