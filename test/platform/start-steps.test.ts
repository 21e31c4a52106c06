// own process: its clock stands still
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../src/platform/logger.ts';
import { StartSteps } from '../../src/platform/start-steps.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const loggerTo = (lines: object[]) =>
  createLogger({ logLevel: 'info' }, { write: (line) => void lines.push(JSON.parse(line) as object) });

it('says each step when it begins, and again every four seconds, with how far it is', () => {
  const lines: object[] = [];
  const steps = new StartSteps(loggerTo(lines));
  steps.begin('creating', { folder: '/data' });
  vi.advanceTimersByTime(3_999);
  steps.begin('migrating');
  steps.progress({ done: 3, total: 9 });
  vi.advanceTimersByTime(8_000);
  steps.end();
  vi.advanceTimersByTime(60_000);
  expect(lines).toEqual(
    [
      { msg: 'creating', folder: '/data' },
      { msg: 'migrating' },
      { msg: 'still migrating', done: 3, total: 9, seconds: 4 },
      { msg: 'still migrating', done: 3, total: 9, seconds: 8 },
    ].map((line) => expect.objectContaining(line)),
  );
});

it('shows a bar on a terminal in place of more lines', () => {
  const lines: object[] = [];
  const shown: string[] = [];
  const steps = new StartSteps(loggerTo(lines), (text) => shown.push(text));
  steps.begin('migrating');
  vi.advanceTimersByTime(1_000);
  steps.progress({ done: 1, total: 2 });
  steps.end();
  expect(lines).toHaveLength(1);
  expect(shown.slice(1)).toEqual([
    '  migrating … 1 s',
    '  migrating … 1 s',
    '  [############............] 1 of 2, migrating … 1 s',
    '',
  ]);
});
