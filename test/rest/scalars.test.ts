import {
  GraphQLBoolean,
  GraphQLError,
  GraphQLFloat,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  GraphQLList,
  GraphQLScalarType,
  GraphQLString,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { at, echoOf, Issues } from '../../rest/issues.ts';
import { readScalar } from '../../rest/scalars.ts';
import { InputError } from '../../src/kernel/errors.ts';
import type { JsonType } from '../../src/kernel/json-type.ts';

/** What is read of a value, and the type, message, input and context of what is wrong with it. */
function read(type: GraphQLInputType, value: unknown) {
  const issues = new Issues(echoOf());
  const result = readScalar(type)(value, at(at(null, 'body'), 'field'), issues);
  return { result, issues: issues.items };
}
const readOf = (type: GraphQLInputType, value: unknown) => {
  const { result, issues } = read(type, value);
  expect(issues).toEqual([]);
  return result;
};
const issue = (type: string, msg: string, input: unknown, ctx?: object, loc: (string | number)[] = []) => ({
  type,
  loc: ['body', 'field', ...loc],
  msg,
  input,
  ...(ctx && { ctx }),
});
const scalar = (jsonType: JsonType, parseValue = (value: unknown): unknown => value) =>
  new GraphQLScalarType({ name: 'Special', extensions: { jsonType }, parseValue });
const refusing = (jsonType: JsonType, error: unknown) =>
  scalar(jsonType, () => {
    throw error;
  });

describe('a text', () => {
  it.each([GraphQLString, GraphQLID])('is read as it is: %s', (type) => {
    for (const text of ['', 'a', ' 1 ', '\0']) expect(readOf(type, text)).toBe(text);
    for (const other of [1, true, null, {}, ['a'], undefined])
      expect(read(type, other)).toEqual({
        result: undefined,
        issues: [issue('string_type', 'Input should be a valid string', other ?? null)],
      });
  });

  it('of a special scalar is what the scalar accepts', () => {
    const lower = scalar('string', (value) => {
      if (value !== String(value).toLowerCase()) throw new GraphQLError('no capitals');
      return `parsed ${String(value)}`;
    });
    expect(readOf(lower, 'abc')).toBe('abc');
    expect(read(lower, 'Abc').issues).toEqual([
      issue('value_error', 'Value error, no capitals', 'Abc', { error: 'no capitals' }),
    ]);
    expect(read(lower, 5)).toEqual({
      result: undefined,
      issues: [issue('string_type', 'Input should be a valid string', 5)],
    });
  });
});

describe.each([
  ['Int', GraphQLInt],
  ['a large integer', scalar('int53')],
])('an integer: %s', (_name, type) => {
  it.each([
    [5, 5],
    [-5, -5],
    [5.0, 5],
    ['5', 5],
    ['+5', 5],
    ['-05', -5],
    ['1234567890', 1234567890],
  ])('is %j', (given, expected) => {
    expect(readOf(type, given)).toBe(expected);
  });

  it.each([0, -0, '0', '-0', '+0'])('has no negative zero: %j', (given) => {
    expect(readOf(type, given)).toBe(0);
  });

  it.each([true, null, {}, [1], undefined])('is not %j', (given) => {
    expect(read(type, given)).toEqual({
      result: undefined,
      issues: [issue('int_type', 'Input should be a valid integer', given ?? null)],
    });
  });

  it.each(['', 'x', '1.5', '1x', 'x1', ' 1', '1 ', '--1', '1e3', '0x10', '١', 'NaN', '+'])('is not %j', (given) => {
    expect(read(type, given)).toEqual({
      result: undefined,
      issues: [issue('int_parsing', 'Input should be a valid integer, unable to parse string as an integer', given)],
    });
  });

  it('is whole and finite', () => {
    expect(read(type, 1.5).issues).toEqual([
      issue('int_from_float', 'Input should be a valid integer, got a number with a fractional part', 1.5),
    ]);
    expect(read(type, Number.POSITIVE_INFINITY).issues).toEqual([
      issue('finite_number', 'Input should be a finite number', 'Infinity'),
    ]);
    const long = '9'.repeat(400);
    expect(read(type, long).issues).toEqual([
      issue('finite_number', 'Input should be a finite number', `${'9'.repeat(256)}…`),
    ]);
  });
});

describe('a number', () => {
  it.each([
    [1.5, 1.5],
    [-2, -2],
    ['1.5', 1.5],
    ['+1.5', 1.5],
    ['-1', -1],
    ['12', 12],
    ['1.', 1],
    ['12.25', 12.25],
    ['.5', 0.5],
    ['.25', 0.25],
    ['1e3', 1000],
    ['1E+12', 1e12],
    ['1.5e-3', 0.0015],
    ['.5e1', 5],
    [-0, 0],
    ['-0.0', 0],
  ])('is %j', (given, expected) => {
    expect(readOf(GraphQLFloat, given)).toBe(expected);
  });

  it.each([false, null, {}, [1], undefined])('is not %j', (given) => {
    expect(read(GraphQLFloat, given)).toEqual({
      result: undefined,
      issues: [issue('float_type', 'Input should be a valid number', given ?? null)],
    });
  });

  it.each(['', '.', 'x', '1x', 'x1', ' 1', '1 ', '1..2', '1e', '1e+', 'e1', '1e1.5', '0x10', 'NaN', 'Infinity', '+'])(
    'is not %j',
    (given) => {
      expect(read(GraphQLFloat, given)).toEqual({
        result: undefined,
        issues: [issue('float_parsing', 'Input should be a valid number, unable to parse string as a number', given)],
      });
    },
  );

  it('is finite', () => {
    expect(read(GraphQLFloat, '-1e999').issues).toEqual([
      issue('finite_number', 'Input should be a finite number', '-1e999'),
    ]);
    expect(read(GraphQLFloat, Number.NaN).issues).toEqual([
      issue('finite_number', 'Input should be a finite number', 'NaN'),
    ]);
  });
});

describe('a boolean', () => {
  it.each([true, 'true', 't', 'yes', 'y', 'on', '1', 1, 'TRUE', 'On'])('true is %j', (given) => {
    expect(readOf(GraphQLBoolean, given)).toBe(true);
  });
  it.each([false, 'false', 'f', 'no', 'n', 'off', '0', 0, 'False', 'NO'])('false is %j', (given) => {
    expect(readOf(GraphQLBoolean, given)).toBe(false);
  });

  it.each(['', 'maybe', ' true', 2, -1, 1.5])('is not %j', (given) => {
    expect(read(GraphQLBoolean, given)).toEqual({
      result: undefined,
      issues: [issue('bool_parsing', 'Input should be a valid boolean, unable to interpret input', given)],
    });
  });
  it.each([null, {}, [true], undefined])('is not %j, which is no text', (given) => {
    expect(read(GraphQLBoolean, given)).toEqual({
      result: undefined,
      issues: [issue('bool_type', 'Input should be a valid boolean', given ?? null)],
    });
  });
});

describe('a point in time', () => {
  const text = '2026-01-02T03:04:05Z';

  it('is passed on as it was sent', () => {
    expect(
      readOf(
        scalar('date-time', (value) => new Date(String(value))),
        text,
      ),
    ).toBe(text);
  });

  it.each([5, true, null, {}, undefined])('is a text, not %j', (given) => {
    expect(read(scalar('date-time'), given)).toEqual({
      result: undefined,
      issues: [issue('datetime_type', 'Input should be a valid datetime', given ?? null)],
    });
  });

  it.each([
    ['Input should be a valid datetime, invalid month', 'invalid month'],
    ['Input should be a valid datetime', 'invalid datetime'],
    ['no Input should be a valid datetime, x', 'no Input should be a valid datetime, x'],
    ['', 'invalid datetime'],
  ])('that the scalar refuses gets its reason: %j', (message, reason) => {
    const { issues } = read(refusing('date-time', new GraphQLError(message)), text);
    expect(issues).toEqual([
      issue('datetime_parsing', `Input should be a valid datetime, ${reason}`, text, { error: reason }),
    ]);
  });

  it('passes on what is no error', () => {
    expect(() => read(refusing('date-time', 'thrown'), text)).toThrow('thrown');
  });
});

describe('an object', () => {
  it('is passed on as it was sent', () => {
    const given = { aB: [1] };
    expect(
      readOf(
        scalar('object', () => 'parsed'),
        given,
      ),
    ).toBe(given);
  });

  it.each([null, [], 'x', 5, undefined])('is not %j', (given) => {
    expect(read(scalar('object'), given)).toEqual({
      result: undefined,
      issues: [issue('dict_type', 'Input should be a valid dictionary', given ?? null)],
    });
  });

  it('is what the scalar accepts', () => {
    expect(read(refusing('object', new GraphQLError('no')), {}).issues).toEqual([
      issue('value_error', 'Value error, no', {}, { error: 'no' }),
    ]);
  });
});

describe('a free value', () => {
  it.each([[0], [''], [false], [[]], [{ a: null }]])('is %j', (given) => {
    expect(readOf(scalar('any'), given)).toBe(given);
  });

  it('may be absent, not null', () => {
    const unread = refusing('any', new Error('read'));
    expect(read(unread, undefined)).toEqual({ result: undefined, issues: [] });
    expect(read(unread, null)).toEqual({
      result: undefined,
      issues: [issue('value_error', 'Value error, null is not allowed', null, { error: 'null is not allowed' })],
    });
  });

  it('is refused with the words of the scalar, and where it says', () => {
    const refused = new InputError([
      { path: ['a', 0], type: 'first', msg: 'One.', input: 7, ctx: { at: 1 } },
      { path: [], type: 'second', msg: 'Two.' },
    ]);
    expect(read(refusing('any', refused), { a: [7] }).issues).toEqual([
      issue('first', 'One.', 7, { at: 1 }, ['a', 0]),
      issue('second', 'Two.', null),
    ]);
  });

  it.each([
    ['an error without issues', new GraphQLError('no', { extensions: { details: { issues: [] } } })],
    ['an error of another kind', Object.assign(new Error('no'), { extensions: { details: { issues: [{}] } } })],
    ['an error without details', new GraphQLError('no', { extensions: { details: {} } })],
  ])('is refused by the message of %s', (_what, error) => {
    expect(read(refusing('any', error), 5)).toEqual({
      result: 5,
      issues: [issue('value_error', 'Value error, no', 5, { error: 'no' })],
    });
  });

  it('passes on what is no error', () => {
    expect(() => read(refusing('any', 'thrown'), 5)).toThrow('thrown');
  });
});

it('there is no scalar in a list', () => {
  expect(() => readScalar(new GraphQLList(GraphQLInt))).toThrow('[Int] is not a scalar.');
});
