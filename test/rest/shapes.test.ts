import { describe, expect, it } from 'vitest';
import { KEY, reference, TEXT } from '../../rest/schema-parts.ts';
import { addShape } from '../../rest/shapes.ts';

/** The components that a form adds, and the reference to it. */
function documented(schema: object, components: Record<string, object> = {}) {
  const shown = addShape(components as never, { name: 'Form', schema, check: () => [] });
  return { shown, components };
}
/** The form itself, of which only this property is of interest. */
const property = (schema: object, more: object = {}) =>
  (documented({ type: 'object', properties: { a: schema }, ...more }).components.Form as { properties: { a: object } })
    .properties.a;
const required = { required: ['a'] };
const closed = { propertyNames: { pattern: KEY }, additionalProperties: true };

describe('the form of a JSON object in OpenAPI', () => {
  it('is a component with its name, to which its place refers', () => {
    const { shown, components } = documented({ $schema: 'dialect', $defs: {}, title: 'A form', type: 'object' });
    expect(shown).toEqual(reference('Form'));
    expect(components).toEqual({ Form: { title: 'A form', type: 'object', ...closed } });
  });

  it('is there once', () => {
    const components = { Form: { type: 'string' } };
    expect(documented({ type: 'object' }, components).shown).toEqual(reference('Form'));
    expect(components).toEqual({ Form: { type: 'string' } });
  });

  it('says that texts have no NUL, unless they are bounded otherwise', () => {
    expect(property({ type: 'string', maxLength: 5 }, required)).toEqual({
      type: 'string',
      maxLength: 5,
      pattern: TEXT,
    });
    expect(property({ type: 'string', enum: ['x'] }, required)).toEqual({ type: 'string', enum: ['x'] });
    expect(property({ type: 'string', pattern: '^x' }, required)).toEqual({ type: 'string', pattern: '^x' });
    expect(property({ type: 'integer', minimum: 1 }, required)).toEqual({ type: 'integer', minimum: 1 });
  });

  it('allows null for what may be left out, if it has a type', () => {
    expect(property({ type: 'integer' })).toEqual({ type: ['integer', 'null'] });
    expect(property({ type: 'integer' }, { required: ['b'] })).toEqual({ type: ['integer', 'null'] });
    expect(property({ title: 'Anything' })).toEqual({ title: 'Anything' });
  });

  it('has lists of what their items are', () => {
    expect(property({ type: 'array', items: { type: 'string' }, maxItems: 2 }, required)).toEqual({
      type: 'array',
      items: { type: 'string', pattern: TEXT },
      maxItems: 2,
    });
    expect(property({ type: 'array' }, required)).toEqual({ type: 'array', items: {} });
  });

  it('has objects within objects, with the keys that they allow', () => {
    const inner = { type: 'object', properties: { b: { type: 'boolean' } }, required: ['b'] };
    expect(property({ ...inner, additionalProperties: false }, required)).toEqual({
      ...inner,
      propertyNames: { pattern: KEY },
      additionalProperties: false,
    });
    expect(property({ type: 'object', additionalProperties: { type: 'number' } }, required)).toEqual({
      type: 'object',
      propertyNames: { pattern: KEY },
      additionalProperties: { type: 'number' },
    });
    expect(property({ type: 'object', additionalProperties: true }, required)).not.toHaveProperty('properties');
  });

  it('refers to its parts, each a component with its title, and may contain itself', () => {
    const { shown, components } = documented({
      type: 'object',
      properties: { part: { $ref: '#/$defs/part' }, parts: { type: 'array', items: { $ref: '#/$defs/part' } } },
      required: ['parts'],
      $defs: {
        part: {
          title: 'Part of  a form',
          type: 'object',
          properties: { inner: { $ref: '#/$defs/part' }, text: { $ref: '#/$defs/text' } },
          required: ['text'],
        },
        text: { title: 'some text', type: 'string' },
      },
    });
    expect(shown).toEqual(reference('Form'));
    const part = reference('PartOfAForm');
    expect(components).toEqual({
      Form: {
        type: 'object',
        properties: { part: { anyOf: [part, { type: 'null' }] }, parts: { type: 'array', items: part } },
        required: ['parts'],
        ...closed,
      },
      PartOfAForm: {
        title: 'Part of  a form',
        type: 'object',
        properties: { inner: { anyOf: [part, { type: 'null' }] }, text: reference('SomeText') },
        required: ['text'],
        ...closed,
      },
      SomeText: { title: 'some text', type: 'string', pattern: TEXT },
    });
  });
});
