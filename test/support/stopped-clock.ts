import { onTestFinished, vi } from 'vitest';

/** Stops the clock until the end of the test. */
export function stopClock(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
}

/** The same, if two answers are compared that tell when they were given: analytics are of the moment. */
export function stopClockFor(what: string): void {
  if (/analytics/i.test(what)) stopClock();
}
