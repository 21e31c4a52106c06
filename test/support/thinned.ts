import { hash } from 'node:crypto';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Chooses what {@link thinned} picks in this test run; `null` picks everything. */
    seed: number | null;
  }
}

/** Three runs with successive seeds pick every value. */
const PARTS = 3;

/** Whether this run does everything: `npm run test:all`. What is done for a while at random is then done for longer. */
export const isWhole = (): boolean => inject('seed') === null;

/** A third of the values, in their order, chosen by the seed of the test run; all of them in `npm run test:all`. */
export const thinned = <T>(values: readonly T[], key: string): T[] => thirdOf(values, key, inject('seed'));

/**
 * A third of the values, and at least one. The choice depends on the arguments alone, so that it is the same in every
 * process and in any order of the tests. Any three successive seeds choose every value.
 * @param key tells this list from others, so that lists of the same values differ in their choice
 * @param seed a whole number; `null` chooses all values
 */
export function thirdOf<T>(values: readonly T[], key: string, seed: number | null): T[] {
  if (seed === null) return [...values];
  const parts = Math.min(PARTS, values.length);
  const shuffled = values
    .map((_, index) => ({ index, place: hash('sha1', `${key}\0${index}`) }))
    .sort((a, b) => (a.place < b.place ? -1 : 1));
  const turn = (seed + Number.parseInt(hash('sha1', key).slice(0, 8), 16)) % parts;
  const chosen = new Set(shuffled.filter((_, rank) => rank % parts === turn).map(({ index }) => index));
  return values.filter((_, index) => chosen.has(index));
}
