import { describe, expect, it } from 'vitest';
import { withMember, withResource } from '../../scripts/new-resource/insertions.ts';
import { namingOf } from '../../scripts/new-resource/naming.ts';

describe('the names of a resource', () => {
  it('follow from one noun', () => {
    expect(namingOf('saved-policy', new Set())).toEqual({
      word: 'saved_policy',
      property: 'savedPolicy',
      type: 'SavedPolicy',
      noun: 'saved policy',
      file: 'saved-policy',
      table: 'saved_policies',
      list: 'savedPolicies',
      Lists: 'SavedPolicies',
      folder: 'saved-policies',
      nouns: 'saved policies',
      prefix: 'sp',
    });
  });

  it('have the first prefix that is free', () => {
    expect(namingOf('note', new Set()).prefix).toBe('no');
    expect(namingOf('note', new Set(['no'])).prefix).toBe('not');
    expect(namingOf('field_note', new Set(['fn', 'fi'])).prefix).toBe('fie');
    expect(namingOf('note', new Set(), 'memo').prefix).toBe('memo');
    expect(() => namingOf('no', new Set(['no']))).toThrow('--prefix');
    expect(() => namingOf('note', new Set(['memo']), 'memo')).toThrow('no free prefix');
    expect(() => namingOf('note', new Set(), 'a1')).toThrow('no free prefix');
  });

  it.each(['Note', 'note1', '_note', 'a__b', '', '../note'])('%j is none', (name) => {
    expect(() => namingOf(name, new Set())).toThrow('is no name');
  });
});

describe('one more member', () => {
  it('comes last in a block, whatever is in it', () => {
    const source =
      'f({ open: { a } }: G) {\n  return {\n    open: {\n      a: g({\n      }),\n    },\n    closed: {},\n  };\n}';
    expect(withMember(source, 'open: {', '      b,')).toBe(source.replace('      }),\n', '      }),\n      b,\n'));
  });

  it('comes last in a list on one line', () => {
    expect(withMember("  owns: ['a'],", 'owns: [', "    'b',", ']')).toBe("  owns: ['a', 'b'],");
    expect(withMember('  owns: [],', 'owns: [', "    'b',", ']')).toBe("  owns: ['b'],");
  });

  it('comes before the attributes of a model', () => {
    const model = 'model A {\n  id String\n\n  @@map("as")\n}\n\nmodel B {\n}\n';
    expect(withMember(model, 'model A {', '  bs B[]')).toBe(model.replace('String\n', 'String\n  bs B[]\n'));
    expect(withMember(model, 'model B {', '  as A[]')).toBe(model.replace('B {\n', 'B {\n  as A[]\n'));
  });

  it('is refused where there is no such block', () => {
    expect(() => withMember('model A {\n}', 'model B {', 'x')).toThrow("There is no 'model B {'.");
    expect(() => withMember('open: {', 'open: {', 'x')).toThrow('does not end');
  });

  it('of the table of resources stands before what is internal', () => {
    const table = '  a: {},\n\n  // internal to the service\n  b: {},\n';
    expect(withResource(table, '  c: {},\n')).toBe('  a: {},\n  c: {},\n\n  // internal to the service\n  b: {},\n');
  });
});
