// own process: it stops the timers that an app of other files would set
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CountedAttempts } from '../../../src/identity/auth/counted-attempts.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a million attempts are a record a minute, and no attempt is lost', () => {
  const attempts = new CountedAttempts();
  const records: number[] = [];
  const note = () => attempts.note('usr_1', (count) => records.push(count));
  for (let minute = 0; minute < 3; minute++) {
    for (let attempt = 0; attempt < 1_000; attempt++) note();
    vi.advanceTimersByTime(60_000);
  }
  expect(records).toEqual([1, 999, 1_000, 1_000]);
  // a quiet minute ends it: the next attempt is recorded at once
  vi.advanceTimersByTime(60_000);
  note();
  expect(records).toEqual([1, 999, 1_000, 1_000, 1]);
  expect(vi.getTimerCount()).toBe(1);
});

test('of more accounts than are counted, each attempt is told: none is lost', () => {
  const attempts = new CountedAttempts();
  let records = 0;
  for (let account = 0; account < 12_000; account++) attempts.note(`usr_${account}`, () => records++);
  expect(records).toBe(12_000);
  attempts.note('usr_11999', () => records++);
  attempts.note('usr_0', () => records++);
  expect(records).toBe(12_001);
  attempts.flush();
  expect(records).toBe(12_002);
  expect(vi.getTimerCount()).toBe(0);
});
