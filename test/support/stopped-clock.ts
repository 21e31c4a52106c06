import { onTestFinished, vi } from 'vitest';

/** Stops the clock until the end of the test. @param at where it stands */
export function stopClock(at = Date.now()): void {
  vi.useFakeTimers({ toFake: ['Date'], now: at });
  onTestFinished(() => void vi.useRealTimers());
}

/** The same, if two answers are compared that tell when they were given: analytics are of the moment. */
export function stopClockFor(what: string): void {
  if (/analytics/i.test(what)) stopClock();
}
