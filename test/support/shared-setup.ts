import { vi } from 'vitest';

type UseFakeTimers = typeof vi.useFakeTimers;
type Config = Parameters<UseFakeTimers>[0];

/** By which the app lets something happen later. */
const WAITS = new Set<string>(['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask']);

const given: UseFakeTimers & { refuses?: true } = vi.useFakeTimers;

/**
 * Files that share a process share its app, which sets its timers while they run. One that it sets while `setTimeout`
 * is stopped never comes, and each later file of the process waits in vain for what it would have done.
 */
if (!given.refuses)
  vi.useFakeTimers = Object.assign(
    (config?: Config) => {
      const stopped = config?.toFake ?? ['setTimeout'];
      if (stopped.some((name) => WAITS.has(name)))
        throw new Error(`This stops ${stopped.join(', ')} for the app of all files: say '// own process: <reason>'.`);
      return given.call(vi, config);
    },
    { refuses: true as const },
  );
