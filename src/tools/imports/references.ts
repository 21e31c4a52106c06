import { isJsonObject } from '../../kernel/json-object.ts';
import type { GapKind } from './import-plan.ts';

export type JsonPart = Readonly<Record<string, unknown>>;

/** Something in a document, with its place. */
export interface LocatedPart {
  value: JsonPart;
  /** As a JSON pointer. */
  place: string;
}

/** Why something cannot be taken, with its place in the document. */
export class Gap extends Error {
  override readonly name = 'Gap';
  readonly kind: GapKind;
  readonly place: string;

  constructor(kind: GapKind, place: string, message: string) {
    super(message);
    this.kind = kind;
    this.place = place;
  }
}

/** References that lead to one another, one after the other. */
const MAX_HOPS = 16;
const MAX_PLACE = 500;

/** The place of a part: `/paths` and `/pets/{id}` are `/paths/~1pets~1{id}`. */
export const within = (place: string, ...keys: (string | number)[]): string =>
  [place, ...keys.map((key) => String(key).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/');

/** A text of a document, as far as an action may have it: cut, and without what no database keeps. */
export function cut(text: unknown, most: number): string | null {
  if (typeof text !== 'string') return null;
  const found = text.replaceAll('\u0000', '').slice(0, most).toWellFormed().trim();
  return found === '' ? null : found;
}

/** The value of a key that a stranger chose. */
export const at = (of: JsonPart, key: string): unknown => (Object.hasOwn(of, key) ? of[key] : undefined);

/** The text of a reference; `null` if a value is none. */
export const referenceOf = (value: JsonPart): string | null => {
  const reference = at(value, '$ref');
  return typeof reference === 'string' ? reference : null;
};

/** Follows references, which never leave the document. */
export class DocumentReferences {
  readonly #root: JsonPart;

  constructor(root: JsonPart) {
    this.#root = root;
  }

  /** The object that is meant at a place: itself, or where its reference leads. @throws Gap */
  resolved(value: unknown, place: string): LocatedPart {
    let found: LocatedPart = { value: objectAt(value, place), place };
    for (let hops = 0; ; hops++) {
      const reference = referenceOf(found.value);
      if (reference === null) return found;
      if (hops === MAX_HOPS) throw new Gap('broken_reference', place, 'The reference leads in a circle, or too far.');
      found = this.target(reference, found.place);
    }
  }

  /** Where a reference leads. @throws Gap */
  target(reference: string, place: string): LocatedPart {
    if (!reference.startsWith('#'))
      throw new Gap('remote_reference', place, 'The reference leads out of the document, and is not followed.');
    const pointer = decoded(reference.slice(1));
    let found: unknown = this.#root;
    for (const part of pointer.split('/').slice(1)) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      found = typeof found === 'object' && found !== null ? at(found as JsonPart, key) : undefined;
    }
    if (!isJsonObject(found)) throw new Gap('broken_reference', place, 'The reference leads to no object.');
    return { value: found, place: pointer.slice(0, MAX_PLACE) };
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a pointer that was not encoded
  }
}

function objectAt(value: unknown, place: string): JsonPart {
  if (isJsonObject(value)) return value;
  throw new Gap('invalid', place, 'It is no object.');
}
