import { describe, expect, it } from 'vitest';
import { type At, at, echoOf, Issues } from '../../rest/issues.ts';

const place = (...keys: (string | number)[]): At | null => keys.reduce<At | null>((up, key) => at(up, key), null);
/** What is shown of an input at a place of the body. */
const echo = (input: unknown, ...loc: (string | number)[]) => echoOf(['pin'])(input, ['body', ...loc]);

describe('issues', () => {
  it('have their keys in the order of the wire, and a context only where there is one', () => {
    const issues = new Issues(echoOf());
    issues.add(place('body', 'tags', 3)!, 'string_too_long', 'Too long.', 'abc', { max_length: 2 });
    issues.add(place('query', 'n')!, 'int_parsing', 'No number.', 'x');
    expect(JSON.stringify(issues.items)).toBe(
      '[{"type":"string_too_long","loc":["body","tags",3],"msg":"Too long.","input":"abc","ctx":{"max_length":2}},' +
        '{"type":"int_parsing","loc":["query","n"],"msg":"No number.","input":"x"}]',
    );
  });

  it('may lie further in than the place that was read', () => {
    const issues = new Issues(echoOf());
    issues.add(place('body', 'metadata')!, 't', 'm', 1, undefined, ['a', 0]);
    issues.addAt(['body', 'other'], 't', 'm', 2);
    expect(issues.items).toEqual([
      { type: 't', loc: ['body', 'metadata', 'a', 0], msg: 'm', input: 1 },
      { type: 't', loc: ['body', 'other'], msg: 'm', input: 2 },
    ]);
  });

  it('are the first hundred', () => {
    const issues = new Issues(echoOf());
    for (let n = 0; n < 150; n++) issues.add(place('body', n)!, 't', 'm', n);
    expect(issues.items.map(({ input }) => input)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  it('show for what is missing the object around it, which is no secret itself', () => {
    const issues = new Issues(echoOf());
    const where = place('body', 'password')!;
    issues.add(where, 'missing', 'm', { password: undefined, code: 'abc', name: 'x' });
    issues.add(where, 'string_type', 'm', { name: 'x' });
    issues.add(place('body', 'token', 'name')!, 'missing', 'm', { name: 'x' });
    expect(issues.items.map(({ input }) => input)).toEqual([
      { password: '[redacted]', code: '[redacted]', name: 'x' },
      '[redacted]',
      '[redacted]',
    ]);
  });
});

describe('an input that is shown', () => {
  it.each([[0], [1.5], [true], [false], [''], ['text'], [[]], [{}], [[1, [2, null]]], [{ a: { b: [null] } }]])(
    'is itself: %j',
    (input) => {
      expect(echo(input, 'name')).toEqual(input);
    },
  );

  it('is null where there is none', () => {
    expect([echo(null, 'name'), echo(undefined, 'name')]).toEqual([null, null]);
    expect(echo(null, 'password')).toBeNull();
  });

  it.each(['password', 'new_password', 'token', 'refresh_token', 'value', 'api_key', 'code', 'state', 'pin'])(
    'is not what is called %s, nor what is in it',
    (name) => {
      expect(echo('secret', name)).toBe('[redacted]');
      expect(echo('secret', name, 0)).toBe('[redacted]');
      expect(echo('secret', 'list', 3, name)).toBe('[redacted]');
      expect(echo({ a: [{ [name]: 'secret', b: 1 }], [name]: { c: 2 } }, 'name')).toEqual({
        a: [{ [name]: '[redacted]', b: 1 }],
        [name]: '[redacted]',
      });
      expect(echo({ [name]: null }, 'name')).toEqual({ [name]: null });
    },
  );

  it('is shown though the place of the request has such a name, and where only the schema would hide it', () => {
    expect(echoOf()('x', ['code', 'name'])).toBe('x');
    expect(echoOf()('x', ['body', 'pin'])).toBe('x');
    expect(echoOf()({ pin: 1 }, ['body'])).toEqual({ pin: 1 });
  });

  it('is cut after 256 characters, values and keys alike', () => {
    const long = 'x'.repeat(256);
    expect(echo(long, 'name')).toBe(long);
    expect(echo(`${long}y`, 'name')).toBe(`${long}…`);
    expect(echo({ [`${long}y`]: [`${long}y`] }, 'name')).toEqual({ [`${long}…`]: [`${long}…`] });
  });

  it('is well-formed text, also where it is cut', () => {
    expect(echo('a\ud800', 'name')).toBe('a\ufffd');
    expect(echo(`${'x'.repeat(255)}\u{1f600}`, 'name')).toBe(`${'x'.repeat(255)}\ufffd…`);
    expect(echo({ '\udc00': 1 }, 'name')).toEqual({ '\ufffd': 1 });
  });

  it('has six levels', () => {
    expect(echo([[[[[[1]]]]]], 'name')).toEqual([[[[[[1]]]]]]);
    expect(echo([[[[[[[1], 2]]]]]], 'name')).toEqual([[[[[['…', 2]]]]]]);
    expect(echo({ a: { b: { c: { d: { e: { f: { g: 1 }, h: 2 } } } } } }, 'name')).toEqual({
      a: { b: { c: { d: { e: { f: '…', h: 2 } } } } },
    });
  });

  it('has two hundred values, of all levels together', () => {
    const items = (length: number) => Array.from({ length }, (_, n) => n);
    expect(echo(items(199), 'name')).toEqual(items(199));
    expect(echo(items(200), 'name')).toEqual([...items(199), '…']);
    expect(echo(items(5000), 'name')).toEqual([...items(199), '…']);
    expect(echo([items(198), 'last'], 'name')).toEqual([items(198), '…']);
    const wide = Object.fromEntries(items(300).map((n) => [`k${n}`, n]));
    const shown = echo(wide, 'name') as object;
    expect(Object.keys(shown)).toHaveLength(200);
    expect(Object.entries(shown).slice(-2)).toEqual([
      ['k198', 198],
      ['…', '…'],
    ]);
  });

  it('is the same for each issue that shows the same object', () => {
    const show = echoOf();
    const input = { name: 'x', list: [1] };
    expect(show(input, ['body', 'a'])).toEqual(input);
    expect(show(input, ['body', 'b'])).toEqual(input);
    expect(show(input, ['body', 'code'])).toBe('[redacted]');
  });
});
