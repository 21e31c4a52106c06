import { lruOf } from '../kernel/lru.ts';

/** How many places of an owner are forgotten per second. */
const FORGIVEN_PER_SECOND = 1;
const MAX_PLACE = 30_000;

/**
 * The places of jobs in the queue, by their owners: the first job of one is before the second of another, however many
 * the other has added before. Counted in this process, and forgotten with time.
 */
export class Turns {
  readonly #owners = lruOf<{ jobs: number; at: number }>(10_000);

  /** The place of the next job of an owner: 0 for one that has added none lately. */
  next(owner: string, now = performance.now()): number {
    const known = this.#owners.get(owner) ?? { jobs: 0, at: now };
    const jobs = Math.max(0, known.jobs - ((now - known.at) / 1_000) * FORGIVEN_PER_SECOND);
    this.#owners.set(owner, { jobs: jobs + 1, at: now });
    return Math.min(MAX_PLACE, Math.floor(jobs));
  }
}
