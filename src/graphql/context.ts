import type { Actor, Caller } from '../access/caller.ts';
import { unauthenticated } from '../core/errors.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { Services } from '../services.ts';
import type { UserReads } from '../users/user.reads.ts';
import type { LiveStream } from './transport/live-stream.ts';

/** What resolvers get: who calls, and what they may delegate to. One per request, or per socket operation. */
export class Context implements RequestCache {
  readonly caller: Caller;
  readonly services: Services;
  /** The cursor from which a stream over SSE resumes, as its client sent it in `Last-Event-ID`. */
  lastEventId: string | undefined;
  /** The stream of a subscription that has started, for transports that send its frames by themselves. */
  live: LiveStream | undefined;
  readonly #kept = new Map<string, unknown>();

  constructor(caller: Caller, services: Services) {
    this.caller = caller;
    this.services = services;
  }

  /** The caller, who must be known. @throws AUTHENTICATION_FAILED */
  get actor(): Actor {
    if (!this.caller.principal) throw unauthenticated();
    return this.caller as Actor;
  }

  /** Roles of users within organizations, loaded many at once. */
  get roles(): ReturnType<UserReads['roleLoader']> {
    return this.once('roles', () => this.services.users.reads.roleLoader());
  }

  /** What the `settings` of users show of their organizations, loaded many at once. */
  get ownOrganizations(): ReturnType<UserReads['organizationsLoader']> {
    return this.once('ownOrganizations', () => this.services.users.reads.organizationsLoader());
  }

  /** The same for nobody: what asks who calls fails. */
  asNobody(): Context {
    return new Context({ ...this.caller, principal: null }, this.services);
  }

  /** Drops what was loaded: something has changed since. */
  forget(): void {
    this.#kept.clear();
  }

  /** What the request needs once, such as a loader: made at its first use. */
  once<T>(key: string, make: () => T): T {
    if (!this.#kept.has(key)) this.#kept.set(key, make());
    return this.#kept.get(key) as T;
  }
}
