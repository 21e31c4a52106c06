import { describe, expect, it } from 'vitest';
import {
  type Constraints,
  checkConstraints,
  constraintsOf,
  expectation,
  isUnstorable,
  MAX_JSON_DEPTH,
  OPEN_WORD,
} from '../../src/kernel/constraints.ts';

/** The only issue of a value. */
function issueOf(value: unknown, constraints: Constraints) {
  const issues = checkConstraints(value, constraints);
  expect(issues).toHaveLength(1);
  return issues[0]!;
}

const accepts = (value: unknown, constraints: Constraints) => expect(checkConstraints(value, constraints)).toEqual([]);

describe('the length of a string', () => {
  it('has inclusive bounds', () => {
    accepts('ab', { minLength: 2, maxLength: 2 });
    accepts('', { maxLength: 0 });
    expect(issueOf('a', { minLength: 2 })).toEqual({
      path: [],
      type: 'string_too_short',
      msg: 'String should have at least 2 characters',
      input: 'a',
      ctx: { min_length: 2 },
    });
    expect(issueOf('abc', { maxLength: 2 })).toEqual({
      path: [],
      type: 'string_too_long',
      msg: 'String should have at most 2 characters',
      input: 'abc',
      ctx: { max_length: 2 },
    });
  });

  it('of one is told in the singular', () => {
    expect(issueOf('', { minLength: 1 }).msg).toBe('String should have at least 1 character');
    expect(issueOf('ab', { maxLength: 1 }).msg).toBe('String should have at most 1 character');
  });

  it('counts characters, not the halves that a character may be stored as', () => {
    accepts('😀😀', { minLength: 2, maxLength: 2 });
    expect(issueOf('😀', { minLength: 2 }).type).toBe('string_too_short');
  });

  it('in bytes counts those of UTF-8', () => {
    accepts('éé', { maxBytes: 4 });
    expect(issueOf('éé', { maxBytes: 3 })).toEqual({
      path: [],
      type: 'string_too_long',
      msg: 'String should have at most 3 bytes',
      input: 'éé',
      ctx: { max_bytes: 3 },
    });
  });
});

describe('the text of a string', () => {
  it.each(['\u0000', 'a\u0000b', '\ud800', 'a\udc00b'])('%j cannot be stored', (text) => {
    expect(isUnstorable(text)).toBe(true);
    expect(issueOf(text, {})).toEqual({
      path: [],
      type: 'string_unicode',
      msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
      input: text,
    });
  });

  it('may be anything else where nothing is asked of it', () => {
    for (const text of ['', 'a', '😀', '\u0001', '\n']) accepts(text, {});
  });

  it('is one of a closed set', () => {
    accepts('b', { oneOf: ['a', 'b'] });
    expect(issueOf('c', { oneOf: ['a', 'b', 'c d'] })).toEqual({
      path: [],
      type: 'literal_error',
      msg: "Input should be 'a', 'b' or 'c d'",
      input: 'c',
      ctx: { expected: "'a', 'b' or 'c d'" },
    });
  });

  it('matches a pattern as a whole', () => {
    accepts('abc', { pattern: 'a[bc]+' });
    accepts('é', { pattern: '\\p{L}' });
    for (const text of ['xabc', 'abcx', 'ab\n', ''])
      expect(issueOf(text, { pattern: 'a[bc]+' })).toEqual({
        path: [],
        type: 'string_pattern_mismatch',
        msg: "String should match pattern '^a[bc]+$'",
        input: text,
        ctx: { pattern: '^a[bc]+$' },
      });
    expect(issueOf('ab', { pattern: 'a|b' }).type).toBe('string_pattern_mismatch');
  });

  it('of an open set is a short lower-case word', () => {
    for (const text of ['a', 'z9', 'a_.:-b', `a${'b'.repeat(63)}`]) accepts(text, { pattern: OPEN_WORD });
    for (const text of ['', 'A', '1a', '_a', 'a b', `a${'b'.repeat(64)}`])
      expect(issueOf(text, { pattern: OPEN_WORD }).type).toBe('string_pattern_mismatch');
  });
});

describe('an address', () => {
  it.each(['a@b', 'a.b+c@example.com', 'ä@ü.example', `${'a'.repeat(64)}@b`, `a@${'b'.repeat(255)}`, 'a@b-c.d', 'a@1'])(
    '%s is one of mail',
    (text) => accepts(text, { format: 'email' }),
  );

  it.each([
    'a',
    '@b',
    'a@',
    'a@@b',
    'a@b@c',
    'a b@c',
    'a"@b',
    'a(@b',
    'a)@b',
    'a,@b',
    'a:@b',
    'a;@b',
    'a<@b',
    'a>@b',
    'a[@b',
    'a]@b',
    'a\\@b',
    'a\u200b@b',
    'a@b c',
    'a@-b',
    'a@b-',
    'a@.b',
    'a@b.',
    'a@b_c',
    ' a@b',
    'a@b ',
    `${'a'.repeat(65)}@b`,
    `a@${'b'.repeat(256)}`,
  ])('%j is none of mail', (text) => {
    expect(issueOf(text, { format: 'email' })).toEqual({
      path: [],
      type: 'value_error',
      msg: 'value is not a valid email address',
      input: text,
      ctx: { reason: 'It must have exactly one @-sign and a host name after it.' },
    });
  });

  it.each(['http://a', 'https://a.example/b?c#d', 'HTTPS://A'])('%s is one of the web', (text) =>
    accepts(text, { format: 'uri' }),
  );

  it.each(['', 'a', '/a', '//a', 'ftp://a', 'mailto:a@b', 'xhttp://a', 'httpsx://a', 'javascript:alert(1)', 'http://'])(
    '%j is none of the web',
    (text) => {
      expect(issueOf(text, { format: 'uri' })).toEqual({
        path: [],
        type: 'url_parsing',
        msg: 'Input should be a valid URL with the scheme http or https',
        input: text,
        ctx: { error: 'relative URL or unknown scheme' },
      });
    },
  );

  it('has no form where none is asked for', () => accepts('a b', { minLength: 1 }));
});

describe('a number', () => {
  it('has inclusive bounds', () => {
    accepts(2, { min: 2, max: 2 });
    accepts(0, {});
    accepts(-1, { max: 2 });
    accepts(9, { min: 2 });
    expect(issueOf(1, { min: 2 })).toEqual({
      path: [],
      type: 'greater_than_equal',
      msg: 'Input should be greater than or equal to 2',
      input: 1,
      ctx: { ge: 2 },
    });
    expect(issueOf(3, { max: 2 })).toEqual({
      path: [],
      type: 'less_than_equal',
      msg: 'Input should be less than or equal to 2',
      input: 3,
      ctx: { le: 2 },
    });
  });
});

describe('a list', () => {
  it('has inclusive bounds', () => {
    accepts([1, 2], { minItems: 2, maxItems: 2 });
    expect(issueOf([1], { minItems: 2 })).toEqual({
      path: [],
      type: 'too_short',
      msg: 'List should have at least 2 items after validation, not 1',
      input: [1],
      ctx: { field_type: 'List', min_length: 2, actual_length: 1 },
    });
    expect(issueOf([1, 2], { maxItems: 1 })).toEqual({
      path: [],
      type: 'too_long',
      msg: 'List should have at most 1 item after validation, not 2',
      input: [1, 2],
      ctx: { field_type: 'List', max_length: 1, actual_length: 2 },
    });
  });

  it('names each wrong element by its place, with lists in it', () => {
    const issues = checkConstraints(['a', 'bb', ['c', 'dd']], { item: { maxLength: 1, item: { maxLength: 1 } } });
    expect(issues.map(({ path, type }) => [path, type])).toEqual([
      [[1], 'string_too_long'],
      [[2, 1], 'string_too_long'],
    ]);
  });

  it('has elements that can be stored, whatever is asked of them', () => {
    expect(issueOf(['a', '\u0000'], {}).path).toEqual([1]);
  });

  it('that has a largest size is JSON as a whole', () => {
    accepts([1, 2], { maxBytes: 5, maxItems: 1_000 });
    expect(issueOf([1, 23], { maxBytes: 5 })).toMatchObject({ type: 'too_long', input: '[too large]' });
  });
});

describe('a map', () => {
  it('has at most so many keys', () => {
    accepts({ a: 1, b: 2 }, { maxItems: 2 });
    expect(issueOf({ a: 1, b: 2, c: 3 }, { maxItems: 2 })).toEqual({
      path: [],
      type: 'too_long',
      msg: 'Dictionary should have at most 2 items after validation, not 3',
      input: { a: 1, b: 2, c: 3 },
      ctx: { field_type: 'Dictionary', max_length: 2, actual_length: 3 },
    });
  });

  it('names each wrong value by its key', () => {
    const constraints = { item: { maxLength: 1 } };
    accepts({ a: 'x' }, constraints);
    accepts({ a: 'xx' }, { maxItems: 1 });
    expect(checkConstraints({ a: 'x', b: 'xx', c: 'xxx' }, constraints).map(({ path }) => path)).toEqual([
      ['b'],
      ['c'],
    ]);
  });
});

describe('a JSON value', () => {
  const nested = (depth: number): object => {
    let value: object = {};
    for (let level = 1; level < depth; level++) value = { a: value };
    return value;
  };

  it(`is nested at most ${MAX_JSON_DEPTH} levels deep, and never exhausts the stack`, () => {
    accepts(nested(MAX_JSON_DEPTH), {});
    for (const depth of [MAX_JSON_DEPTH + 1, 100_000])
      expect(issueOf(nested(depth), {})).toEqual({
        path: [],
        type: 'recursion_loop',
        msg: 'JSON should be nested at most 64 levels deep',
        input: '[nested too deeply]',
        ctx: { max_depth: 64 },
      });
  });

  it('may have no value deep in it that cannot be stored', () => {
    expect(issueOf({ a: [{ b: 'x' }, { b: '\u0000' }] }, {})).toEqual({
      path: ['a', 1, 'b'],
      type: 'string_unicode',
      msg: 'Input should be a valid string, NUL characters and lone surrogates are not allowed',
      input: '\u0000',
    });
    accepts({ a: [null, 1, true, 'x'], b: { c: null } }, {});
  });

  it.each(['\u0000', '\udc00', '__proto__'])('may not have the key %j', (key) => {
    expect(issueOf({ a: { ...JSON.parse(`{${JSON.stringify(key)}: 1}`) } }, {})).toEqual({
      path: ['a'],
      type: 'invalid_key',
      msg: 'Keys should be valid strings, NUL characters, lone surrogates and __proto__ are not allowed',
      input: '[invalid key]',
    });
  });

  it('has at most so many bytes of UTF-8', () => {
    accepts({ a: 'é' }, { maxBytes: 10 });
    expect(issueOf({ a: 'é' }, { maxBytes: 9 })).toEqual({
      path: [],
      type: 'too_long',
      msg: 'JSON should have at most 9 bytes, not 10',
      input: '[too large]',
      ctx: { max_length: 9, actual_length: 10 },
    });
  });

  it('is compared with its form only when it keeps the bounds', () => {
    const wrong = { path: ['a'], type: 'missing', msg: 'Field required', input: {} };
    const shape = { name: 'Form', schema: {}, check: () => [wrong] };
    expect(checkConstraints({ b: 1 }, { shape })).toEqual([wrong]);
    expect(issueOf({ b: 1, c: 2 }, { shape, maxItems: 1 }).type).toBe('too_long');
    accepts({ b: 1 }, { shape: { ...shape, check: () => [] } });
  });
});

describe('what is not checked', () => {
  it('is nothing, a boolean and a date', () => {
    const strict: Constraints = { minLength: 9, min: 9, minItems: 9, maxItems: 0, maxBytes: 1, pattern: 'x' };
    for (const value of [null, undefined, true, new Date()]) accepts(value, strict);
  });
});

describe('the words of a closed set', () => {
  it('are listed as a sentence does', () => {
    expect(expectation([])).toBe('');
    expect(expectation(['a'])).toBe("'a'");
    expect(expectation(['a', 'b'])).toBe("'a' or 'b'");
    expect(expectation(['a', 'b', 'c'])).toBe("'a', 'b' or 'c'");
  });
});

it('an argument without constraints has none', () => {
  expect(constraintsOf({ extensions: {} })).toEqual({});
  expect(constraintsOf({ extensions: { constraints: { min: 1 } } })).toEqual({ min: 1 });
});
