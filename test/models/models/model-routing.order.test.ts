import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { routingOrder, seededRandom, weightedOrder } from '../../../src/models/models/model-routing.order.ts';

interface Item {
  name: number;
  weight: number;
  priority: number;
}

const items = fc
  .array(fc.record({ weight: fc.integer({ min: 0, max: 1000 }), priority: fc.integer({ min: 1, max: 4 }) }), {
    maxLength: 12,
  })
  .map((list) => list.map((item, name): Item => ({ ...item, name })));
const seed = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const weightOf = ({ weight }: Item) => weight;
const runs = { seed: 20_261_121, numRuns: 500 };

describe('the order', () => {
  test('holds every item once, and nothing else', () => {
    fc.assert(
      fc.property(items, seed, (list, given) => {
        const ordered = weightedOrder(list, weightOf, seededRandom(given));
        expect(ordered.map(({ name }) => name).sort((a, b) => a - b)).toEqual(list.map(({ name }) => name));
      }),
      runs,
    );
  });

  test('is the same for the same seed', () => {
    fc.assert(
      fc.property(items, seed, (list, given) => {
        expect(routingOrder(list, seededRandom(given))).toEqual(routingOrder(list, seededRandom(given)));
      }),
      runs,
    );
  });

  test('never puts a higher priority number first, nor within one priority a weight of 0', () => {
    fc.assert(
      fc.property(items, seed, (list, given) => {
        const ordered = routingOrder(list, seededRandom(given));
        for (let i = 1; i < ordered.length; i++) {
          const [before, after] = [ordered[i - 1]!, ordered[i]!];
          expect(before.priority).toBeLessThanOrEqual(after.priority);
          if (before.priority === after.priority && before.weight === 0) expect(after.weight).toBe(0);
        }
      }),
      runs,
    );
  });

  test('does not fail at the ends of the random source', () => {
    const list = [1, 2, 3].map((name) => ({ name, weight: name * 10, priority: 1 }));
    for (const value of [0, 1 - 2 ** -32]) expect(weightedOrder(list, weightOf, () => value)).toHaveLength(3);
  });
});

/** Sum over the outcomes of (observed - expected)² / expected. */
function chiSquare(observed: readonly number[], chances: readonly number[], draws: number): number {
  return observed.reduce((sum, count, index) => {
    const expected = chances[index]! * draws;
    return sum + (count - expected) ** 2 / expected;
  }, 0);
}

/** With k outcomes a fair source stays below it but for one time in a million (Wilson and Hilferty). */
const bound = (k: number) => (k - 1) * (1 - 2 / (9 * (k - 1)) + 4.75 * Math.sqrt(2 / (9 * (k - 1)))) ** 3;

describe('the chances', () => {
  const draws = 20_000;
  const weights = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 2, maxLength: 6 });

  test('of being first are the weights', () => {
    fc.assert(
      fc.property(weights, seed, (list, given) => {
        // outcomes that are too rare for the approximation would be judged by it wrongly
        fc.pre(Math.min(...list) / list.reduce((sum, weight) => sum + weight, 0) > 0.001);
        const random = seededRandom(given);
        const total = list.reduce((sum, weight) => sum + weight, 0);
        const observed = list.map(() => 0);
        const indexes = list.map((_, index) => index);
        for (let i = 0; i < draws; i++) observed[weightedOrder(indexes, (index) => list[index]!, random)[0]!]! += 1;
        const found = chiSquare(
          observed,
          list.map((weight) => weight / total),
          draws,
        );
        expect(found).toBeLessThan(bound(list.length));
      }),
      { seed: 7, numRuns: 25 },
    );
  });

  test('of being second are the weights of those that are left', () => {
    const list = [500, 300, 150, 50];
    const random = seededRandom(3);
    const pairs = list.flatMap((_, first) => list.flatMap((__, second) => (first === second ? [] : [[first, second]])));
    const chances = pairs.map(([first, second]) => (list[first!]! / 1000) * (list[second!]! / (1000 - list[first!]!)));
    const observed = pairs.map(() => 0);
    for (let i = 0; i < 50_000; i++) {
      const [first, second] = weightedOrder([0, 1, 2, 3], (index) => list[index]!, random);
      observed[pairs.findIndex(([a, b]) => a === first && b === second)]! += 1;
    }
    expect(chances.reduce((sum, chance) => sum + chance, 0)).toBeCloseTo(1);
    expect(chiSquare(observed, chances, 50_000)).toBeLessThan(bound(pairs.length));
  });

  test('are told apart from equal ones by the same measure', () => {
    const random = seededRandom(1);
    const observed = [0, 0];
    for (let i = 0; i < draws; i++) observed[weightedOrder([0, 1], (index) => [55, 45][index]!, random)[0]!]! += 1;
    expect(chiSquare(observed, [0.5, 0.5], draws)).toBeGreaterThan(bound(2));
  });
});
