import { expect, test } from 'vitest';
import { t as german } from '../../console/src/texts/de.ts';
import { t as english } from '../../console/src/texts/en.ts';

/** What there is below each name: a text, or a text that is made of so many values. */
function shapeOf(texts: object, path = ''): string[] {
  return Object.entries(texts).flatMap(([name, text]: [string, unknown]) => {
    const at = `${path}${name}`;
    if (typeof text === 'function') return [`${at}(${text.length})`];
    if (typeof text === 'object' && text !== null) return shapeOf(text, `${at}.`);
    expect([at, typeof text === 'string' && text !== '']).toEqual([at, true]);
    return [at];
  });
}

test('every text is there in both languages', () => {
  expect(shapeOf(german).sort()).toEqual(shapeOf(english).sort());
});
