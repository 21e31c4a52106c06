import { uuidv7obj } from 'uuidv7';
import { declarationOf, type IdKind, resources, resourceWords } from './resources.ts';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * A new identifier: the prefix of its kind and 26 base-32 characters of a UUIDv7, so identifiers of one process rise
 * strictly and serve as page keys.
 */
export const newId = (kind: IdKind): string => newIdWith(resources[kind].prefix);

/** The same for what is no resource. */
export function newIdWith(prefix: string): string {
  // 128 bits, five at a time from the last one on: the first letter has three
  const { bytes } = uuidv7obj();
  let text = '';
  let bits = 0;
  let waiting = 0;
  for (let at = bytes.length - 1; at >= 0; at--) {
    bits |= bytes[at]! << waiting;
    waiting += 8;
    for (; waiting >= 5; waiting -= 5) {
      text = CROCKFORD[bits & 31]! + text;
      bits >>= 5;
    }
  }
  return `${prefix}_${CROCKFORD[bits]}${text}`;
}

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
