import { V7Generator } from 'uuidv7';
import { declarationOf, type IdKind, resources, resourceWords } from './resources.ts';

const CROCKFORD = Buffer.from('0123456789ABCDEFGHJKMNPQRSTVWXYZ');
const LENGTH = 26;

/** Random words, asked for many at a time: the generator by itself asks the system for every eight. */
const words = new Uint32Array(1_024);
let used = words.length;
const generator = new V7Generator({
  nextUint32() {
    if (used === words.length) {
      crypto.getRandomValues(words);
      used = 0;
    }
    return words[used++]!;
  },
});

/**
 * A new identifier: the prefix of its kind and 26 base-32 characters of a UUIDv7, so identifiers of one process rise
 * strictly and serve as page keys.
 */
export const newId = (kind: IdKind): string => newIdWith(resources[kind].prefix);

const characters = Buffer.alloc(LENGTH);

/** The same for what is no resource. */
export function newIdWith(prefix: string): string {
  // 128 bits, five at a time from the last one on: the first letter has three
  const { bytes } = generator.generate();
  let bits = 0;
  let waiting = 0;
  let to = LENGTH;
  for (let at = bytes.length - 1; at >= 0; at--) {
    bits |= bytes[at]! << waiting;
    waiting += 8;
    for (; waiting >= 5; waiting -= 5) {
      characters[--to] = CROCKFORD[bits & 31]!;
      bits >>= 5;
    }
  }
  characters[0] = CROCKFORD[bits]!;
  return `${prefix}_${characters.toString('latin1')}`;
}

/** The form of identifiers, as the source of a regular expression. */
export const ID_FORM = '[a-z]{2,5}_[0-9A-HJKMNP-TV-Z]{26}';
const ID = new RegExp(`^${ID_FORM}$`);

/** Whether a text has the form of an identifier. There need not be anything of that name. */
export const isId = (text: string): boolean => ID.test(text);

const kindOfPrefix = new Map(
  resourceWords.flatMap((word) => {
    const { prefix } = declarationOf(word);
    return prefix === undefined ? [] : [[prefix, word as IdKind] as const];
  }),
);

/** The resource word that belongs to an identifier's prefix; `null` when there is none. */
export function kindOfId(id: string): IdKind | null {
  return kindOfPrefix.get(id.slice(0, id.lastIndexOf('_'))) ?? null;
}
