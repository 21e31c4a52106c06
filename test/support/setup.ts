/* oxlint-disable no-empty-pattern -- see below */
import { afterAll, vi } from 'vitest';
import { timesSpent } from './times.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Milliseconds that the file spent on databases and apps, and of the processor. */
    times?: ReturnType<typeof timesSpent>;
  }
}

// after all other hooks of the file: the next one of this process finds what this one found
// biome-ignore lint/correctness/noEmptyPattern: the runner reads the fixtures that a hook wants from its pattern
afterAll(({}, suite) => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  suite.meta.times = timesSpent();
});
