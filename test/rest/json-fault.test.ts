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

  const VALUE = 'Expecting value';
  const KEY = 'Expecting property name enclosed in double quotes';
  const COLON = "Expecting ':' delimiter";
  const COMMA = "Expecting ',' delimiter";
  const ESCAPE = 'Invalid \\escape';

  it.each([
    // what may stand at each place, and what may not
    ['{', 1, KEY],
    ['{]', 1, KEY],
    ['{,', 1, KEY],
    ['{1', 1, KEY],
    ['{"a"', 4, COLON],
    ['{"a"}', 4, COLON],
    ['{"a""b"', 4, COLON],
    ['{"a",', 4, COLON],
    ['{"a":', 5, VALUE],
    ['{"a":}', 5, VALUE],
    ['{"a"::', 5, VALUE],
    ['{"a":]', 5, VALUE],
    ['{"a":,', 5, VALUE],
    ['{"a":1', 6, COMMA],
    ['{"a":1:', 6, COMMA],
    ['{"a":1"b"', 6, COMMA],
    ['{"a":1{', 6, COMMA],
    ['{"a":1,', 7, KEY],
    ['{"a":1,,', 7, KEY],
    ['{"a":1,2', 7, KEY],
    ['{"a":1,"b"', 10, COLON],
    ['{"a":1,"b":2', 12, COMMA],
    ['{"a":"b"', 8, COMMA],
    ['{"a":{}', 7, COMMA],
    ['{"a":[]', 7, COMMA],
    ['{"a":[}', 6, VALUE],
    ['{"a":{]', 6, KEY],
    ['{"a":{"b":1}]', 12, COMMA],
    ['[', 1, VALUE],
    ['[}', 1, VALUE],
    ['[,', 1, VALUE],
    ['[:', 1, VALUE],
    ['[1', 2, COMMA],
    ['[1}', 2, COMMA],
    ['[1:', 2, COMMA],
    ['["a"', 4, COMMA],
    ['["a""b"', 4, COMMA],
    ['[1,', 3, VALUE],
    ['[1,,', 3, VALUE],
    ['[[]', 3, COMMA],
    ['[[],[]', 6, COMMA],
    ['[{}', 3, COMMA],
    ['[{"a":[1,{}]}}', 13, COMMA],
    ['[]]', 2, 'Extra data'],
    ['{}}', 2, 'Extra data'],
    ['[],', 2, 'Extra data'],
    ['{}:', 2, 'Extra data'],
    ['1"a"', 1, 'Extra data'],
    ['"a"1', 3, 'Extra data'],
    ['null true', 5, 'Extra data'],
    [':', 0, VALUE],
    [',', 0, VALUE],
    [']', 0, VALUE],
    ['}', 0, VALUE],
    // space is that of JSON alone
    [' \t\n\r', 4, VALUE],
    [' [ 1 , ', 7, VALUE],
    ['\u00a01', 0, VALUE],
    ['[\u000b]', 1, VALUE],
    // numbers and words
    ['[-]', 1, VALUE],
    ['[.5]', 1, VALUE],
    ['[+1]', 1, VALUE],
    ['[1.]', 2, COMMA],
    ['[1.25x', 5, COMMA],
    ['[-0.5e10 x', 9, COMMA],
    ['[1e5x', 4, COMMA],
    ['[1E+5x', 5, COMMA],
    ['[1e-12x', 6, COMMA],
    ['[1e]', 2, COMMA],
    ['[120x', 4, COMMA],
    ['[-90x', 4, COMMA],
    ['[truex', 5, COMMA],
    ['[falsex', 6, COMMA],
    ['[nullx', 5, COMMA],
    ['[tru', 1, VALUE],
    ['[True', 1, VALUE],
    // texts
    ['"', 0, 'Unterminated string starting at'],
    ['"\\', 1, ESCAPE],
    ['"\\"', 0, 'Unterminated string starting at'],
    ['"\\u12"', 1, ESCAPE],
    ['"\\u12g4"', 1, ESCAPE],
    ['"a\\u12aFx', 0, 'Unterminated string starting at'],
    ['"\\b\\f\\n\\r\\t\\/\\\\\\"" x', 19, 'Extra data'],
    ['{"\\x":', 2, ESCAPE],
    ['{"a', 1, 'Unterminated string starting at'],
    ['"\u001f"', 1, 'Invalid control character at'],
    ['"\u0000', 1, 'Invalid control character at'],
    ['" ~\u007f\u2028" x', 7, 'Extra data'],
  ])('%j fails at %i: %s', (text, position, reason) => {
    expect(() => JSON.parse(text) as unknown).toThrow();
    expect(jsonFault(text)).toEqual({ position, reason });
  });

  it.each([
    'true',
    ' [ ] ',
    '{"a":[],"b":{"c":[{}]}}',
    '[[[]],{"a":{}},"",-0,0.5,1e9,null]',
    '"\\u00e9"',
    '{"":{"":""},"a" : [ 1 , 2 ]\n}',
  ])('%j has no fault before its end', (text) => {
    expect(() => JSON.parse(text) as unknown).not.toThrow();
    expect(jsonFault(text)).toEqual({ position: text.length, reason: 'Extra data' });
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
