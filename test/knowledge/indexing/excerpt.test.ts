import { describe, expect, it } from 'vitest';
import { excerptOf } from '../../../src/knowledge/indexing/excerpt.ts';

const filler = (words: number) => 'and so on '.repeat(words / 2);

describe('an excerpt', () => {
  it('is the whole text where that is short enough', () => {
    expect(excerptOf('a lark rises', ['sun'], 12)).toBe('a lark rises');
  });

  it('is the part with the most different words, then with the most words', () => {
    const text = `lark lark lark ${filler(40)} the lark and the sun ${filler(40)} sun`;
    expect(excerptOf(text, ['lark', 'sun'], 40)).toContain('the lark and the sun');
    const often = `one lark ${filler(40)} lark after lark ${filler(40)}`;
    expect(excerptOf(often, ['lark'], 40)).toContain('lark after lark');
  });

  it('is the first of parts that have as many', () => {
    const text = `${filler(20)} the first lark ${filler(40)} the second lark ${filler(20)}`;
    expect(excerptOf(text, ['lark'], 40)).toContain('the first lark');
  });

  it('is the beginning where no word is found', () => {
    const text = `it begins here ${filler(40)}`;
    expect(excerptOf(text, ['lark'], 20)).toBe('it begins here and');
  });

  it('takes other forms of a word, in any case, and no part of another word', () => {
    const text = `skylarks ${filler(40)} LARKS ${filler(40)}`;
    expect(excerptOf(text, ['larks'], 30)).toContain('LARKS');
  });

  it('begins and ends between words, and within no code point', () => {
    const words = Array.from({ length: 60 }, (_, n) => `word${n}`);
    const part = excerptOf(words.join(' '), ['word30'], 50);
    expect(part.length).toBeLessThanOrEqual(50);
    expect(words.join(' ')).toContain(` ${part} `);
    expect(part.split(' ')).toContain('word30');
    for (const length of [9, 10, 11]) {
      const icons = excerptOf('\u{1F600}'.repeat(40), ['x'], length);
      expect(icons).toMatch(/^\u{1F600}+$/u);
    }
  });
});
