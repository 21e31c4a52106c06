import type { Caller } from '../../kernel/caller.ts';
import { invalidInput, unavailable } from '../../kernel/errors.ts';
import { Slots } from '../../kernel/slots.ts';
import { moduleOf } from '../../paths.ts';
import { BoundedThread, ThreadError, type ThreadLimits } from '../../platform/threads/bounded-thread.ts';
import { unfinishedWork } from '../../platform/threads/unfinished-work.ts';
import type { TransformTask } from './run-transform.ts';
import type { TransformEnd } from './transform-thread.ts';

/** A transform bounds itself (`transform-budget.ts`): this is for what it does not foresee. */
const LIMITS: ThreadLimits = { timeMs: 10_000, heapMiB: 256, mostPending: 32 };

/** Runs data transforms in a thread of their own, one after the other, without network and without credentials. */
export class DataTransforms {
  readonly #thread: BoundedThread;
  /** One transform of each organization at a time: nobody's transforms hold up those of all others. */
  readonly #slots = new Slots({ total: 8, perOwner: 1, waitingPerOwner: 50, waiting: 200 }, unavailable);

  constructor(limits: Partial<ThreadLimits> = {}) {
    this.#thread = new BoundedThread(moduleOf('tools/data-transforms/transform-thread'), { ...LIMITS, ...limits });
  }

  /**
   * @param path of the values
   * @throws InputError for values of which the transform makes nothing; SERVICE_UNAVAILABLE while too many wait
   */
  async run(caller: Caller, orgId: string, task: TransformTask, path: (string | number)[]): Promise<unknown> {
    await this.#slots.take(orgId, caller.request.left?.() ?? new AbortController().signal);
    try {
      const end = (await this.#thread.run(task)) as TransformEnd;
      if ('refusal' in end) throw invalidInput(path, end.refusal);
      return end.result;
    } catch (error) {
      if (!(error instanceof ThreadError)) throw error;
      throw unfinishedWork(error, (what) => invalidInput(path, `it takes too ${what} for these values`));
    } finally {
      this.#slots.release(orgId);
    }
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }
}
