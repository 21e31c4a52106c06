import { createHash } from 'node:crypto';
import { GraphQLError } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Documents } from './documents.ts';

/** Maximum size of the texts that authenticated callers have registered. */
const KNOWN_BYTES = 8 * 1024 * 1024;
/** The same for anonymous callers, kept apart so that they cannot evict the texts of authenticated ones. */
const STRANGERS_BYTES = 1024 * 1024;
/** The overhead of a text: its hash, and the cache's entry. */
const ENTRY_BYTES = 300;

const memory = (maxSize: number) =>
  new LRUCache<string, string>({ maxSize, sizeCalculation: (text) => 2 * text.length + ENTRY_BYTES });

/**
 * Clients recognise these errors by their messages. Over `application/json` they have the status 200, like every
 * request error.
 */
const refused = (message: string, code: string) =>
  new GraphQLError(message, { extensions: { code, http: { spec: true, status: 400 } } });

interface Params {
  query?: unknown;
  extensions?: unknown;
}

/**
 * Documents that clients name by the SHA-256 of their text (Apollo's automatic persisted queries). A client sends the
 * hash alone; an unknown hash is answered with `PersistedQueryNotFound`, and the client sends text and hash together.
 * Kept in this process only: another node, or this one after a restart, requests the text again.
 */
export class PersistedDocuments {
  readonly #documents: Documents;
  readonly #known = memory(KNOWN_BYTES);
  readonly #ofStrangers = memory(STRANGERS_BYTES);

  constructor(documents: Documents) {
    this.#documents = documents;
  }

  /**
   * The text that a request names, which need not be a valid document. For a valid one, text and hash are stored.
   * @throws GraphQLError when the hash is unknown, or does not match the text
   */
  textOf({ query, extensions }: Params, isKnownCaller: boolean): string | undefined {
    const text = typeof query === 'string' ? query : undefined;
    const named = hashOf(extensions);
    if (named === null) return text;
    if (text === undefined) {
      const known = this.#known.get(named) ?? this.#ofStrangers.get(named);
      if (known === undefined) throw refused('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');
      return known;
    }
    if (createHash('sha256').update(text).digest('hex') !== named)
      throw refused('PersistedQueryMismatch', 'PERSISTED_QUERY_MISMATCH');
    if (!this.#known.has(named) && this.#documents.isGood(text))
      (isKnownCaller ? this.#known : this.#ofStrangers).set(named, text);
    return text;
  }
}

/** The hash that a request names; `null` for none. @throws GraphQLError for another version of the convention */
function hashOf(extensions: unknown): string | null {
  const { persistedQuery } = (extensions ?? {}) as { persistedQuery?: unknown };
  if (persistedQuery === undefined || persistedQuery === null) return null;
  const { version, sha256Hash } = persistedQuery as { version?: unknown; sha256Hash?: unknown };
  if (version === 1 && typeof sha256Hash === 'string') return sha256Hash;
  throw refused('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');
}
