/** How many pieces of work run at most, in all and per owner, and how many wait: of an owner, and in all. */
export interface SlotLimits {
  total: number;
  perOwner: number;
  waitingPerOwner: number;
  /** Default: as many as all owners together may have waiting. */
  waiting?: number;
  /** How many of all are kept for owners of whom nothing runs. Default: none. */
  reserved?: number;
}

interface Waiter {
  owner: string;
  start: () => void;
}

/**
 * Limits how much work runs at once, in all and per owner, so that the slow work of one tenant does not hold up the
 * others. More of it waits in order.
 */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #busy: () => Error;
  readonly #running = new Map<string, number>();
  readonly #waiters: Waiter[] = [];
  #total = 0;

  /** @param busy makes the error for an owner while too much work waits */
  constructor(limits: SlotLimits, busy: () => Error) {
    this.#limits = limits;
    this.#busy = busy;
  }

  get running(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** Takes a slot if there is room. @returns whether there was */
  takeNow(owner: string): boolean {
    if (!this.#hasRoom(owner)) return false;
    this.#start(owner);
    return true;
  }

  /**
   * Waits for a slot. The caller gives it back with {@link release}.
   * @throws the error of a busy owner; the reason of the signal when it is aborted before
   */
  async take(owner: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.takeNow(owner)) return;
    const waiting = this.#waiters.filter((waiter) => waiter.owner === owner).length;
    const { waitingPerOwner, waiting: waitingInAll = Number.POSITIVE_INFINITY } = this.#limits;
    if (waiting >= waitingPerOwner || this.#waiters.length >= waitingInAll) throw this.#busy();
    await new Promise<void>((resolve, reject) => {
      const waiter = { owner, start: resolve };
      this.#waiters.push(waiter);
      const leave = () => {
        const index = this.#waiters.indexOf(waiter);
        if (index < 0) return; // it has its slot
        this.#waiters.splice(index, 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Gives a slot back, to the first that waits and may have it. */
  release(owner: string): void {
    this.#total -= 1;
    const left = (this.#running.get(owner) ?? 0) - 1;
    if (left > 0) this.#running.set(owner, left);
    else this.#running.delete(owner);
    const next = this.#waiters.findIndex((waiter) => this.#hasRoom(waiter.owner));
    if (next < 0) return;
    for (const waiter of this.#waiters.splice(next, 1)) {
      this.#start(waiter.owner);
      waiter.start();
    }
  }

  #hasRoom(owner: string): boolean {
    const { total, perOwner, reserved = 0 } = this.#limits;
    const running = this.#running.get(owner) ?? 0;
    return this.#total < (running === 0 ? total : total - reserved) && running < perOwner;
  }

  #start(owner: string): void {
    this.#total += 1;
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
  }
}
