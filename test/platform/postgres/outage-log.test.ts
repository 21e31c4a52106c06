import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../../src/platform/logger.ts';
import { OutageLog } from '../../../src/platform/postgres/outage-log.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] }));
afterEach(() => vi.useRealTimers());

const refused = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

function recorded() {
  const lines: { level: string; msg: string; faults?: number; seconds?: number; first?: string }[] = [];
  const logger = createLogger({ logLevel: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { lines, log: new OutageLog(logger) };
}

it('tells of an outage when it begins, once a minute, and when it ends, whatever fails meanwhile', () => {
  const { lines, log } = recorded();
  for (let quarter = 0; quarter < 4 * 150; quarter++) {
    log.fault(refused(), 'events could not be read');
    vi.advanceTimersByTime(250);
  }
  vi.advanceTimersByTime(60_000);
  expect(lines.map(({ level, msg, faults, seconds }) => ({ level, msg, faults, seconds }))).toEqual([
    {
      level: 'error',
      msg: expect.stringContaining('the database is unavailable'),
      faults: undefined,
      seconds: undefined,
    },
    { level: 'error', msg: 'the database is still unavailable', faults: 240, seconds: 60 },
    { level: 'error', msg: 'the database is still unavailable', faults: 480, seconds: 120 },
    { level: 'warn', msg: 'the database answers again', faults: 600, seconds: 155 },
  ]);
  expect(lines[0]!.first).toBe('events could not be read');
});

it('tells of a second outage anew, and always of other faults', () => {
  const { lines, log } = recorded();
  for (let n = 0; n < 2; n++) {
    log.fault(refused(), 'a');
    log.fault(new Error('a bug'), 'a task failed');
    log.fault(new Error('a bug'), 'a task failed');
    vi.advanceTimersByTime(20_000);
  }
  const words = lines.map(({ msg }) => msg.split(';')[0]);
  const one = ['the database is unavailable', 'a task failed', 'a task failed', 'the database answers again'];
  expect(words).toEqual([...one, ...one]);
});
