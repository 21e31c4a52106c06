import { unavailable } from '../../kernel/errors.ts';
import type { ThreadError } from './bounded-thread.ts';

/**
 * What callers are told of work that a thread did not finish.
 * @param tooMuch makes the error for work that takes too `long` or too `much memory`
 * @returns SERVICE_UNAVAILABLE while the thread takes no work; the error itself for a fault of the service
 */
export function unfinishedWork(error: ThreadError, tooMuch: (what: 'long' | 'much memory') => Error): Error {
  switch (error.reason) {
    case 'full':
    case 'closed':
      return unavailable();
    case 'timeout':
      return tooMuch('long');
    case 'memory':
      return tooMuch('much memory');
    case 'fault':
    case 'crash':
      return error;
  }
}
