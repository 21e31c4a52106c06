import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto';
import { invalidInput } from '../kernel/errors.ts';

/** The scope of a cursor: one list with one set of filters. */
export interface CursorScope {
  /** Name of the list, e.g. `workspaces`. */
  list: string;
  /** Everything else that the page depends on: tenant, filters, and who may see what. */
  filters: readonly unknown[];
}

/**
 * Cursors are opaque and authenticated: a tampered one, or one made for another list, tenant or filter, is a validation
 * error (defaults §0.4). Form: base64url of `key`, a NUL and 12 bytes of HMAC-SHA-256 over scope and key.
 */
export class Cursors {
  readonly #secret: Buffer;

  constructor(secret: Buffer) {
    this.#secret = createHash('sha256').update('cursor').update(secret).digest();
  }

  /** The cursor that continues after the row with this key. */
  encode(scope: CursorScope, key: string): string {
    return Buffer.concat([Buffer.from(`${key}\0`), this.#tag(scope, key)]).toString('base64url');
  }

  /** The key of a cursor; `null` for none. @throws InputError at `argument`. */
  decode(scope: CursorScope, cursor: string | null | undefined, argument = 'after'): string | null {
    if (cursor === null || cursor === undefined || cursor === '') return null;
    const bytes = cursor.length <= 512 ? Buffer.from(cursor, 'base64url') : Buffer.alloc(0);
    const end = bytes.length - TAG_BYTES - 1;
    if (end > 0 && bytes[end] === 0 && bytes.toString('base64url') === cursor) {
      const key = bytes.subarray(0, end).toString();
      if (timingSafeEqual(bytes.subarray(end + 1), this.#tag(scope, key))) return key;
    }
    throw notOfThisList(argument);
  }

  #tag(scope: CursorScope, key: string): Buffer {
    const text = JSON.stringify([scope.list, scope.filters, key]);
    return createHmac('sha256', this.#secret).update(text).digest().subarray(0, TAG_BYTES);
  }
}

const TAG_BYTES = 12;

const notOfThisList = (argument: string) =>
  invalidInput([argument], 'the cursor is malformed or was made for another list');

/**
 * The positions of a list for the service that reads it: the key of a row, bound to what the page depends on and the
 * arguments do not tell, such as who may see what. A position is what the cursor of a field seals, so it has no seal of
 * its own.
 */
export class Positions {
  readonly #scope: CursorScope;
  #binding: string | undefined;

  constructor(scope: CursorScope) {
    this.#scope = scope;
  }

  /** The position of the row with this key. */
  of(key: string): string {
    return `${this.#bound} ${key}`;
  }

  /** The key of the row at a position; `null` for none. @throws InputError at `after` for one of another scope */
  keyAt(position: string | null | undefined): string | null {
    if (position === null || position === undefined || position === '') return null;
    const end = position.indexOf(' ');
    if (position.slice(0, end) !== this.#bound) throw notOfThisList('after');
    return position.slice(end + 1);
  }

  get #bound(): string {
    const { list, filters } = this.#scope;
    this.#binding ??= hash('sha256', JSON.stringify([list, filters]), 'base64url').slice(0, BINDING_LENGTH);
    return this.#binding;
  }
}

/** Enough that no two scopes share it. It is sealed, so nobody can look for one that does. */
const BINDING_LENGTH = 16;
