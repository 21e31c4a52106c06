import { t } from '../texts';

/** A word of the service in the words of the reader. What may be any word stays what it is, without its lines. */
export const wordOf = (known: Readonly<Record<string, string>>, word: string): string =>
  Object.hasOwn(known, word) ? known[word]! : word.replaceAll('_', ' ');

/** A kind of resource in words. */
export const kindOf = (kind: string): string => wordOf(t.kinds, kind);
