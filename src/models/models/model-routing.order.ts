/** A number from 0 (inclusive) to 1 (exclusive), like `Math.random`. */
export type RandomSource = () => number;

/** A source that returns the same numbers for the same seed (mulberry32). For reproducible answers, not for secrets. */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * The items in a weighted random order, drawn without replacement: each draw picks an item with a probability
 * proportional to its weight among the remaining items. Items of weight 0 come last, in any order. Weights are not
 * negative.
 */
export function weightedOrder<Item>(
  items: readonly Item[],
  weightOf: (item: Item) => number,
  random: RandomSource,
): Item[] {
  // An exponential race: among clocks that ring at their own rates, each is first with a probability proportional to
  // its rate.
  return items
    .map((item) => ({ item, rate: weightOf(item), wait: -Math.log1p(-random()) }))
    .map(({ item, rate, wait }) => ({ item, isLast: rate === 0, at: rate === 0 ? wait : wait / rate }))
    .sort((a, b) => Number(a.isLast) - Number(b.isLast) || a.at - b.at)
    .map(({ item }) => item);
}

/** Lower priority numbers first; within one priority, the weighted random order. */
export function routingOrder<Item extends { priority: number; weight: number }>(
  items: readonly Item[],
  random: RandomSource,
): Item[] {
  const priorities = [...new Set(items.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.flatMap((priority) =>
    weightedOrder(
      items.filter((item) => item.priority === priority),
      ({ weight }) => weight,
      random,
    ),
  );
}
