import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from './platform/logger.ts';

interface ShutdownStep {
  what: string;
  undo: () => Promise<void>;
  timeoutSeconds: number;
}

/**
 * Undoes the steps of a start, the last one first. Each step has a timeout, so that a stuck one does not block the
 * others.
 */
export class Shutdown {
  private readonly steps: ShutdownStep[] = [];

  /** `what` completes "stopping …" in the log. */
  add(what: string, undo: () => Promise<void>, timeoutSeconds: number): void {
    this.steps.push({ what, undo, timeoutSeconds });
  }

  /** Runs all steps, once. @returns whether all of them succeeded in time */
  async run(logger: Logger): Promise<boolean> {
    let isClean = true;
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      const problem = await runStep(step);
      if (problem === undefined) continue;
      isClean = false;
      logger.error({ err: problem }, `stopping ${step.what} failed`);
    }
    return isClean;
  }
}

async function runStep({ undo, timeoutSeconds }: ShutdownStep): Promise<unknown> {
  const late = new AbortController();
  const timeout = delay(timeoutSeconds * 1_000, undefined, { signal: late.signal }).then(
    () => new Error(`not done after ${timeoutSeconds} s`),
    () => undefined, // aborted, because the step finished in time
  );
  try {
    return await Promise.race([undo().then(() => undefined), timeout]);
  } catch (error) {
    return error;
  } finally {
    late.abort();
  }
}
