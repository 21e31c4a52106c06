import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { describe, expect, test } from 'vitest';
import { runTransform } from '../../../src/tools/data-transforms/run-transform.ts';
import { tokenUnits } from '../../../src/tools/data-transforms/text-units.ts';
import type { TransformAction } from '../../../src/tools/data-transforms/transform-action.ts';
import { TransformBudget, TransformFault } from '../../../src/tools/data-transforms/transform-budget.ts';

type Action = Partial<TransformAction>;

const made = (action: Action, parameters: object = {}, configuration: object = {}): unknown =>
  runTransform({
    action: { name: 'work', transform_type: 'template', input_template: '{{input}}', ...action },
    parameters: parameters as Record<string, unknown>,
    configuration: configuration as Record<string, unknown>,
  });
const of = (action: Action, input: unknown) => made(action, { input });
const chunk = (text: string, chunking: Action['chunking']) =>
  of(
    { transform_type: 'chunk', chunking: { include_metadata: false, chunk_overlap: 0, ...chunking } },
    text,
  ) as string[];
const aggregate = (aggregate_operation: string, input: unknown, more: Action = {}) =>
  of({ transform_type: 'aggregate', aggregate_operation, ...more }, input);
const extract = (pattern: object, text: unknown) =>
  of({ transform_type: 'extract', extract_patterns: [{ name: 'found', pattern: '', ...pattern }] }, text);
const kept = (condition: object, input: unknown[], filter_mode: 'include' | 'exclude' = 'include') =>
  of({ transform_type: 'filter', filter_mode, filter_conditions: [{ field: '$', ...condition }] }, input);

const texts = fc
  .array(
    fc.oneof(
      fc.lorem({ maxCount: 9 }),
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.constantFrom(
        '\n\n',
        '    ',
        "I'LL",
        '日本語の文章。',
        '👩‍👩‍👧‍👦',
        '0123456789',
        '<|endoftext|>',
        '\ud800',
        '\ufffd',
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(' '));
const sizes = fc.integer({ min: 1, max: 40 });

describe('chunks', () => {
  test('count the tokens of cl100k_base, and cut no code point', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const units = tokenUnits(text, new TransformBudget());
        expect(units.map(({ start, end }) => text.slice(start, end)).join('')).toBe(text);
        const tokens = units.reduce((sum, { size }) => sum + size, 0);
        expect(tokens).toBe(encode(text, { disallowedSpecial: new Set() }).length);
        for (const { start, end } of units)
          if (text.isWellFormed()) expect(text.slice(start, end).isWellFormed()).toBe(true);
      }),
      { examples: [['\ud7fc\u{6cb2c}'], ['\u{6cb2c}\u{6cb2c}x']] },
    );
  });

  test('are the whole text, at most as large as they may be, and repeat no more than the overlap', () => {
    fc.assert(
      fc.property(texts, sizes, sizes, fc.constantFrom('tokens', 'characters'), (text, size, less, strategy) => {
        const chunking = { strategy: strategy as 'tokens', chunk_size: size + less, chunk_overlap: size };
        const chunks = of({ transform_type: 'chunk', chunking }, text) as {
          text: string;
          start: number;
          end: number;
          size: number;
        }[];
        // one unit is never cut
        const largest = Math.max(1, ...tokenUnits(text, new TransformBudget()).map((unit) => unit.size));
        let covered = 0;
        for (const { start, end, text: part, size: count } of chunks) {
          expect(start).toBeLessThanOrEqual(covered);
          expect(end).toBeGreaterThan(covered);
          expect(part).toBe(text.slice(start, end));
          expect(count).toBeLessThanOrEqual(Math.max(size + less, largest));
          covered = end;
        }
        expect(covered).toBe(text.length);
      }),
    );
  });

  test.each<[NonNullable<Action['chunking']>, string, string[]]>([
    [{ strategy: 'tokens', chunk_size: 2 }, 'one two three', ['one two', ' three']],
    [{ strategy: 'tokens', chunk_size: 2, chunk_overlap: 1 }, 'one two three', ['one two', ' two three']],
    [{ strategy: 'tokens', chunk_size: 1 }, 'é👩', ['é', '👩']],
    [{ strategy: 'characters', chunk_size: 2 }, 'a👩b', ['a👩', 'b']],
    [{ strategy: 'sentences', chunk_size: 2, chunk_overlap: 1 }, 'One. Two! Three?', ['One. Two!', 'Two! Three?']],
    [
      { strategy: 'sentences', chunk_size: 1 },
      'See e.g. that (of 3.5 m.) “Yes.” 本。日\n\nA title\n \nEnd',
      ['See e.g. that (of 3.5 m.)', '“Yes.”', '本。', '日', 'A title', 'End'],
    ],
    [{ strategy: 'paragraphs', chunk_size: 1 }, '\n a\nb \n \t\n\nc\n', ['a\nb', 'c']],
    [{ strategy: 'delimiter', delimiter: '--' }, 'a -- b----c', ['a', 'b', 'c']],
    [{ strategy: 'delimiter', delimiter: '|', chunk_size: 2 }, 'one two three|x', ['one two', ' three', 'x']],
    [{ strategy: 'tokens' }, '', []],
  ])('%j of %j', (chunking, text, expected) => {
    expect(chunk(text, chunking)).toEqual(expected);
  });

  test('say where they were', () => {
    const action: Action = {
      transform_type: 'chunk',
      chunking: { strategy: 'sentences', chunk_size: 1, chunk_overlap: 0 },
    };
    expect(of(action, ' A b.  C.')).toEqual([
      { index: 0, text: 'A b.', start: 1, end: 5, size: 1 },
      { index: 1, text: 'C.', start: 7, end: 9, size: 1 },
    ]);
  });
});

test.each<[object, unknown, unknown]>([
  [{ pattern: '(\\w+)@(\\w+)', group: 2 }, 'ann@here bob@there', 'here'],
  [{ pattern: '(\\w+)@', group: 1, multiple: true }, 'ann@here bob@there', ['ann', 'bob']],
  [{ pattern: 'ANN', flags: 'gi' }, 'ann', 'ann'],
  [{ pattern: 'ANN' }, 'ann', null],
  [{ pattern: 'x', default: 'none' }, 'ann', 'none'],
  [{ pattern: 'x', multiple: true }, 'ann', []],
  [{ pattern: '(a)|(b)', group: 2, default: '-', multiple: true }, 'ab', ['-', 'b']],
  [{ pattern: 'a', flags: 'y', multiple: true }, 'aaba', ['a', 'a']],
  [{ pattern: '^b.c$', flags: 'ms' }, 'a\nb\nc', 'b\nc'],
  [{ pattern: '"a":1' }, { a: 1 }, '"a":1'],
])('%j takes from %j %j', (pattern, text, expected) => {
  expect(extract(pattern, text)).toEqual({ found: expected });
});

const people = [{ name: 'Ann', age: 30, tags: ['x'] }, { name: 'Bob', age: 9, boss: null }, {}];

test.each<[object, number[]]>([
  [{ field: 'age', value: 30 }, [0]],
  [{ field: 'age', operator: 'ne', value: 30 }, [1, 2]],
  [{ field: 'age', operator: 'gt', value: 9 }, [0]],
  [{ field: 'age', operator: 'gte', value: 9 }, [0, 1]],
  [{ field: 'age', operator: 'lt', value: '9' }, []],
  [{ field: 'name', operator: 'lte', value: 'Ann' }, [0]],
  [{ field: 'age', operator: 'in', value: [9, 30] }, [0, 1]],
  [{ field: 'age', operator: 'not_in', value: [9] }, [0, 2]],
  [{ field: 'name', operator: 'contains', value: 'o' }, [1]],
  [{ field: 'tags', operator: 'contains', value: 'x' }, [0]],
  [{ field: 'name', operator: 'not_contains', value: 'o' }, [0, 2]],
  [{ field: 'name', operator: 'starts_with', value: 'A' }, [0]],
  [{ field: 'name', operator: 'ends_with', value: 'b' }, [1]],
  [{ field: 'name', operator: 'regex', value: '^[AB]' }, [0, 1]],
  [{ field: 'boss', operator: 'exists' }, [1]],
  [{ field: 'boss', operator: 'exists', value: false }, [0, 2]],
  [{ field: 'boss', value: null }, [0, 1, 2]],
  [{ field: 'tags[0]', value: 'x' }, [0]],
  [{ field: 'constructor', operator: 'exists' }, []],
  [{ field: '__proto__', operator: 'exists' }, []],
  [{ field: 'name.length', operator: 'exists' }, []],
])('the condition %j keeps %j', (condition, indexes) => {
  const expected = people.filter((_, index) => indexes.includes(index));
  expect(kept(condition, people)).toEqual(expected);
  expect(kept(condition, people, 'exclude')).toEqual(people.filter((person) => !expected.includes(person)));
});

describe('a mapping', () => {
  const map = (field_mappings: Record<string, string>, more: object) =>
    made({ transform_type: 'map', field_mappings }, more);

  test('makes one property of each template, and leaves out what has no value', () => {
    const mappings = {
      who: '{{item.name}}',
      text: '{{index}}: {{item.name}} of {{team}}',
      age: '{{ item.age }}',
      kind: 'person',
    };
    expect(map(mappings, { input: people, team: 'us' })).toEqual([
      { who: 'Ann', text: '0: Ann of us', age: 30, kind: 'person' },
      { who: 'Bob', text: '1: Bob of us', age: 9, kind: 'person' },
      { kind: 'person' },
    ]);
  });

  test('of what is no list makes one object, and takes no property of a prototype', () => {
    const mappings = { __proto__: 'x', a: '{{item.constructor}}', b: '{{item.a.b}}', c: '{{toString}}' };
    expect(map({ ...mappings, ['__proto__']: '{{item.a}}' }, { input: JSON.parse('{"a":{"b":[1]}}') })).toEqual(
      JSON.parse('{"__proto__":{"b":[1]},"b":[1]}'),
    );
  });
});

test.each<[number, unknown]>([
  [1, [1, 2, [3, [4]]]],
  [2, [1, 2, 3, [4]]],
  [64, [1, 2, 3, 4]],
])('a list is flattened %i levels', (flatten_depth, expected) => {
  expect(of({ transform_type: 'flatten', flatten_depth }, [1, [2, [3, [4]]]])).toEqual(expected);
  const template = { transform_type: 'flatten', flatten_depth, flatten_template: '{{a.b}}' } as const;
  expect(made(template, { a: { b: [1, [2, [3, [4]]]] } })).toEqual(expected);
});

test.each<[string, unknown, unknown]>([
  ['join', ['a', 1, null, { b: 2 }], 'a\n1\n\n{"b":2}'],
  ['count', [1, 2], 2],
  ['sum', [1, 2.5], 3.5],
  ['sum', [], 0],
  ['avg', [1, 2], 1.5],
  ['avg', [], null],
  ['min', [3, 1, 2], 1],
  ['max', ['a', 'c', 'b'], 'c'],
  ['max', [], null],
  ['first', [1, 2], 1],
  ['last', [1, 2], 2],
  ['last', [], null],
  ['unique', [1, '1', { a: 1, b: 2 }, { b: 2, a: 1 }, 1], [1, '1', { a: 1, b: 2 }]],
  ['count', '[1,2,3]', 3],
])('%s of %j is %j', (operation, input, expected) => {
  expect(aggregate(operation, input)).toEqual(expected);
});

test('a template has the input, the parameters and the configuration; others have their result', () => {
  const output_template = 'Dear {{person.name}} of {{city}}: {{input}}';
  expect(made({ output_template }, { person: { name: 'Ann' }, input: [1] }, { city: 'Ulm' })).toBe(
    'Dear Ann of Ulm: [1]',
  );
  expect(made({ output_template: '{{ input.a }}' }, { input: { a: [1] } })).toEqual([1]);
  expect(aggregate('count', [1, 2], { output_template: '{{result}} of {{input}}' })).toBe('2 of [1,2]');
});

describe('what makes nothing', () => {
  const many = Array.from({ length: 10_001 }, (_, index) => index);
  const deep = JSON.parse('['.repeat(60) + many.slice(0, 5_000).join() + ']'.repeat(60)) as unknown;
  test.each<[string, () => unknown, string]>([
    ['no list', () => aggregate('count', { a: 1 }), 'the input is no list'],
    [
      'a list that is too deep',
      () => aggregate('unique', `${'['.repeat(120_000)}${']'.repeat(120_000)}`),
      'the input is no list',
    ],
    ['a text that is no list', () => kept({}, 'x' as never), 'the input is no list'],
    ['a text among numbers', () => aggregate('sum', [1, '2']), 'the element 1 of the list is no number'],
    ['an infinite sum', () => aggregate('sum', [1e308, 1e308]), 'the numbers are too large'],
    ['no number at all', () => aggregate('min', [1, null]), 'the element 1 of the list is no number'],
    ['a missing value', () => made({ output_template: 'a {{b.c}}' }, { b: {} }), "it needs a value of 'b.c'"],
    ['a missing input', () => made({ output_template: '{{input}}' }), "it needs a value of 'input'"],
    ['too many elements', () => aggregate('count', many), 'a list has more than 10000 elements'],
    [
      'too many elements when flat',
      () => of({ transform_type: 'flatten', flatten_depth: 64 }, [deep, deep, deep]),
      'a list has more than 10000 elements',
    ],
    [
      'a template that repeats',
      () => made({ output_template: '{{a}}'.repeat(3_000) }, { a: 'x'.repeat(10_000) }),
      'the result is too large',
    ],
    [
      'values that a mapping repeats',
      () => made({ transform_type: 'map', field_mappings: { a: '{{input}}' } }, { input: many.slice(0, 5_000) }),
      'the result is too large',
    ],
    [
      'chunks that repeat',
      () => chunk('a b '.repeat(20_000), { strategy: 'characters', chunk_size: 10_000, chunk_overlap: 9_999 }),
      'the result is too large',
    ],
    [
      'too many matches',
      () => extract({ pattern: '', multiple: true }, 'x'.repeat(20_000)),
      'a list has more than 10000 elements',
    ],
  ])('%s', (_name, work, message) => {
    expect(work).toThrow(new TransformFault(message));
  });
});

test.each<[string, () => unknown]>([
  ['nested repetitions', () => extract({ pattern: '(a+)+$' }, `${'a'.repeat(100_000)}b`)],
  ['alternatives', () => extract({ pattern: '(a|a|a)*b' }, 'a'.repeat(100_000))],
  ['searches that look ahead', () => extract({ pattern: 'c.*x|c', multiple: true }, 'c'.repeat(1_500))],
  ['a word without an end', () => chunk('a'.repeat(250_000), { strategy: 'tokens', chunk_size: 1_000 })],
  ['white space without an end', () => chunk(' '.repeat(250_000), { strategy: 'tokens', chunk_size: 1_000 })],
  ['marks without an end', () => chunk('!?'.repeat(125_000), { strategy: 'tokens', chunk_size: 1_000 })],
  ['a table of numbers', () => chunk('. 1 '.repeat(60_000), { strategy: 'sentences', chunk_size: 10 })],
  ['empty lines', () => chunk('\n \n'.repeat(80_000), { strategy: 'paragraphs', chunk_size: 10 })],
])('%s end', (_name, work) => {
  // an end is a result, or a refusal: without one, the test has no end
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(TransformFault);
  }
});

test('any values make a result of JSON, or nothing', () => {
  const kinds = fc.constantFrom<Action>(
    { transform_type: 'chunk' },
    { transform_type: 'extract', extract_patterns: [{ name: '__proto__', pattern: '(?i)a|.', multiple: true }] },
    { transform_type: 'filter', filter_conditions: [{ field: 'a.b', operator: 'ne', value: { a: 1 } }] },
    { transform_type: 'map', field_mappings: { a: '{{item.a}}', b: '{{item.length}}-{{index}}' } },
    { transform_type: 'flatten', flatten_depth: 3 },
    ...['join', 'sum', 'avg', 'min', 'max', 'unique'].map(
      (aggregate_operation): Action => ({ transform_type: 'aggregate', aggregate_operation }),
    ),
    { transform_type: 'template', output_template: '{{input.a}} {{input}}' },
  );
  const values = fc.json({ maxDepth: 4 }).map((json) => JSON.parse(json) as unknown);
  fc.assert(
    fc.property(kinds, values, (action, input) => {
      try {
        const result = of(action, input);
        expect(JSON.parse(JSON.stringify(result))).toEqual(JSON.parse(JSON.stringify(result ?? null)));
      } catch (error) {
        expect(error).toBeInstanceOf(TransformFault);
      }
    }),
  );
  expect(Object.hasOwn(Object.prototype, 'a')).toBe(false);
});
