import { useSyncExternalStore } from 'react';
import { type CombinedError, type Exchange, makeOperation, type Operation, type OperationResult } from 'urql';
import { filter, makeSubject, merge, pipe, tap } from 'wonka';
import { Listeners } from './listeners';
import { AGAIN_MS, isPassing, statusOf } from './passing';
import { faultOf } from './problem';

/** What took too long would do so again, and make a busy service busier: readers ask for it themselves. */
const isTooLong = (error: CombinedError): boolean =>
  faultOf(error).reason === 'database_timeout' || statusOf(error) === 504;

/** Not all consoles in the same moment, and not before the service says. */
const pauseOf = (error: CombinedError): number =>
  Math.max(AGAIN_MS, (faultOf(error).retryAfter ?? 0) * 1000) + Math.random() * 1000;

/** The queries whose last answer did not come. */
const missing = new Set<number>();
let isOld = false;
const listeners = new Listeners();

/** A view may ask while it is drawn, when nothing may be drawn anew. */
function tell() {
  queueMicrotask(() => {
    if (isOld === missing.size > 0) return;
    isOld = !isOld;
    listeners.tell();
  });
}

/** Whether something that is shown may be old, because it could not be read again. */
export const useIsOld = (): boolean => useSyncExternalStore(listeners.subscribe, () => isOld);

/**
 * Reads again every few seconds what did not come, until it does or no view needs it. Views hear only of the first
 * failure. It sends for itself, below the cache: the client drops what it believes to be under way, such as a query
 * that the cache did not want to repeat.
 */
export const readWhenBack: Exchange =
  ({ forward }) =>
  (operations) => {
    const timers = new Map<number, ReturnType<typeof setTimeout>>();
    /** What was sent from here, and from no view since. */
    const repeats = new Set<number>();
    /** What a view needs. */
    const asked = new Set<number>();
    const repeated = makeSubject<Operation>();

    const stop = (key: number) => {
      clearTimeout(timers.get(key));
      timers.delete(key);
      repeats.delete(key);
    };
    const repeatLater = (operation: Operation, pauseMs: number) => {
      const { key, context } = operation;
      const repeat = () => {
        timers.delete(key);
        repeats.add(key);
        repeated.next(makeOperation('query', operation, context));
      };
      timers.set(key, setTimeout(repeat, pauseMs));
    };
    const leave = (key: number) => {
      asked.delete(key);
      // a view that asks in another way leaves and asks in one go
      setTimeout(() => {
        if (asked.has(key)) return;
        missing.delete(key);
        tell();
      });
    };
    const sent = (operation: Operation) => {
      const { kind, key, context } = operation;
      if (kind !== 'query' && kind !== 'teardown') return;
      // of two under way the older might come last
      if (kind === 'query' && repeats.has(key)) repeated.next(makeOperation('teardown', operation, context));
      stop(key);
      if (kind === 'query') asked.add(key);
      else leave(key);
    };
    /** Notes a result. @returns whether views hear of it */
    const arrived = ({ operation, data, error }: OperationResult): boolean => {
      if (operation.kind !== 'query') return true;
      const { key } = operation;
      const isRepeat = repeats.has(key);
      stop(key);
      const isMissing = error !== undefined && isPassing(error);
      if (isMissing) missing.add(key);
      else missing.delete(key);
      tell();
      if (!isMissing || isTooLong(error)) return true;
      repeatLater(operation, pauseOf(error));
      return !isRepeat || Boolean(data);
    };
    return pipe(merge([pipe(operations, tap(sent)), repeated.source]), forward, filter(arrived));
  };
