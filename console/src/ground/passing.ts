import { retryExchange } from '@urql/exchange-retry';
import { type CombinedError, type Exchange, makeOperation, type Operation } from 'urql';
import { makeSubject, merge, pipe, tap } from 'wonka';
import { faultOf } from './problem';

const AGAIN_MS = 10_000;

/** Whether an answer only did not come now, because the service was away or busy. A refusal is none of these. */
export const isPassing = (error: CombinedError): boolean =>
  ['NETWORK', 'SERVICE_UNAVAILABLE', 'RATE_LIMIT_EXCEEDED'].includes(faultOf(error).code);

/** Reads again what did not come, some seconds long, before a view hears of it: a node that restarts is not noticed. */
export const retry = retryExchange({
  initialDelayMs: 500,
  maxDelayMs: 4000,
  maxNumberAttempts: 4,
  retryIf: (error, { kind }) => kind === 'query' && isPassing(error),
});

/**
 * Reads again every ten seconds what a view could not show, until it can, or is left. It sends for itself: the client
 * drops what it believes to be under way, such as a query that the cache did not want to repeat.
 */
export const readWhenBack: Exchange =
  ({ forward }) =>
  (operations) => {
    const timers = new Map<number, ReturnType<typeof setTimeout>>();
    const stop = ({ key }: Operation) => {
      clearTimeout(timers.get(key));
      timers.delete(key);
    };
    const { source: repeated, next: repeat } = makeSubject<Operation>();
    return pipe(
      merge([pipe(operations, tap(stop)), repeated]),
      forward,
      tap(({ operation, error }) => {
        if (operation.kind !== 'query' || !error || !isPassing(error)) return;
        stop(operation);
        // without what was counted of the attempts before
        const { retry: _, ...context } = operation.context;
        const again = makeOperation('query', operation, context);
        timers.set(
          operation.key,
          setTimeout(() => repeat(again), AGAIN_MS),
        );
      }),
    );
  };
