import type { Actor, Caller } from '../access/caller.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { LiveStream } from '../engine/live/live-stream.ts';
import type { UserReads } from '../identity/users/user.reads.ts';
import { unauthenticated } from '../kernel/errors.ts';
import type { Services } from '../wiring/services.ts';

/**
 * The context of resolvers: the caller, and the services that they delegate to. One per request or socket operation.
 */
export class Context implements RequestCache {
  readonly caller: Caller;
  readonly services: Services;
  /** The cursor from which an SSE stream resumes, which its client sent in `Last-Event-ID`. */
  lastEventId: string | undefined;
  /** The stream of a started subscription, for transports that send its frames themselves. */
  live: LiveStream | undefined;
  readonly #kept = new Map<string, unknown>();

  constructor(caller: Caller, services: Services) {
    this.caller = caller;
    this.services = services;
  }

  /** The authenticated caller. @throws AUTHENTICATION_FAILED */
  get actor(): Actor {
    if (!this.caller.principal) throw unauthenticated();
    return this.caller as Actor;
  }

  /** Roles of users within organizations, loaded in batches. */
  get roles(): ReturnType<UserReads['roleLoader']> {
    return this.once('roles', () => this.services.users.reads.roleLoader());
  }

  /** What the `settings` of users show of their organizations, loaded in batches. */
  get ownOrganizations(): ReturnType<UserReads['organizationsLoader']> {
    return this.once('ownOrganizations', () => this.services.users.reads.organizationsLoader());
  }

  /** The same without a caller: everything that reads the caller fails. */
  asNobody(): Context {
    return new Context({ ...this.caller, principal: null }, this.services);
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
