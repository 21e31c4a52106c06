import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonFault } from '../../rest/json-fault.ts';

describe('jsonFault', () => {
  it.each([
    ['', 0, 'Expecting value'],
    [' [1, 2', 6, "Expecting ',' delimiter"],
    ['[1,]', 3, 'Expecting value'],
    ['[1 2]', 3, "Expecting ',' delimiter"],
    ['{"a" 1}', 5, "Expecting ':' delimiter"],
    ['{"a": 1,}', 8, 'Expecting property name enclosed in double quotes'],
    ['{a: 1}', 1, 'Expecting property name enclosed in double quotes'],
    ['{"a": 1]', 7, "Expecting ',' delimiter"],
    ['{} {}', 3, 'Extra data'],
    ['01', 1, 'Extra data'],
    ['"a\nb"', 2, 'Invalid control character at'],
    ['"a\\x"', 2, 'Invalid \\escape'],
    ['["abc', 1, 'Unterminated string starting at'],
    ['NaN', 0, 'Expecting value'],
  ])('%j fails at %i', (text, position, reason) => {
    expect(jsonFault(text)).toEqual({ position, reason });
  });

  it('points into every text that the engine refuses, and behind every text that it takes', () => {
    const cut = fc
      .tuple(fc.json(), fc.nat(), fc.string({ maxLength: 2 }))
      .map(([json, n, extra]) => json.slice(0, n % (json.length + 1)) + extra);
    fc.assert(
      fc.property(fc.oneof(fc.string(), cut), (text) => {
        const { position } = jsonFault(text);
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        // what is valid is cut nowhere: the scan ends at the end
        expect(position).toBeLessThanOrEqual(text.length);
        if (isJson) expect(position).toBe(text.length);
      }),
    );
  });

  it('needs no stack for a text that is a hundred thousand levels deep', () => {
    expect(jsonFault(`${'['.repeat(100_000)}x`)).toEqual({ position: 100_000, reason: 'Expecting value' });
  });
});
