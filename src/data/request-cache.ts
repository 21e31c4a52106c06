import type { AnyCaller, Caller } from '../kernel/caller.ts';

/** Keeps what a request needs once, such as a loader. */
export interface RequestCache {
  once<T>(key: string, make: () => T): T;
  /** Where loaders of single rows are kept instead, which do not depend on who asks: shared with other requests. */
  readonly rows?: RequestCache | undefined;
}

/** A request that reads, with its caller. */
export interface ReadContext extends RequestCache {
  readonly anyCaller: AnyCaller;
}

/** The same with an authenticated caller. */
export interface CallerContext extends ReadContext {
  readonly caller: Caller;
}

/** Caches nothing: for reads of a change, which must not use rows that were loaded before. */
export const noCache: RequestCache = { once: (_key, make) => make() };
