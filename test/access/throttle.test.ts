import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Budget, TokenBuckets } from '../../src/access/throttle.ts';

describe('a token bucket', () => {
  it('lets a burst through at once, then what flows in', () => {
    const buckets = new TokenBuckets(2, 3);
    const take = (now: number) => buckets.take('a', 1, now);
    expect(take(0)).toEqual({ allowed: true, limit: 3, remaining: 2, resetSeconds: 1, retryAfter: 0 });
    expect(take(0)).toEqual({ allowed: true, limit: 3, remaining: 1, resetSeconds: 1, retryAfter: 0 });
    expect(take(0)).toEqual({ allowed: true, limit: 3, remaining: 0, resetSeconds: 2, retryAfter: 0 });
    expect(take(0)).toEqual({ allowed: false, limit: 3, remaining: 0, resetSeconds: 2, retryAfter: 1 });
    expect(take(499)).toMatchObject({ allowed: false });
    expect(take(500)).toEqual({ allowed: true, limit: 3, remaining: 0, resetSeconds: 2, retryAfter: 0 });
  });

  it('never holds more than its burst', () => {
    const buckets = new TokenBuckets(2, 3);
    buckets.take('a', 1, 0);
    expect(buckets.take('a', 1, 1_000_000)).toMatchObject({ remaining: 2, resetSeconds: 1 });
  });

  it('is another one for another key', () => {
    const buckets = new TokenBuckets(1, 1);
    expect(buckets.take('a', 1, 0).allowed).toBe(true);
    expect(buckets.take('b', 1, 0).allowed).toBe(true);
    expect(buckets.take('a', 1, 0).allowed).toBe(false);
  });

  it('gives all that is asked or nothing', () => {
    const buckets = new TokenBuckets(1, 5);
    expect(buckets.take('a', 6, 0)).toMatchObject({ allowed: false, remaining: 5, retryAfter: 1 });
    expect(buckets.take('a', 5, 0)).toMatchObject({ allowed: true, remaining: 0, resetSeconds: 5 });
    expect(buckets.take('a', 4, 0)).toMatchObject({ allowed: false, retryAfter: 4 });
  });

  it('tells whole seconds to wait, at least one', () => {
    const buckets = new TokenBuckets(100, 1);
    buckets.take('a', 1, 0);
    expect(buckets.take('a', 1, 0).retryAfter).toBe(1);
    const slow = new TokenBuckets(0.1, 1);
    slow.take('a', 1, 0);
    expect(slow.take('a', 1, 500).retryAfter).toBe(10);
    expect(slow.take('a', 1, 9_999).allowed).toBe(false);
    expect(slow.take('a', 1, 10_000).allowed).toBe(true);
  });

  it('does not run backwards with the clock', () => {
    const buckets = new TokenBuckets(1, 2);
    buckets.take('a', 1, 5_000);
    expect(buckets.take('a', 1, 1_000)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('has at least one request, and the line of a key if that has its own', () => {
    expect(new TokenBuckets(1, 0).take('a', 1, 0)).toMatchObject({ allowed: true, limit: 1, remaining: 0 });
    const buckets = new TokenBuckets(1, 1);
    expect(buckets.take('a', 1, 0, { rps: 10, burst: 20 })).toMatchObject({ limit: 20, remaining: 19 });
    expect(buckets.take('a', 19, 0, { rps: 10, burst: 20 })).toMatchObject({ allowed: true, resetSeconds: 2 });
  });

  it('takes back what was not needed, up to its burst', () => {
    const buckets = new TokenBuckets(1, 3);
    buckets.take('a', 3, 0);
    buckets.giveBack('a', 2);
    expect(buckets.take('a', 2, 0)).toMatchObject({ allowed: true, remaining: 0 });
    buckets.giveBack('a');
    expect(buckets.take('a', 1, 0)).toMatchObject({ allowed: true, remaining: 0 });
    buckets.giveBack('a', 9);
    expect(buckets.take('a', 1, 0)).toMatchObject({ allowed: true, remaining: 2 });
    const least = new TokenBuckets(1, 0);
    least.take('a', 1, 0);
    least.giveBack('a', 9);
    expect(least.take('a', 1, 0)).toMatchObject({ allowed: true, remaining: 0 });
    buckets.giveBack('unknown');
    expect(buckets.take('unknown', 1, 0)).toMatchObject({ remaining: 2 });
  });
});

describe('a budget', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  it('has so many points for each key', async () => {
    const budget = new Budget(2, 60);
    expect([await budget.take('a'), await budget.take('a'), await budget.take('b')]).toEqual([0, 0, 0]);
    const wait = await budget.take('a');
    expect(wait).toBe(60);
  });

  it('refuses who demands more, and says how long to wait', async () => {
    const budget = new Budget(1, 60);
    await budget.demand('a');
    await expect(budget.demand('a')).rejects.toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
      details: { retry_after: 60 },
    });
    await budget.demand('b');
  });

  it('is looked at without taking anything', async () => {
    const budget = new Budget(1, 60);
    for (let time = 0; time < 3; time++) await budget.check('a');
    await budget.demand('a');
    await expect(budget.check('a')).rejects.toMatchObject({
      code: 'RATE_LIMIT_EXCEEDED',
      details: { retry_after: 60 },
    });
    await budget.check('b');
    const larger = new Budget(2, 60);
    await larger.demand('a');
    await larger.check('a');
  });
});
