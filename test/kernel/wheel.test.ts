import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Wheel } from '../../src/kernel/wheel.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a wheel', () => {
  it('gives each member a turn once in a period, by one timer', () => {
    const wheel = new Wheel(12_000);
    const turns = Array.from({ length: 100 }, () => vi.fn());
    for (const [index, turn] of turns.entries()) {
      wheel.add(turn);
      if (index % 10 === 0) vi.advanceTimersByTime(450);
    }
    expect(vi.getTimerCount()).toBe(1);
    for (const turn of turns) turn.mockClear();
    vi.advanceTimersByTime(24_000);
    for (const turn of turns) expect(turn).toHaveBeenCalledTimes(2);
  });

  it('gives the first turn a period after the member came, and none after it left', () => {
    const wheel = new Wheel(12_000);
    const turn = vi.fn();
    const leave = wheel.add(turn);
    vi.advanceTimersByTime(11_999);
    expect(turn).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(turn).toHaveBeenCalledTimes(1);
    leave();
    leave();
    vi.advanceTimersByTime(60_000);
    expect(turn).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('takes members away during their own turn', () => {
    const wheel = new Wheel(12_000);
    const others = vi.fn();
    const leave = wheel.add(() => leave());
    wheel.add(others);
    vi.advanceTimersByTime(24_000);
    expect(others).toHaveBeenCalledTimes(2);
  });
});
