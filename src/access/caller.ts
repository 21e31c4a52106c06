import type { Expectation } from '../data/expectation.ts';
import type { Principal } from './principal.ts';

/** What stands in the place of the HTTP method for operations that came over a WebSocket. */
export const SOCKET_METHOD = 'WS';

/** What is known of a request before it is understood: written into activity records and logs. */
export interface RequestInfo {
  traceId: string;
  method: string;
  /** Path without the query. */
  path: string;
  /**
   * Where the request came in, in one spelling: the canonical path of its REST route, or `/graphql` for every transport
   * of GraphQL. What `endpoint_paths` of a token are held against; absent where no operation stands behind the path.
   * Worked out when it is asked for: few tokens have such paths.
   */
  door?: () => string | undefined;
  /** Client address after trusted proxies. */
  ip: string;
  /** The status that the answer will have if all goes well. */
  successStatus: number;
  /** `performance.now()` at arrival. */
  startedAt: number;
  /** The row of the request's Idempotency-Key, where it has one: its change marks it in the same transaction. */
  idempotencyId?: string;
  /** What the resource that is changed must be like; every change that is made meanwhile has to look. */
  expectation?: Expectation | undefined;
  /** Set once a change has written the request's activity record in its transaction. */
  recorded: boolean;
  /** A request of the façade is recorded when it was answered, if it failed: only then its status is known. */
  isRest: boolean;
}

/** Whoever calls: perhaps a stranger. */
export interface Caller {
  principal: Principal | null;
  /**
   * Who has just proven to be somebody, by registering or signing in: the answer shows this user as the user sees it.
   */
  signedInAs?: { userId: string; username: string };
  request: RequestInfo;
}

/**
 * A caller who is known. Every read and every change takes one first, so that an unscoped one cannot be written by
 * accident.
 */
export interface Actor extends Caller {
  principal: Principal;
}
