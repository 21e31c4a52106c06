import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import type pg from 'pg';
import type { AnyCaller, RequestInfo } from '../kernel/caller.ts';
import { TASK_METHOD } from '../kernel/system-caller.ts';
import { type Database, inTransaction } from '../platform/postgres/database.ts';
import type { MarkedRows } from '../platform/postgres/plain-read.ts';
import type { Replica, Replicas } from '../platform/postgres/replicas.ts';
import { type RoutedReads, Sql } from './sql.ts';

/** The primary or a replica, as reads use it. */
export interface ReadTarget extends Pick<Database, 'transaction'> {
  sql: Sql;
}

export const targetOf = (pool: pg.Pool, sql = new Sql(pool)): ReadTarget => ({
  sql,
  transaction: (work) => inTransaction(pool, work),
});

/** How long a user's own writes are remembered: longer than any replica that is read from may lag. */
const REMEMBER_MS = 3_000;
const USERS_AT_MOST = 10_000;
/** No replica has it. */
const NOWHERE = 2n ** 63n;

/** The replica of a request, and what it must have. */
interface Choice {
  replica: Replica;
  needed: bigint;
}

/** What reads of services stand on. */
export interface ReadDeps {
  sql: Sql;
  /** Where lists, sums and searches may be read instead; `null` or missing without replicas. */
  replicaReads?: ReplicaReads | null;
}

/** The reads of a request that may be answered by a replica. */
export const readsOf = ({ sql, replicaReads }: ReadDeps, caller: AnyCaller): RoutedReads =>
  replicaReads?.of(caller) ?? sql;

/**
 * Sends lists, sums and searches of a request to a replica that has what the request must see, else to the primary:
 * what its caller wrote in this process in the last seconds, and what the position in its `x-consistency` has. A
 * request keeps its replica while that is fit. Streams read from the primary.
 */
export class ReplicaReads {
  /** Reads that a replica answered, and those that went to the primary instead. */
  readonly counts = { replica: 0, primary: 0 };
  readonly #replicas: Replicas;
  readonly #primary: ReadTarget;
  readonly #sealed: SealedPositions;
  readonly #targets = new Map<Replica, ReadTarget>();
  readonly #chosen = new WeakMap<RequestInfo, Choice | null>();
  readonly #written = new WeakMap<RequestInfo, bigint>();
  readonly #users = new RecentWrites();

  constructor(replicas: Replicas, primary: ReadTarget, secret: Buffer) {
    this.#replicas = replicas;
    this.#primary = primary;
    this.#sealed = new SealedPositions(secret);
  }

  /** All that are set up. */
  get replicas(): readonly Replica[] {
    return this.#replicas.all;
  }

  /** The reads of a request. */
  of(caller: AnyCaller): RoutedReads {
    const readMarked = <Row extends object, Mark>(text: string, values: unknown[]): Promise<MarkedRows<Row, Mark>> =>
      this.run(caller, ({ sql }) => sql.readMarked(text, values));
    return {
      readMarked,
      read: async <Row extends object>(text: string, values: unknown[]) =>
        (await readMarked<Row, never>(text, values)).rows,
    };
  }

  /** Reads where the reads of a request go. What fails on a replica, for whatever reason, is asked of the primary. */
  async run<T>(caller: AnyCaller, read: (target: ReadTarget) => Promise<T>): Promise<T> {
    const replica = this.#choose(caller);
    const target = replica && this.#targetOf(replica);
    if (!target) return this.#readPrimary(read);
    try {
      const found = await replica.whileThere(read(target));
      this.counts.replica += 1;
      return found;
    } catch (error) {
      // the rest of the request is read there, too
      this.#chosen.set(caller.request, null);
      const found = await this.#readPrimary(read);
      // a fault of the statement is one on the primary as well, and told there
      this.#replicas.readFailed(replica, error);
      return found;
    }
  }

  #readPrimary<T>(read: (target: ReadTarget) => Promise<T>): Promise<T> {
    this.counts.primary += 1;
    return read(this.#primary);
  }

  /**
   * Notes that the caller is to see what was committed until now: a change of theirs, of this request or, for a
   * repeated one, of the first; or what is before a position of events. The request goes on when this is known.
   */
  async committed({ principal, request }: AnyCaller): Promise<void> {
    // nobody waits for what the service does by itself
    if (request.method === TASK_METHOD) return;
    let position = NOWHERE;
    try {
      position = await this.#replicas.position();
    } catch {
      // the primary is away: it has the change, and until it is there again nobody reads
    }
    this.#written.set(request, position);
    this.#chosen.delete(request);
    this.#users.note(principal?.userId ?? null, position);
  }

  /** What the answer of such a request says in `x-consistency`. */
  headerOf(request: RequestInfo): string | null {
    const position = this.#written.get(request);
    return position === undefined || position === NOWHERE ? null : this.#sealed.seal(position);
  }

  #choose({ principal, request }: AnyCaller): Replica | null {
    if (request.isStream) return null;
    const known = this.#chosen.get(request);
    if (known === null) return null;
    if (known) {
      if (known.replica.isFitFor(known.needed)) return known.replica;
      // two replicas would show two states: the rest of the request is read from the primary
      this.#chosen.set(request, null);
      return null;
    }
    const given = request.consistency;
    const asked = given === undefined ? 0n : (this.#sealed.open(given) ?? NOWHERE);
    const positions = [asked, this.#written.get(request) ?? 0n, this.#users.of(principal?.userId ?? null)];
    const needed = positions.reduce((most, one) => (one > most ? one : most));
    const replica = this.#replicas.pick(needed);
    this.#chosen.set(request, replica && { replica, needed });
    return replica;
  }

  #targetOf(replica: Replica): ReadTarget | null {
    const { pool } = replica;
    if (!pool) return null;
    const target = this.#targets.get(replica) ?? targetOf(pool);
    this.#targets.set(replica, target);
    return target;
  }
}

/** The positions of the last writes of users; a write of somebody unknown counts for everybody. */
class RecentWrites {
  readonly #users = new Map<string, { position: bigint; until: number }>();
  #ofAll = { position: 0n, until: 0 };

  note(userId: string | null, position: bigint): void {
    const until = performance.now() + REMEMBER_MS;
    if (userId === null) {
      this.#raise({ position, until });
      return;
    }
    this.#users.delete(userId); // the oldest are first
    this.#users.set(userId, { position, until });
    for (const [oldest, note] of this.#users) {
      if (note.until > performance.now()) {
        if (this.#users.size <= USERS_AT_MOST) return;
        this.#raise(note); // too many to remember each: for a moment it counts for everybody
      }
      this.#users.delete(oldest);
    }
  }

  of(userId: string | null): bigint {
    const now = performance.now();
    const own = userId === null ? undefined : this.#users.get(userId);
    const common = this.#ofAll.until > now ? this.#ofAll.position : 0n;
    return own && own.until > now && own.position > common ? own.position : common;
  }

  #raise({ position, until }: { position: bigint; until: number }): void {
    const common = this.#ofAll.until > performance.now() ? this.#ofAll.position : 0n;
    this.#ofAll = { position: position > common ? position : common, until: Math.max(until, this.#ofAll.until) };
  }
}

const SEALED_LENGTH = 22;

/** Positions as clients carry them: one block of AES, which tells nobody how much is written here. */
class SealedPositions {
  readonly #key: Buffer;

  constructor(secret: Buffer) {
    this.#key = createHash('sha256').update('seal consistency ').update(secret).digest();
  }

  seal(position: bigint): string {
    const block = Buffer.alloc(16);
    block.writeBigUInt64BE(position);
    const cipher = createCipheriv('aes-256-ecb', this.#key, null).setAutoPadding(false);
    return Buffer.concat([cipher.update(block), cipher.final()]).toString('base64url');
  }

  /** `null` for what was not sealed here. */
  open(text: string): bigint | null {
    if (text.length !== SEALED_LENGTH || !/^[\w-]+$/.test(text)) return null;
    const decipher = createDecipheriv('aes-256-ecb', this.#key, null).setAutoPadding(false);
    const block = Buffer.concat([decipher.update(Buffer.from(text, 'base64url')), decipher.final()]);
    return block.readBigUInt64BE(8) === 0n ? block.readBigUInt64BE(0) : null;
  }
}
