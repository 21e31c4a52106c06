import { expect, test } from 'vitest';
import { eventTypes } from '../../console/src/generated/event-types.ts';
import { t as german } from '../../console/src/texts/de.ts';
import { t as english } from '../../console/src/texts/en.ts';
import { eventNames, isAction } from '../../src/kernel/actions.ts';
import { resources } from '../../src/kernel/resources.ts';

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

test('every kind of resource and every action that a record may have has a word', () => {
  expect(Object.keys(resources).filter((kind) => !Object.hasOwn(english.kinds, kind))).toEqual([]);
  expect(Object.keys(eventNames).filter((verb) => !Object.hasOwn(english.activity.verbs, verb))).toEqual([]);
  expect(Object.keys(english.activity.verbs).filter((verb) => !isAction(verb))).toEqual([]);
});

test('every event that a webhook can select is told in German, beside its name', () => {
  for (const type of [...eventTypes.workspace, ...eventTypes.organization]) {
    const [kind = '', word = ''] = type.split('.');
    const [, told = ''] = /^\S+ \((.+: .+)\)$/.exec(german.webhooks.event(type)) ?? [];
    expect([type, told.split(': ')]).toEqual([
      type,
      [german.kinds[kind as keyof typeof german.kinds], expect.any(String)],
    ]);
    expect([type, told.split(': ')[1]]).not.toEqual([type, word.replaceAll('_', ' ')]);
  }
});
