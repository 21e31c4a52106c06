import type { RequestCache } from '../data/request-cache.ts';
import type { AnyCaller, Caller } from '../kernel/caller.ts';
import { unauthenticated } from '../kernel/errors.ts';
import type { ReceivedFile } from '../kernel/received-file.ts';

/**
 * The services that resolvers may use. The wiring adds those that each group opens to them (`src/wiring`): what it does
 * not add, no resolver reaches.
 */
// biome-ignore lint/suspicious/noEmptyInterface: it is filled by declaration merging
export interface Services {}

/**
 * The context of resolvers: the caller, and the services that they delegate to. One per request or socket operation.
 */
export class Context implements RequestCache {
  readonly anyCaller: AnyCaller;
  readonly services: Services;
  /** The cursor from which an SSE stream resumes, which its client sent in `Last-Event-ID`. */
  lastEventId: string | undefined;
  /** The file of the request's form, which was stored for its mutation: nobody else can use it. */
  receivedFile: ReceivedFile | null = null;
  /** Whether texts that look like secrets are masked, whatever the caller may see: of what models read. */
  hidesSecrets = false;
  /** Of a stream of events: rows that the readers of an event read together. */
  rows: RequestCache | undefined;
  readonly #kept = new Map<string, unknown>();

  constructor(caller: AnyCaller, services: Services) {
    this.anyCaller = caller;
    this.services = services;
  }

  /** The authenticated caller. @throws AUTHENTICATION_FAILED */
  get caller(): Caller {
    if (!this.anyCaller.principal) throw unauthenticated();
    return this.anyCaller as Caller;
  }

  /** The same without a caller: everything that reads the caller fails. */
  asNobody(): Context {
    return new Context({ ...this.anyCaller, principal: null }, this.services);
  }

  /** Drops what was loaded, because something has changed since. */
  forget(): void {
    this.#kept.clear();
  }

  /** A value that the request needs once, such as a loader: created on first use. */
  once<T>(key: string, make: () => T): T {
    if (!this.#kept.has(key)) this.#kept.set(key, make());
    return this.#kept.get(key) as T;
  }
}
