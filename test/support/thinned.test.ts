import fc from 'fast-check';
import { describe, expect, inject, test } from 'vitest';
import { thinned, thirdOf } from './thinned.ts';

const values = fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 40 });
const seeds = fc.nat({ max: 2 ** 31 });

describe('a third of the values of a generated matrix', () => {
  test('three successive seeds pick every value once, and each of them at least one', () => {
    fc.assert(
      fc.property(values, fc.string(), seeds, (all, key, seed) => {
        const picks = [0, 1, 2].map((more) => thirdOf(all, key, seed + more));
        const size = Math.min(3, all.length);
        for (const picked of picks) expect(picked.length).toBeGreaterThanOrEqual(Math.floor(all.length / size));
        for (const picked of picks) expect(picked.length).toBeLessThanOrEqual(Math.ceil(all.length / size));
        expect(new Set(picks.flat())).toEqual(new Set(all));
        expect(picks.flat().length).toBe(all.length < 3 ? picks.length : all.length);
      }),
    );
  });

  test('keep their order, and are the same whenever they are asked for', () => {
    fc.assert(
      fc.property(values, fc.string(), seeds, (all, key, seed) => {
        const picked = thirdOf(all, key, seed);
        expect(picked).toEqual(all.filter((value) => picked.includes(value)));
        expect(thirdOf(all, key, seed)).toEqual(picked);
      }),
    );
  });

  test('differ from list to list', () => {
    const all = Array.from({ length: 30 }, (_, index) => index);
    const picks = Array.from({ length: 20 }, (_, list) => thirdOf(all, `list ${list}`, 7).join());
    expect(new Set(picks).size).toBeGreaterThan(15);
  });

  test('are not the first or each third of a list', () => {
    const all = Array.from({ length: 30 }, (_, index) => index);
    const steps = thirdOf(all, 'steps', 0).map((value, index, picked) => value - (picked[index - 1] ?? value));
    expect(new Set(steps.slice(1)).size).toBeGreaterThan(1);
  });
});

test('without a seed all values are picked, of an empty list none', () => {
  expect(thirdOf([1, 2, 3, 4], 'list', null)).toEqual([1, 2, 3, 4]);
  expect(thirdOf([], 'list', 1)).toEqual([]);
});

test('the run has one seed', () => {
  const all = Array.from({ length: 30 }, (_, index) => index);
  expect(thinned(all, 'list')).toEqual(thirdOf(all, 'list', inject('seed')));
});
