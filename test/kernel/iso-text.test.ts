import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isoText } from '../../src/kernel/iso-text.ts';

test('a date is written as toISOString writes it, whatever came before', () => {
  fc.assert(
    fc.property(fc.array(fc.date({ noInvalidDate: true }), { minLength: 1, maxLength: 20 }), (dates) => {
      for (const date of dates)
        for (const near of [date, new Date(date.getTime() - (date.getTime() % 86_400_000)), date])
          expect(isoText(near)).toBe(near.toISOString());
    }),
  );
});

test.each([0, -1, 1, 86_399_999, 86_400_000, -86_400_000, 253_402_300_800_000, -62_198_755_200_000, 8.64e15, -8.64e15])(
  'at %d',
  (time) => {
    expect(isoText(new Date(time))).toBe(new Date(time).toISOString());
  },
);

test('an invalid date is none', () => {
  isoText(new Date(0));
  expect(() => isoText(new Date(Number.NaN))).toThrow(RangeError);
});
