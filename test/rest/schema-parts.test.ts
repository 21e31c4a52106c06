import { describe, expect, it } from 'vitest';
import { KEY, nullable, reference, TEXT } from '../../rest/schema-parts.ts';

describe('parts of JSON Schemas', () => {
  it('refer to a schema of the document by its name', () => {
    expect(reference('Item')).toEqual({ $ref: '#/components/schemas/Item' });
  });

  it('describe text without NUL, and keys that reach no prototype', () => {
    const [text, key] = [new RegExp(TEXT), new RegExp(KEY)];
    for (const good of ['', 'a', 'a\nb', 'é']) expect([text.test(good), key.test(good)]).toEqual([true, true]);
    for (const bad of ['\0', 'a\0', '\0a']) expect([text.test(bad), key.test(bad)]).toEqual([false, false]);
    for (const harmless of ['__proto__x', 'x__proto__', '__proto_']) expect(key.test(harmless)).toBe(true);
    expect([text.test('__proto__'), key.test('__proto__')]).toEqual([true, false]);
  });

  it.each([
    [
      { type: 'string', minLength: 1 },
      { type: ['string', 'null'], minLength: 1 },
    ],
    [
      { type: 'string', enum: ['a', 'b'] },
      { type: ['string', 'null'], enum: ['a', 'b', null] },
    ],
    [
      { enum: ['a', 1], title: 'T' },
      { enum: ['a', 1, null], title: 'T' },
    ],
    [reference('Item'), { anyOf: [reference('Item'), { type: 'null' }] }],
    // any value, also null
    [{}, {}],
    [{ type: ['string', 'null'] }, { type: ['string', 'null'] }],
    [{ anyOf: [{ type: 'string' }] }, { anyOf: [{ type: 'string' }] }],
  ])('allow null where it was not allowed: %j', (schema, expected) => {
    expect(nullable(schema)).toEqual(expected);
  });
});
