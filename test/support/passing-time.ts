import { onTestFinished, vi } from 'vitest';

/** Lets time pass at once. */
export interface PassingTime {
  pass(ms: number): void;
}

/**
 * Stops the time by which caches and limits reckon, `performance.now`, until the end of the test. It goes on only as
 * the test says: "within a second" is then true or false, however slow the machine is.
 */
export function stopAges(): PassingTime {
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  return {
    pass: (ms) => {
      now += ms;
    },
  };
}

/** What waits for its time. */
interface Waiting {
  handle: NodeJS.Timeout;
  run: () => void;
  dueMs: number;
  /** Of a repeated one. */
  everyMs: number | null;
}

type Callback = (...args: unknown[]) => void;

/**
 * Lets the long waits that begin from now on, until the end of the test, end early: `pass` does what is due by then, in
 * its order. They are real timers all the same, so whatever nobody hurries comes in its own time.
 * @param longMs what is long; shorter waits run by themselves
 */
export function hurryTimers(longMs = 200): PassingTime {
  const real = timersOf(globalThis);
  const waiting = new Map<NodeJS.Timeout, Waiting>();
  let nowMs = 0;
  const noting =
    (start: (run: Callback, ms?: number, ...args: unknown[]) => NodeJS.Timeout, isRepeated: boolean) =>
    (callback: Callback, ms = 0, ...args: unknown[]): NodeJS.Timeout => {
      const handle = start(run, ms);
      function run(): void {
        if (!isRepeated) waiting.delete(handle);
        callback(...args);
      }
      if (ms >= longMs) waiting.set(handle, { handle, run, dueMs: nowMs + ms, everyMs: isRepeated ? ms : null });
      return handle;
    };
  const forgetting =
    (clear: typeof clearTimeout): typeof clearTimeout =>
    (handle) => {
      waiting.delete(handle as NodeJS.Timeout);
      clear(handle);
    };
  Object.assign(globalThis, {
    setTimeout: Object.assign(noting(real.setTimeout as never, false), real.setTimeout),
    setInterval: noting(real.setInterval as never, true),
    clearTimeout: forgetting(real.clearTimeout),
    clearInterval: forgetting(real.clearInterval),
  });
  onTestFinished(() => void Object.assign(globalThis, real));
  return {
    pass(ms) {
      const until = nowMs + ms;
      for (let next = firstOf(waiting, until); next; next = firstOf(waiting, until)) {
        nowMs = next.dueMs;
        if (next.everyMs === null) real.clearTimeout(next.handle);
        else next.dueMs += next.everyMs;
        next.run();
      }
      nowMs = until;
    },
  };
}

const timersOf = ({ setTimeout, setInterval, clearTimeout, clearInterval }: typeof globalThis) => ({
  setTimeout,
  setInterval,
  clearTimeout,
  clearInterval,
});

const firstOf = (waiting: ReadonlyMap<unknown, Waiting>, untilMs: number): Waiting | undefined =>
  [...waiting.values()].filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
