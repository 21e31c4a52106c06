import { describe, expect, test } from 'vitest';
import { isTimezone, type StepLength, TimeZone } from '../../src/kernel/time-zone.ts';

test('knows time zones', () => {
  expect(['UTC', 'Europe/Berlin', 'Asia/Calcutta', 'Asia/Kolkata'].filter(isTimezone)).toHaveLength(4);
  expect(['+02:00', 'Mars/Olympus', '', 'Z9', 'Europe/Berlin\0'].filter(isTimezone)).toEqual([]);
});

/** The starts of some spans from the one that contains a time. */
function starts(zone: string, step: StepLength, from: string, count: number): string[] {
  const calendar = TimeZone.of(zone);
  const found = [calendar.startOf(step, new Date(from))];
  while (found.length < count) found.push(calendar.next(step, found.at(-1)!));
  return found.map((start) => start.toISOString().slice(0, 16));
}

describe('the days of a time zone', () => {
  test.each([
    ['that has 23 hours', 'Europe/Berlin', '2026-03-29T12:00Z', ['2026-03-28T23:00', '2026-03-29T22:00']],
    ['that has 25 hours', 'Europe/Berlin', '2026-10-25T12:00Z', ['2026-10-24T22:00', '2026-10-25T23:00']],
    ['ahead by a half', 'Asia/Kolkata', '2026-11-24T18:29Z', ['2026-11-23T18:30', '2026-11-24T18:30']],
    ['ahead by three quarters', 'Asia/Kathmandu', '2026-11-24T18:15Z', ['2026-11-24T18:15', '2026-11-25T18:15']],
    ['without midnight', 'America/Santiago', '2026-09-06T12:00Z', ['2026-09-06T04:00', '2026-09-07T03:00']],
    ['with two midnights', 'America/Havana', '2026-11-01T12:00Z', ['2026-11-01T04:00', '2026-11-02T05:00']],
    ['before one that never was', 'Pacific/Apia', '2011-12-30T00:00Z', ['2011-12-29T10:00', '2011-12-30T10:00']],
    ['at its last moment', 'Pacific/Auckland', '2026-11-24T10:59:59.999Z', ['2026-11-23T11:00', '2026-11-24T11:00']],
    ['long ago', 'Europe/Amsterdam', '1900-01-01T12:00Z', ['1899-12-31T23:00', '1900-01-01T23:00']],
  ])('begin at its midnight: a day %s', (_what, zone, from, expected) => {
    expect(starts(zone, 'day', from, 2)).toEqual(expected);
  });
});

describe('the months of a time zone', () => {
  test.each([
    ['with a change of the clocks', 'Europe/Berlin', '2026-03-31T21:59Z', ['2026-02-28T23:00', '2026-03-31T22:00']],
    ['ahead by a half', 'Asia/Kolkata', '2026-01-31T18:30Z', ['2026-01-31T18:30', '2026-02-28T18:30']],
    ['far behind', 'Pacific/Pago_Pago', '2027-01-01T10:59Z', ['2026-12-01T11:00', '2027-01-01T11:00']],
  ])('begin with its first day: a month %s', (_what, zone, from, expected) => {
    expect(starts(zone, 'month', from, 2)).toEqual(expected);
  });
});

describe('the hours of a time zone', () => {
  test.each([
    ['of UTC', 'Europe/Berlin', '2026-10-25T00:59Z', ['2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T02:00']],
    [
      'between them',
      'Asia/Kathmandu',
      '2026-11-24T00:14Z',
      ['2026-11-23T23:15', '2026-11-24T00:15', '2026-11-24T01:15'],
    ],
    // from 02:00 to 02:30, and from 02:00 to 01:30
    [
      'longer',
      'Australia/Lord_Howe',
      '2026-10-03T15:40Z',
      ['2026-10-03T14:30', '2026-10-03T16:00', '2026-10-03T17:00'],
    ],
    [
      'repeated',
      'Australia/Lord_Howe',
      '2026-04-04T15:10Z',
      ['2026-04-04T14:00', '2026-04-04T15:30', '2026-04-04T16:30'],
    ],
  ])('begin at its full hours: %s', (_what, zone, from, expected) => {
    expect(starts(zone, 'hour', from, 3)).toEqual(expected);
  });
});

test.each(['Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe', 'America/Santiago', 'Africa/Casablanca'])(
  'spans of %s follow one another, in both directions, and contain their times',
  (name) => {
    const zone = TimeZone.of(name);
    for (const step of ['hour', 'day', 'month'] as const)
      for (let time = Date.UTC(2026, 0); time < Date.UTC(2027, 0); time += 31_111_111) {
        const at = new Date(time);
        const start = zone.startOf(step, at);
        const end = zone.next(step, start);
        expect(start <= at && at < end, `${step} of ${at.toISOString()}`).toBe(true);
        expect(zone.previous(step, end), at.toISOString()).toEqual(start);
        expect(zone.startOf(step, start), at.toISOString()).toEqual(start);
      }
  },
);
