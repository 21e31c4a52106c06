import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { GraphQLError } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { AnyCaller } from '../../kernel/caller.ts';
import type { Documents } from './documents.ts';
import type { RegisteredDocuments } from './registered-documents.ts';

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

/** A refusal by the operator's rule has its status over every media type. */
const onlyRegistered = () =>
  new GraphQLError('Browsers may send only registered documents, by their ids and without their texts.', {
    extensions: { code: 'DOCUMENT_NOT_REGISTERED', http: { status: 403 } },
  });

export interface PersistedParams {
  query?: unknown;
  documentId?: unknown;
  extensions?: unknown;
}

/** The request, or the socket of an operation with its present caller. */
type Sender = Pick<FastifyRequest, 'headers'> & { caller: Pick<AnyCaller, 'principal'> };

interface PersistedOptions {
  documents: Documents;
  registered: RegisteredDocuments;
  persistedOnly: boolean;
}

/**
 * Documents that clients name instead of sending them: by the id under which an operator registered them, or by the
 * SHA-256 of their text (Apollo's automatic persisted queries). A client sends such a hash alone; an unknown hash is
 * answered with `PersistedQueryNotFound`, and the client sends text and hash together. What clients sent is kept in
 * this process only: another node, or this one after a restart, requests the text again.
 */
export class PersistedDocuments {
  readonly #documents: Documents;
  readonly #registered: RegisteredDocuments;
  readonly #persistedOnly: boolean;
  readonly #known = memory(KNOWN_BYTES);
  readonly #ofStrangers = memory(STRANGERS_BYTES);

  constructor({ documents, registered, persistedOnly }: PersistedOptions) {
    this.#documents = documents;
    this.#registered = registered;
    this.#persistedOnly = persistedOnly;
  }

  /**
   * The text that a request names, which need not be a valid document. For a valid one with its hash, both are stored.
   * @throws GraphQLError when its name is unknown or does not match the text, or a browser may not send it
   */
  async textOf(params: PersistedParams, request: Sender): Promise<string | undefined> {
    // the protocol of sockets demands a text, and those that send a name leave it empty
    const query = typeof params.query === 'string' ? params.query : undefined;
    const text = query || undefined;
    const id = idOf(params, text);
    const hash = hashOf(params.extensions);
    if (this.#persistedOnly && isFromBrowser(request)) return this.#demandRegistered(text, id ?? hash);
    if (id !== null) {
      const registered = await this.#registered.textOf(id);
      if (registered === undefined)
        throw refused('No document is registered under this "documentId".', 'PERSISTED_QUERY_NOT_FOUND');
      return registered;
    }
    if (hash === null) return query;
    return text === undefined ? this.#demandNamed(hash) : this.#keep(text, hash, request.caller.principal !== null);
  }

  /** For browsers: nothing that clients sent counts. A request that names nothing at all is refused elsewhere. */
  async #demandRegistered(text: string | undefined, id: string | null): Promise<string | undefined> {
    if (text === undefined && id === null) return undefined;
    const registered = text === undefined && id !== null ? await this.#registered.textOf(id) : undefined;
    if (registered === undefined) throw onlyRegistered();
    return registered;
  }

  async #demandNamed(hash: string): Promise<string> {
    const known = this.#known.get(hash) ?? this.#ofStrangers.get(hash) ?? (await this.#registered.textOf(hash));
    if (known === undefined) throw refused('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');
    return known;
  }

  #keep(text: string, hash: string, isKnownCaller: boolean): string {
    if (createHash('sha256').update(text).digest('hex') !== hash)
      throw refused('PersistedQueryMismatch', 'PERSISTED_QUERY_MISMATCH');
    if (!this.#known.has(hash) && this.#documents.isGood(text))
      (isKnownCaller ? this.#known : this.#ofStrangers).set(hash, text);
    return text;
  }
}

/** Whether a page sent it. Programs send none of these headers unless they want to be taken for a browser. */
const isFromBrowser = ({ headers }: Sender): boolean =>
  headers.origin !== undefined || headers['sec-fetch-site'] !== undefined || headers.cookie !== undefined;

/** The id that a request names; `null` for none. @throws GraphQLError for what is no id, or has a text beside it */
function idOf({ documentId }: PersistedParams, text: string | undefined): string | null {
  if (documentId === undefined || documentId === null) return null;
  if (typeof documentId !== 'string') throw refused('"documentId" must be a string.', 'BAD_REQUEST');
  if (text !== undefined) throw refused('Send "documentId" or "query", not both.', 'BAD_REQUEST');
  return documentId;
}

/** The hash that a request names; `null` for none. @throws GraphQLError for another version of the convention */
function hashOf(extensions: unknown): string | null {
  const { persistedQuery } = (extensions ?? {}) as { persistedQuery?: unknown };
  if (persistedQuery === undefined || persistedQuery === null) return null;
  const { version, sha256Hash } = persistedQuery as { version?: unknown; sha256Hash?: unknown };
  if (version === 1 && typeof sha256Hash === 'string') return sha256Hash;
  throw refused('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');
}
