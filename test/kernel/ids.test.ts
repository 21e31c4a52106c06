// own process: identifiers never go back in time, and other files move the clock
import { describe, expect, it } from 'vitest';
import { ID_FORM, isId, kindOfId, newId, newIdWith } from '../../src/kernel/ids.ts';
import { declarationOf, resourceWords } from '../../src/kernel/resources.ts';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const numberOf = (id: string): bigint =>
  Array.from(id.slice(id.indexOf('_') + 1)).reduce((sum, letter) => sum * 32n + BigInt(ALPHABET.indexOf(letter)), 0n);

describe('a new identifier', () => {
  it('has the prefix of its kind and 26 characters of base 32', () => {
    expect(newId('workspace')).toMatch(/^ws_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
    expect(newIdWith('zz')).toMatch(/^zz_[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  });

  it('is a UUIDv7 of the present', () => {
    const before = BigInt(Date.now());
    const value = numberOf(newId('user'));
    expect(value >> 128n).toBe(0n);
    const time = value >> 80n;
    expect(time).toBeGreaterThanOrEqual(before - 1n);
    expect(time).toBeLessThanOrEqual(BigInt(Date.now()) + 1_000n);
    expect((value >> 76n) & 15n).toBe(7n);
    expect((value >> 62n) & 3n).toBe(2n);
  });

  it('is greater than all before it, as text too, and never the same', () => {
    const ids = Array.from({ length: 3_000 }, () => newIdWith('x'));
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id, at) => at > 0 && numberOf(id) <= numberOf(ids[at - 1]!))).toEqual([]);
  });

  it('cannot be guessed from the one before it', () => {
    const tails = Array.from({ length: 1_500 }, () => numberOf(newIdWith('x')) & 0xffff_ffffn);
    expect(new Set(tails).size).toBeGreaterThan(1_490);
  });
});

describe('the form of an identifier', () => {
  it.each([newId('user'), newId('action'), 'ws_00000000000000000000000000', 'abcde_7ZZZZZZZZZZZZZZZZZZZZZZZZZ'])(
    '%s has it',
    (id) => {
      expect(isId(id)).toBe(true);
      expect(id).toMatch(new RegExp(`^${ID_FORM}$`));
    },
  );

  it.each([
    '',
    'ws',
    'ws_',
    'w_00000000000000000000000000',
    'abcdef_00000000000000000000000000',
    'WS_00000000000000000000000000',
    'ws_0000000000000000000000000',
    'ws_000000000000000000000000000',
    'ws_0000000000000000000000000a',
    'ws_0000000000000000000000000I',
    'ws_0000000000000000000000000L',
    'ws_0000000000000000000000000O',
    'ws_0000000000000000000000000U',
    'ws-00000000000000000000000000',
    ' ws_00000000000000000000000000',
    'ws_00000000000000000000000000 ',
  ])('%j does not have it', (id) => expect(isId(id)).toBe(false));
});

describe('the kind of an identifier', () => {
  it('is told by its prefix, which each kind has for itself', () => {
    for (const word of resourceWords) {
      const { prefix } = declarationOf(word);
      if (prefix !== undefined) expect([word, kindOfId(`${prefix}_X`)]).toEqual([word, word]);
    }
  });

  it.each(['', 'ws', '_x', 'nope_x', 'ws_x_y', 'toString_x', 'undefined_x'])('%j has none', (id) => {
    expect(kindOfId(id)).toBeNull();
  });
});
