import type { Expectation } from './expectation.ts';
import type { Principal } from './principal.ts';

/** Stands in for the HTTP method of operations over a WebSocket. */
export const SOCKET_METHOD = 'WS';

/** What ties a sign-in to the browser that began it. */
export interface Browser {
  /** What its cookie holds; `null` without one. */
  token: string | null;
  /** Whether a page asked, and not a program. */
  isBrowser: boolean;
  /** Whether the answer is shown to somebody, who can do nothing with JSON. */
  wantsPage: boolean;
  /** Gives it a cookie, or renews its own. @returns what the cookie holds */
  mark(): string;
}

/** What is known about a request before it is parsed. Activity records and logs contain it. */
export interface RequestInfo {
  traceId: string;
  method: string;
  /** Path without the query. */
  path: string;
  /**
   * The endpoint of the request in one spelling: the canonical path of its REST route, or `/graphql` for every
   * transport of GraphQL. Matched against the `endpoint_paths` of a token. `undefined` if the path has no operation.
   * Computed on demand, because few tokens have such paths.
   */
  endpoint?: () => string | undefined;
  /** Client address after trusted proxies. */
  ip: string;
  /** The status of the response if the request succeeds. */
  successStatus: number;
  /** `performance.now()` at arrival. */
  startedAt: number;
  /** The row of the request's Idempotency-Key, if it has one. The change marks it in the same transaction. */
  idempotencyId?: string;
  /** The expected version of the changed resource. Every change made while it is set must check it. */
  expectation?: Expectation | undefined;
  /** Set once a change has written the request's activity record in its transaction. */
  recorded: boolean;
  /**
   * Whether it is a request of the façade. If it fails, it is recorded after the response: only then is its status
   * known.
   */
  isRest: boolean;
  /** The GraphQL mutation that is running: they run one after the other. The records of its changes name it. */
  rootField?: string;
  /** The WebSocket that its operation came through; the same object for all of its operations. */
  socket?: object;
  /** Its header `x-consistency`: its reads must see what that answer's request wrote. */
  consistency?: string | undefined;
  /** Whether it started a stream, which outlives any state of a replica: its reads go to the primary. */
  isStream?: boolean;
  /** Is aborted when the client leaves before it has its answer; `undefined` over a WebSocket. */
  left?: (() => AbortSignal) | undefined;
  /** The browser that sent it; `undefined` over a WebSocket. */
  browser?: Browser;
}

/** Somebody who sends a request, authenticated or not. */
export interface AnyCaller {
  principal: Principal | null;
  /** The user who has just registered or signed in. The response shows this user as the user sees it. */
  signedInAs?: { userId: string; username: string };
  /** The token of the directory that acts by SCIM. Records and events name it as their actor. */
  scimTokenId?: string;
  request: RequestInfo;
}

/**
 * An authenticated caller. Every read and every change takes one first, so that an unscoped one cannot be written by
 * accident.
 */
export interface Caller extends AnyCaller {
  principal: Principal;
}
