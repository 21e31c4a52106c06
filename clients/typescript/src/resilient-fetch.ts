import type { Credentials } from './credentials.ts';
import { retryAfterOf } from './errors.ts';

export interface ResilientOptions {
  credentials: Credentials | null;
  /** How often a request is sent again. Default 3. */
  retries?: number;
  /** The longest `Retry-After` that is waited for, in seconds. Default 30. */
  maxWaitSeconds?: number;
  fetch?: typeof fetch;
}

const FIRST_PAUSE_MS = 250;

/**
 * Sends requests with credentials, and again where that is safe: after 429 and 503, which are answered before anything
 * was done, and after a broken connection if the request changes nothing or has an `Idempotency-Key`. Each POST gets
 * such a key.
 */
export function resilientFetch(options: ResilientOptions): (request: Request) => Promise<Response> {
  const { credentials, retries = 3, maxWaitSeconds = 30, fetch: send = fetch } = options;

  const sendOnce = async (request: Request): Promise<{ response: Response; token: string | null }> => {
    const attempt = request.clone();
    // what the caller set is theirs
    const token = request.headers.has('authorization') ? null : ((await credentials?.token()) ?? null);
    if (token !== null) attempt.headers.set('authorization', `Bearer ${token}`);
    return { response: await send(attempt), token };
  };

  return async (request) => {
    if (request.method === 'POST' && !request.headers.has('idempotency-key'))
      request.headers.set('idempotency-key', crypto.randomUUID());
    const isRepeatable = ['GET', 'HEAD', 'POST'].includes(request.method);
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
        // what `fetch` throws for a connection that broke
        if (isLast || !isRepeatable || !(error instanceof TypeError) || request.signal.aborted) throw error;
        await pause(FIRST_PAUSE_MS * 2 ** attempt, request.signal);
      }
    }
  };
}

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
