import type { Actor, Caller } from '../access/caller.ts';

/** Keeps what a request needs once, such as a loader. */
export interface RequestCache {
  once<T>(key: string, make: () => T): T;
}

/** A request that reads, with who asks. */
export interface ReadContext extends RequestCache {
  readonly caller: Caller;
}

/** The same of a caller who is known. */
export interface ActorContext extends ReadContext {
  readonly actor: Actor;
}

/** Keeps nothing: for what a change reads, which must not have been loaded before. */
export const unkept: RequestCache = { once: (_key, make) => make() };
