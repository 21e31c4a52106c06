import type pg from 'pg';
import type { Logger } from '../logger.ts';
import { fitReplicaPooler, isPooled, PoolerError } from './pooler.ts';
import { Probe } from './probe.ts';

/** How often each node asks the primary and the replicas where they are. */
const POLL_MS = 100;
/** A replica further behind is left out: no read of the service is older, whatever it must see. */
export const MAX_LAG_MS = 1_000;
/** A pooler that is not fit yet is tried again this much later. */
const FIT_AGAIN_MS = 1_000;
/** So often at most is told of reads that one replica did not finish. */
const TELL_MS = 60_000;

export type ReplicaState = 'ok' | 'late' | 'away' | 'no replica';

/** One replica, as this node knows it. */
export class Replica {
  /** Its place in DATABASE_READ_URLS, from 1. */
  readonly number: number;
  readonly url: string;
  readonly probe: Probe;
  pool: pg.Pool | null = null;
  position = 0n;
  /** When it had that position, at the latest (`performance.now()`). */
  seenAt = Number.POSITIVE_INFINITY;
  /** The last moment of which it surely has everything (`performance.now()`). */
  freshAt = Number.NEGATIVE_INFINITY;
  fault: 'away' | 'no replica' | null = 'away';
  /** Why it cannot be used, as the log has told. */
  toldFault: 'away' | 'unfit pooler' | null = null;
  /** When its pooler is tried next (`performance.now()`). */
  fitAgainAt = 0;
  /** Reads that it did not finish since the log told of them, and when that was. */
  failedReads = 0;
  toldAt = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<(error: Error) => void>();

  constructor(number: number, url: string) {
    this.number = number;
    this.url = url;
    this.probe = new Probe(url);
  }

  get lagMs(): number {
    return performance.now() - this.freshAt;
  }

  get state(): ReplicaState {
    return this.fault ?? (this.lagMs <= MAX_LAG_MS ? 'ok' : 'late');
  }

  /** Whether it may be read from, and has all that was written before the position. */
  isFitFor(position: bigint): boolean {
    return this.pool !== null && this.position >= position && this.state === 'ok';
  }

  /** Its statements fail now, not when the network finds out: whoever waits asks the primary. */
  leaveOut(fault: 'away' | 'no replica'): void {
    this.fault = fault;
    for (const reject of this.#waiting) reject(new Error(`Replica ${this.number} is left out.`));
  }

  /** What `work` on it comes to. @throws Error at once when it is left out meanwhile */
  async whileThere<T>(work: Promise<T>): Promise<T> {
    let leave: ((error: Error) => void) | undefined;
    const left = new Promise<never>((_, reject) => {
      leave = reject;
      this.#waiting.add(reject);
    });
    try {
      return await Promise.race([work, left]);
    } finally {
      this.#waiting.delete(leave!);
    }
  }
}

export interface ReplicasOptions {
  urls: readonly string[];
  primaryUrl: string;
  logger: Logger;
  /** Opens the connections of a replica. */
  openPool: (url: string, ownsSessions: boolean) => pg.Pool;
}

/** A moment, and where the primary was then or later. */
interface Sample {
  at: number;
  position: bigint;
}

/**
 * The replicas of the database. Each node asks the primary and all replicas ten times a second where they are. A
 * replica that has what the primary had at a moment is as old as that moment, also when nobody writes.
 */
export class Replicas {
  readonly all: readonly Replica[];
  readonly #options: ReplicasOptions;
  readonly #primary: Probe;
  readonly #samples: Sample[] = [];
  #asking: Promise<bigint> | null = null;
  #next: Promise<bigint> | null = null;
  #timers: NodeJS.Timeout[] = [];
  #isOver = false;
  #turn = 0;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.#primary = new Probe(options.primaryUrl);
    this.all = options.urls.map((url, at) => new Replica(at + 1, url));
    this.#watch(() => this.#sample());
    for (const replica of this.all) this.#watch(() => this.#look(replica));
  }

  /** A replica that has all that was written before the position, in turns; `null` for none. */
  pick(position: bigint): Replica | null {
    this.#turn += 1;
    for (let step = 0; step < this.all.length; step++) {
      const replica = this.all[(this.#turn + step) % this.all.length]!;
      if (replica.isFitFor(position)) return replica;
    }
    return null;
  }

  /**
   * Where the primary is: after all that has been committed before the call. Whoever comes while it is being asked
   * shares the next question.
   */
  position(): Promise<bigint> {
    this.#next ??= this.#askNext();
    return this.#next;
  }

  /** Notes a read that a replica did not finish and the primary did. Of one that is away the log has told already. */
  readFailed(replica: Replica, error: unknown): void {
    replica.failedReads += 1;
    if (replica.fault !== null || performance.now() < replica.toldAt + TELL_MS) return;
    this.#options.logger.warn(
      { err: error, replica: replica.number, reads: replica.failedReads },
      'a replica of the database does not finish reads; the primary answers them',
    );
    replica.toldAt = performance.now();
    replica.failedReads = 0;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await this.#primary.end();
    for (const { probe, pool } of this.all) {
      await probe.end();
      await pool?.end();
    }
  }

  async #askNext(): Promise<bigint> {
    await this.#asking?.catch(() => undefined); // reported to those who asked
    this.#next = null;
    this.#asking = this.#primary.state().then(({ position }) => position);
    return this.#asking;
  }

  #watch(look: () => Promise<void>): void {
    const slot = this.#timers.length;
    const run = (): void => {
      void look().finally(() => {
        if (!this.#isOver) this.#timers[slot] = setTimeout(run, POLL_MS).unref();
      });
    };
    this.#timers.push(setTimeout(run, 0).unref());
  }

  async #sample(): Promise<void> {
    const at = performance.now();
    try {
      this.#samples.push({ at, position: await this.position() });
    } catch {
      return; // without the primary no replica is known to be fresh; its own requests tell of it
    }
    // those that are too old to make a replica fresh
    while (this.#samples[0]! && this.#samples[0].at < at - 2 * MAX_LAG_MS) this.#samples.shift();
  }

  /** Once, from the start of the service on. */
  #tell(replica: Replica, error: unknown): void {
    const fault = error instanceof PoolerError ? 'unfit pooler' : 'away';
    if (fault === replica.toldFault) return;
    replica.toldFault = fault;
    const sentence = fault === 'away' ? 'a replica of the database is away' : 'a replica of the database is left out';
    this.#options.logger.warn({ err: error, replica: replica.number }, sentence);
  }

  async #openPool(replica: Replica): Promise<pg.Pool> {
    const { url } = replica;
    const hasPooler = await isPooled(url);
    replica.fitAgainAt = performance.now() + FIT_AGAIN_MS;
    if (hasPooler) await fitReplicaPooler(url, this.#options.primaryUrl);
    return this.#options.openPool(url, !hasPooler);
  }

  /**
   * Whether the primary has come as far as the replica was: after a failover that lost commits, a replica that has them
   * may be ahead of the new primary, and follows nobody.
   */
  #hasReached({ position, seenAt }: Replica): boolean {
    const last = this.#samples.at(-1);
    return last !== undefined && last.at >= seenAt && last.position >= position;
  }

  async #look(replica: Replica): Promise<void> {
    const before = replica.fault;
    try {
      const { isReplica, position } = await replica.probe.state();
      if (!isReplica) return replica.leaveOut('no replica');
      if (!replica.pool && performance.now() < replica.fitAgainAt) return;
      replica.pool ??= await this.#openPool(replica);
      const isFollowing = this.#hasReached(replica);
      // one that has crashed comes back with less than it had
      if (position < replica.position) replica.freshAt = Number.NEGATIVE_INFINITY;
      replica.position = position;
      replica.seenAt = performance.now();
      const had = this.#samples.findLast((sample) => sample.position <= position);
      if (had && isFollowing) replica.freshAt = had.at;
      replica.fault = null;
      replica.toldFault = null;
    } catch (error) {
      if (this.#isOver) return;
      replica.leaveOut('away');
      this.#tell(replica, error);
    }
    if (before !== null && replica.fault === null)
      this.#options.logger.info({ replica: replica.number }, 'a replica of the database is read from');
  }
}
