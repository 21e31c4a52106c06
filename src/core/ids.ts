import { uuidv7obj } from 'uuidv7';
import { declarationOf, type IdKind, resources, resourceWords } from './resources.ts';

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * A new identifier: the prefix of its kind and 26 base-32 characters of a UUIDv7, so that identifiers of one process rise
 * strictly and pages can be walked by key.
 */
export function newId(kind: IdKind): string {
  let rest = BigInt(`0x${uuidv7obj().toHex()}`);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = CROCKFORD[Number(rest & 31n)]! + text;
    rest >>= 5n;
  }
  return `${resources[kind].prefix}_${text}`;
}

const kindOfPrefix = new Map(
  resourceWords.flatMap((word) => {
    const { prefix } = declarationOf(word);
    return prefix === undefined ? [] : [[prefix, word as IdKind] as const];
  }),
);

/** The resource word that an identifier's prefix stands for; `null` when there is none. */
export function kindOfId(id: string): IdKind | null {
  return kindOfPrefix.get(id.slice(0, id.lastIndexOf('_'))) ?? null;
}
