import delay from 'delay';
import { ApiError } from './api-error.ts';
import type { Credentials } from './credentials.ts';
import { AuthenticationFailedError, RateLimitedError, UnavailableError } from './generated/errors.ts';
import type { ClientOptions } from './types.ts';

/** Whether the same may succeed a moment later. `fetch` throws a `TypeError` for a connection that broke. */
export const isPassing = (error: unknown): boolean =>
  error instanceof TypeError || error instanceof UnavailableError || error instanceof RateLimitedError;

/** The pause before what may be done again at any time: as long as the service says, or longer with each failure. */
export const patientMs = (error: unknown, failures: number): number | null => {
  if (failures >= 5 || !isPassing(error)) return null;
  return ((error as Partial<ApiError>).retryAfterSeconds ?? 2 ** failures / 2) * 1_000;
};

type WaitMs = (error: unknown, failures: number) => number | null | Promise<number | null>;

/** Does something, and again after the pause that `waitMs` says; `null` gives up. */
export async function again<T>(attempt: (failures: number) => Promise<T>, waitMs: WaitMs, signal?: AbortSignal) {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt(failures);
    } catch (error) {
      const ms = signal?.aborted ? null : await waitMs(error, failures);
      if (ms === null) throw error;
      await delay(ms, signal && { signal });
    }
  }
}

/**
 * The requests of each answer, held for as long as somebody may read its body. Node tells a request of an abort only
 * until the request is garbage-collected, and without this nothing else would hold it.
 */
const held = new WeakMap<object, readonly Request[]>();

/** Sends a request. `read` reads the answer, and throws refusals; `isRead` says that nothing is changed. */
type Carry = <T>(request: Request, read: (response: Response) => Promise<T>, isRead: boolean) => Promise<T>;

/**
 * Sends requests with credentials, and again after 429 and 503, which are answered before anything was done, and after
 * a broken connection if nothing can be done twice.
 */
export function carrier(options: ClientOptions, credentials: Credentials): Carry {
  const { retries = 3, maxWaitSeconds = 30, fetch: send = fetch } = options;
  // what this client has changed so far: its later reads see that, whichever server answers
  let position: string | null = null;
  return (request, read, isRead) => {
    const { headers } = request;
    let token: string | null = null;
    let renewals = 0;
    const attempt = async () => {
      // what the caller set is theirs
      token = headers.has('authorization') ? null : await credentials.token();
      // in Node, a clone can lose its signal to garbage collection even while it is held
      const sent = new Request(request.clone(), { signal: request.signal });
      if (token !== null) sent.headers.set('authorization', `Bearer ${token}`);
      if (position !== null && !headers.has('x-consistency')) sent.headers.set('x-consistency', position);
      const response = await send(sent);
      if (response.body) held.set(response.body, [request, sent]);
      position = response.headers.get('x-consistency') ?? position;
      return read(response);
    };
    // the service keeps the keys of callers that it knows
    const isOnce = () => headers.has('idempotency-key') && (token !== null || headers.has('authorization'));
    const waitMs = async (error: unknown, failures: number) => {
      const isOld = error instanceof AuthenticationFailedError && token !== null && renewals === 0;
      if (isOld && (await credentials.renew?.(token!))) return renewals++;
      if (failures >= retries + renewals) return null;
      if (error instanceof TypeError) return isRead || isOnce() ? 250 * 2 ** failures : null;
      const seconds = error instanceof ApiError && [429, 503].includes(error.status) ? error.retryAfterSeconds : null;
      return seconds !== null && seconds <= maxWaitSeconds ? seconds * 1_000 : null;
    };
    return again(attempt, waitMs, request.signal);
  };
}
