import type { EnumRef } from '@pothos/core';
import { builder } from './builder.ts';

/**
 * An enum of a closed set of words. They are spelled as in REST and in the rows, so nothing translates them.
 * `extensions.isWords` tells the façade, and the inputs of this type: both say of another word what they say of a text.
 * @param meanings what each word means, which declares the set where the code has no list of it
 * @param words the list that the code has, in the order in which messages name the words
 */
export function wordEnum<const Word extends string>(
  name: string,
  description: string,
  meanings: Readonly<Record<Word, string>>,
  words: readonly Word[] = Object.keys(meanings) as Word[],
): WordEnum<Word> {
  const values = Object.fromEntries(words.map((word) => [word, { value: word, description: meanings[word] }]));
  return builder.enumType(name, { description, values, extensions: { isWords: true } }) as unknown as WordEnum<Word>;
}

/** Columns are plain texts: the words are checked when they are shown. */
type WordEnum<Word> = EnumRef<typeof builder.$inferSchemaTypes, string, Word>;
