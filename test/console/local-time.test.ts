import { expect, test } from 'vitest';
import { dayAfter, dayOf, instantOf } from '../../console/src/ground/local-time.ts';

const at = (local: string, zone: string) => new Date(instantOf(local, zone)!).toISOString();

test('a day, or a day and a time, is that of the clocks of a time zone', () => {
  expect(at('2026-11-26', 'UTC')).toBe('2026-11-26T00:00:00.000Z');
  expect(at('2026-11-26', 'Europe/Berlin')).toBe('2026-11-25T23:00:00.000Z');
  expect(at('2026-07-01T09:30', 'Europe/Berlin')).toBe('2026-07-01T07:30:00.000Z');
  expect(at('2026-11-26T09:30', 'Asia/Kathmandu')).toBe('2026-11-26T03:45:00.000Z');
  expect(at('2026-11-26', 'Pacific/Kiritimati')).toBe('2026-11-25T10:00:00.000Z');
  expect(at('2026-11-26', 'America/New_York')).toBe('2026-11-26T05:00:00.000Z');
});

test('it follows the clocks on the days on which they change', () => {
  expect(at('2026-03-29', 'Europe/Berlin')).toBe('2026-03-28T23:00:00.000Z');
  expect(at('2026-03-30', 'Europe/Berlin')).toBe('2026-03-29T22:00:00.000Z');
  expect(at('2026-03-29T01:59', 'Europe/Berlin')).toBe('2026-03-29T00:59:00.000Z');
  expect(at('2026-03-08T03:30', 'America/New_York')).toBe('2026-03-08T07:30:00.000Z');
  // an hour that is left out
  expect(at('2026-03-29T02:30', 'Europe/Berlin')).toBe('2026-03-29T01:30:00.000Z');
  expect(at('2026-03-08T02:30', 'America/New_York')).toBe('2026-03-08T07:30:00.000Z');
});

test('what is no time is none', () => {
  for (const text of ['', 'yesterday', '2026-13-01', '2026-11-26T25:00']) expect(instantOf(text, 'UTC')).toBeNull();
  expect(dayAfter('never', 1)).toBe('');
});

test('days are told and counted', () => {
  const instant = Date.parse('2026-11-25T23:30:00.999Z');
  expect(['UTC', 'Europe/Berlin', 'Asia/Tokyo'].map((zone) => dayOf(instant, zone))).toEqual([
    '2026-11-25',
    '2026-11-26',
    '2026-11-26',
  ]);
  expect([dayAfter('2026-02-28', 1), dayAfter('2026-01-01', -1), dayAfter('2026-03-29', 1)]).toEqual([
    '2026-03-01',
    '2025-12-31',
    '2026-03-30',
  ]);
});
