import type { Actor, Caller } from '../access/caller.ts';
import type { Services } from '../services.ts';
import type { UserReads } from '../users/user.reads.ts';
import { unauthenticated } from './errors.ts';

/** What resolvers get: who calls, and what they may delegate to. One per request, or per socket operation. */
export class Context {
  readonly caller: Caller;
  readonly services: Services;
  #roles: ReturnType<UserReads['roleLoader']> | undefined;

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
    this.#roles ??= this.services.users.reads.roleLoader();
    return this.#roles;
  }

  /** For the Prisma plugin, which loads relations that a resolver did not bring along. */
  prisma() {
    return this.services.prisma;
  }
}
