import type { Credentials } from './credentials.ts';
import { RateLimitedError, retryAfterOf, UnavailableError } from './errors.ts';

export interface ResilientOptions {
  credentials: Credentials | null;
  /** How often a request is sent again. Default 3. */
  retries?: number;
  /** The longest `Retry-After` that is waited for, in seconds. Default 30. */
  maxWaitSeconds?: number;
  fetch?: typeof fetch;
}

/** Sends a request. `isRepeatable`: it may be sent again after its answer was lost; by default GET and HEAD. */
export type Send = (request: Request, options?: { isRepeatable?: boolean }) => Promise<Response>;

const FIRST_PAUSE_MS = 250;
const AUTHORIZATION = 'authorization';
const IDEMPOTENCY_KEY = 'idempotency-key';
/** What the sender has changed so far: its later reads see that, whichever server answers. */
const CONSISTENCY = 'x-consistency';

/**
 * Sends requests with credentials, and again where that is safe: after 429 and 503, which are answered before anything
 * was done, and after a broken connection if the request may be repeated.
 */
export function resilientFetch(options: ResilientOptions): Send {
  const { credentials, retries = 3, maxWaitSeconds = 30, fetch: send = fetch } = options;
  let position: string | null = null;

  const sendOnce = async (request: Request): Promise<{ response: Response; token: string | null }> => {
    const attempt = request.clone();
    // what the caller set is theirs
    const token = request.headers.has(AUTHORIZATION) ? null : ((await credentials?.token()) ?? null);
    if (token !== null) attempt.headers.set(AUTHORIZATION, `Bearer ${token}`);
    if (position !== null && !request.headers.has(CONSISTENCY)) attempt.headers.set(CONSISTENCY, position);
    const response = await send(attempt);
    position = response.headers.get(CONSISTENCY) ?? position;
    return { response, token };
  };

  return async (request, { isRepeatable = ['GET', 'HEAD'].includes(request.method) } = {}) => {
    let mayRenew = true;
    for (let attempt = 0; ; attempt++) {
      const isLast = attempt >= retries;
      try {
        const { response, token } = await sendOnce(request);
        if (response.status === 401 && mayRenew && token !== null && (await credentials?.renew?.(token))) {
          mayRenew = false;
          attempt--;
        } else {
          const wait = [429, 503].includes(response.status) ? retryAfterOf(response) : null;
          if (isLast || wait === null || wait > maxWaitSeconds) return response;
          await pause(wait * 1_000, request.signal);
        }
        await response.body?.cancel();
      } catch (error) {
        if (isLast || !isRepeatable || !isBroken(error) || request.signal.aborted) throw error;
        await pause(FIRST_PAUSE_MS * 2 ** attempt, request.signal);
      }
    }
  };
}

/**
 * Sends requests of REST: each POST gets an `Idempotency-Key`, with which the service carries it out once. It keeps the
 * keys of callers that it knows, so only their requests are sent again.
 */
export function withIdempotency(send: Send, credentials: Credentials | null): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'POST') return send(request);
    if (!request.headers.has(IDEMPOTENCY_KEY)) request.headers.set(IDEMPOTENCY_KEY, crypto.randomUUID());
    const isKnown = request.headers.has(AUTHORIZATION) || ((await credentials?.token()) ?? null) !== null;
    return send(request, { isRepeatable: isKnown });
  };
}

/** What `fetch` throws for a connection that broke. */
const isBroken = (error: unknown): boolean => error instanceof TypeError;

/** Whether the same may succeed a moment later. */
export const isPassing = (error: unknown): boolean =>
  isBroken(error) || error instanceof UnavailableError || error instanceof RateLimitedError;

/** Waits. @throws the reason of the signal when it is aborted */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
