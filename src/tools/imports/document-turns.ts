import { lruOf } from '../../kernel/lru.ts';

/** Whose document it is. */
export interface DocumentOwner {
  orgId: string;
  userId: string;
}

/** How a document ended: it was read, or took too long. */
type DocumentEnd = 'read' | 'slow';

/** A turn that was given. */
export interface DocumentTurn {
  /** `null` if its end says nothing of the owner: what was wanted of the document was refused. */
  end: DocumentEnd | null;
}

interface Waiter {
  owner: DocumentOwner;
  start: () => void;
  refuse: (reason: unknown) => void;
}

/** Documents at once. Those that may be slow are few: they wait for one thread with all others. */
const RUNNING = { inAll: 8, slow: 1, perOrganization: 1, perUser: 2 };
/** Documents that wait. */
const WAITING = { inAll: 16, perOrganization: 2, perUser: 4 };
/** So long, and for so many organizations and users, it is known that their last document was slow. */
const SLOW = { entries: 2_000, ttl: 600_000 };

/**
 * Whose document is next. An organization and a user have few at a time, and those whose last document took too long
 * come last: nobody's documents hold up those of all others, also not those of somebody with many organizations.
 */
export class DocumentTurns {
  readonly #busy: () => Error;
  readonly #slow = lruOf<true>(SLOW.entries, { ttl: SLOW.ttl });
  readonly #running: DocumentOwner[] = [];
  readonly #waiters: Waiter[] = [];

  /** @param busy makes the error for whoever cannot wait */
  constructor(busy: () => Error) {
    this.#busy = busy;
  }

  /**
   * Does some work with a document when its owner has a turn.
   * @throws the error of a busy owner; the reason of the signal
   */
  async run<T>(owner: DocumentOwner, signal: AbortSignal, work: (turn: DocumentTurn) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#hasRoom(owner)) this.#running.push(owner);
    else await this.#wait(owner, signal);
    const turn: DocumentTurn = { end: null };
    try {
      return await work(turn);
    } finally {
      this.#mark(owner, turn.end);
      this.#running.splice(this.#running.indexOf(owner), 1);
      this.#startNext();
    }
  }

  #wait(owner: DocumentOwner, signal: AbortSignal): Promise<void> {
    const { perOrganization, perUser, inAll } = WAITING;
    const owners = this.#waiters.map((waiter) => waiter.owner);
    if (ofOrganization(owners, owner) >= perOrganization || ofUser(owners, owner) >= perUser) throw this.#busy();
    if (owners.length >= inAll) {
      const last = this.#isSlow(owner) ? -1 : owners.findLastIndex((waiting) => this.#isSlow(waiting));
      if (last < 0) throw this.#busy();
      for (const waiter of this.#waiters.splice(last, 1)) waiter.refuse(this.#busy());
    }
    return new Promise((resolve, reject) => {
      const waiter = { owner, start: resolve, refuse: reject };
      this.#waiters.push(waiter);
      const leave = () => {
        const index = this.#waiters.indexOf(waiter);
        if (index < 0) return; // it has its turn
        this.#waiters.splice(index, 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Starts all that may run now: in their order, and the slow ones last. */
  #startNext(): void {
    for (;;) {
      const ready = this.#waiters.filter(({ owner }) => this.#hasRoom(owner));
      const next = ready.find(({ owner }) => !this.#isSlow(owner)) ?? ready[0];
      if (!next) return;
      this.#waiters.splice(this.#waiters.indexOf(next), 1);
      this.#running.push(next.owner);
      next.start();
    }
  }

  #hasRoom(owner: DocumentOwner): boolean {
    const running = this.#running;
    return (
      running.length < RUNNING.inAll &&
      ofOrganization(running, owner) < RUNNING.perOrganization &&
      ofUser(running, owner) < RUNNING.perUser &&
      (!this.#isSlow(owner) || running.filter((one) => this.#isSlow(one)).length < RUNNING.slow)
    );
  }

  #isSlow(owner: DocumentOwner): boolean {
    return keysOf(owner).some((key) => this.#slow.has(key));
  }

  #mark(owner: DocumentOwner, end: DocumentEnd | null): void {
    for (const key of keysOf(owner))
      if (end === 'slow') this.#slow.set(key, true);
      else if (end === 'read') this.#slow.delete(key);
  }
}

const keysOf = ({ orgId, userId }: DocumentOwner): string[] => [`organization ${orgId}`, `user ${userId}`];
const ofOrganization = (owners: readonly DocumentOwner[], { orgId }: DocumentOwner): number =>
  owners.filter((owner) => owner.orgId === orgId).length;
const ofUser = (owners: readonly DocumentOwner[], { userId }: DocumentOwner): number =>
  owners.filter((owner) => owner.userId === userId).length;
