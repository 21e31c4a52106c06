import { expect } from 'vitest';

/** What was done, and the span of time in which it was. */
export interface Dated<T> {
  result: T;
  /** Expects a time that lies so much after a moment of that span: however long the machine took, it is true. */
  expectAfter: (ms: number, time: Date | string | null) => void;
}

/** Does something that dates something. */
export async function dated<T>(work: () => Promise<T>): Promise<Dated<T>> {
  const from = Date.now();
  const result = await work();
  const until = Date.now();
  return {
    result,
    expectAfter: (ms, time) => {
      const moment = new Date(time ?? Number.NaN).getTime() - ms;
      expect(moment).toBeGreaterThanOrEqual(from);
      // the database rounds to a millisecond
      expect(moment).toBeLessThanOrEqual(until + 1);
    },
  };
}
