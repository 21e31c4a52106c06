import { describe, expect, it } from 'vitest';
import { Turns } from '../../src/data/turns.ts';

describe('the places of jobs', () => {
  it('are those of a queue for one owner, and of one queue each for several', () => {
    const turns = new Turns();
    expect(Array.from({ length: 4 }, () => turns.next('a', 0))).toEqual([0, 1, 2, 3]);
    expect([turns.next('b', 0), turns.next('a', 0), turns.next('b', 0)]).toEqual([0, 4, 1]);
  });

  it('are forgotten with time, one a second', () => {
    const turns = new Turns();
    for (let n = 0; n < 10; n++) turns.next('a', 0);
    expect(turns.next('a', 4_000)).toBe(6);
    expect(turns.next('a', 100_000)).toBe(0);
    const later = 86_400_000;
    for (let n = 0; n < 5; n++) turns.next('b', later);
    expect([turns.next('b', later + 2_000), turns.next('b', later + 3_000)]).toEqual([3, 3]);
  });

  it('have a number that the queue can store, however many there are', () => {
    const turns = new Turns();
    let last = 0;
    for (let n = 0; n < 40_000; n++) last = turns.next('a', 0);
    expect(last).toBe(30_000);
  });
});
