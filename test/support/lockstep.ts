import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';

/**
 * Gives answers of the database that are awaited at the same time at the same time: each waits for the last of them.
 * What a request sends then does not depend on which statement was the fastest: what can be asked in one batch is. For
 * an app of the test's own, and for reads alone: a statement that waits for a lock would wait for its holder for ever.
 */
export function answerInLockstep(pool: pg.Pool): void {
  let running = 0;
  let answered: (() => void)[] = [];
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
  const release = async () => {
    // a request that goes on by a turn of the event loop sends its next statement first
    await setImmediate();
    if (running > 0) return;
    const waiting = answered;
    answered = [];
    for (const go of waiting) go();
  };
  const held = async (...args: unknown[]): Promise<unknown> => {
    running++;
    try {
      return await query(...args);
    } finally {
      running--;
      await new Promise<void>((go) => {
        answered.push(go);
        void release();
      });
    }
  };
  Object.defineProperty(pool, 'query', { configurable: true, writable: true, value: held });
}
