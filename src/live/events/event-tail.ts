import DataLoader from 'dataloader';
import { readEpoch } from '../../data/epoch.ts';
import { EVENT_COLUMNS, type StreamEvent } from '../../data/outbox.ts';
import type { Sql } from '../../data/sql.ts';
import type { CloseReason } from './close-reason.ts';
import { EventQueue } from './event-queue.ts';
import type { StreamedPlace } from './missed-events.ts';
import { type Position, Snapshot } from './position.ts';

const BATCH = 500;

/**
 * In commit order. A transaction's events become visible when it ends, so only events of transactions older than every
 * running one are read. `id > last` alone would skip an event whose transaction took its number early and committed
 * late. Each row also says whether a running transaction holds back events that are there; without events, a row says
 * only that.
 */
const NEXT = `select h."isHeld", e.* from (select exists (select from events e
    where (e.xid, e.seq) > ($1::xid8, $2::bigint) and e.xid >= pg_snapshot_xmin(pg_current_snapshot())) as "isHeld") h
  left join (select ${EVENT_COLUMNS} from events e
    where (e.xid, e.seq) > ($1::xid8, $2::bigint) and e.xid < pg_snapshot_xmin(pg_current_snapshot())
    order by e.xid, e.seq limit ${BATCH}) e on true
  order by e.xid::xid8, e.seq::bigint`;
const NOW = 'select pg_current_snapshot()::text as snapshot';

/**
 * Each server that takes over begins another timeline. It may lack the last transactions of the one before, and give
 * their numbers again: what was read last is then not there.
 */
const HISTORY = `select substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) as timeline,
    $1::xid8 > pg_snapshot_xmin(pg_current_snapshot())
      or $2::bigint > 0 and not exists (select from events e where e.xid = $1::xid8 and e.seq = $2::bigint)
      as "isLost"`;
const LOOK_MS = 1_000;
/** The first pause before what was held back is asked for again; each next one is twice as long. */
const HELD_MS = 10;

interface Next {
  events: StreamEvent[];
  isHeld: boolean;
}

const keyOf = ({ orgId, workspaceId, userId }: StreamedPlace): string =>
  userId === undefined ? `${orgId} ${workspaceId ?? ''}` : toUser(userId);
const toUser = (userId: string): string => `to ${userId}`;

/** Reads the outbox for all streams of this process: one short poll, which a commit on this node triggers at once. */
export class EventTail {
  readonly #sql: Sql;
  readonly #pollMs: number;
  readonly #onFault: (error: unknown, what: string) => void;
  readonly #queues = new Map<string, Set<EventQueue>>();
  /** One for all that come at once. */
  readonly #snapshots = new DataLoader<'now', Snapshot>((asked) => this.#readSnapshots(asked), {
    cache: false,
  });
  #epoch: string | null = null;
  #position: Position | null = null;
  #timeline: string | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #reading = false;
  #nudged = false;
  #heldMs = HELD_MS;
  #closed = false;

  constructor(sql: Sql, pollMs: number, onFault: (error: unknown, what: string) => void) {
    this.#sql = sql;
    this.#pollMs = pollMs;
    this.#onFault = onFault;
  }

  /** The number of open streams. */
  get size(): number {
    let size = 0;
    for (const queues of this.#queues.values()) size += queues.size;
    return size;
  }

  /** The epoch of the database, which is in all cursors: known as soon as somebody has asked for a position. */
  get epoch(): string {
    if (this.#epoch === null) throw new Error('Nobody has asked for a position.');
    return this.#epoch;
  }

  /**
   * The position now: who reads something after it, and then resumes from it, misses no change. It is before all events
   * of transactions that are still running.
   */
  async now(): Promise<Position> {
    return (await this.#snapshots.load('now')).start;
  }

  /**
   * Subscribes to the events of a workspace, of an organization itself or to a user, from now on. The caller ends the
   * queue when nobody reads it any more.
   */
  async subscribe(place: StreamedPlace): Promise<EventQueue> {
    const now = await this.#snapshots.load('now');
    // another reader may have come first: the position must not move past events that it has not seen yet
    this.#position ??= now.start;
    const key = keyOf(place);
    const queues = this.#queues.get(key) ?? new Set();
    this.#queues.set(key, queues);
    const queue = new EventQueue(this.#position, now, () => {
      queues.delete(queue);
      if (queues.size === 0 && this.#queues.get(key) === queues) this.#queues.delete(key);
      if (this.#queues.size === 0) this.#rest();
    });
    queues.add(queue);
    if (this.#closed) queue.end('shutdown');
    this.#schedule(0);
    return queue;
  }

  /** Called when this node has committed an event. */
  nudge(): void {
    if (this.#queues.size === 0) return;
    this.#nudged = true;
    this.#heldMs = HELD_MS;
    this.#schedule(0);
  }

  /** Ends all streams, because the service stops. */
  close(): void {
    this.#closed = true;
    this.#endAll('shutdown');
    this.#rest();
  }

  #endAll(reason: CloseReason): void {
    for (const queues of this.#queues.values()) for (const queue of queues) queue.end(reason);
  }

  /** Whether another server took over without what was read here: readers come back, and begin again. */
  async #isLost({ xid, seq }: Position): Promise<boolean> {
    if (performance.now() - this.#lookedAt < LOOK_MS) return false;
    const [found] = await this.#sql.read<{ timeline: string; isLost: boolean }>(HISTORY, [xid, seq]);
    this.#lookedAt = performance.now();
    const hasChanged = this.#timeline !== null && this.#timeline !== found!.timeline;
    this.#timeline = found!.timeline;
    return hasChanged && found!.isLost;
  }

  async #readSnapshots(asked: readonly 'now'[]): Promise<Snapshot[]> {
    this.#epoch ??= await readEpoch(this.#sql);
    const [now] = await this.#sql.read<{ snapshot: string }>(NOW, []);
    const snapshot = new Snapshot(now!.snapshot);
    return asked.map(() => snapshot);
  }

  #push(key: string, event: StreamEvent): void {
    for (const queue of this.#queues.get(key) ?? []) queue.push(event);
  }

  #rest(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#position = null;
  }

  #schedule(delayMs: number): void {
    if (this.#closed || this.#reading) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#read(), delayMs);
  }

  async #next({ xid, seq }: Position): Promise<Next> {
    type Row = { isHeld: boolean } & (StreamEvent | { id: null });
    const rows = await this.#sql.read<Row>(NEXT, [xid, seq]);
    const events = rows.flatMap(({ isHeld: _isHeld, ...event }) => (event.id === null ? [] : [event]));
    return { events, isHeld: rows[0]!.isHeld };
  }

  async #read(): Promise<void> {
    this.#reading = true;
    this.#nudged = false;
    let isMore = false;
    let isHeld = false;
    try {
      const position = this.#position;
      if (!position) return;
      if (await this.#isLost(position)) return this.#endAll('unavailable');
      const next = await this.#next(position);
      // all streams have left meanwhile: streams that were added since start at another position
      if (this.#position !== position) return;
      const last = next.events.at(-1);
      if (last) this.#position = { xid: last.xid, seq: last.seq };
      for (const event of next.events) {
        this.#push(keyOf(event), event);
        if (event.recipientId !== null) this.#push(toUser(event.recipientId), event);
      }
      isMore = next.events.length === BATCH;
      isHeld = next.isHeld;
    } catch (error) {
      this.#lookedAt = Number.NEGATIVE_INFINITY; // another server may answer next
      this.#onFault(error, 'events could not be read');
    } finally {
      this.#reading = false;
      if (this.#position) this.#schedule(isMore ? 0 : this.#pauseMs(isHeld));
    }
  }

  /**
   * What is held back comes as soon as the transaction ends, of which nobody tells: it is asked for again soon, and
   * less often the longer it takes.
   */
  #pauseMs(isHeld: boolean): number {
    if (this.#nudged) return HELD_MS;
    if (!isHeld) {
      this.#heldMs = HELD_MS;
      return this.#pollMs;
    }
    const pause = Math.min(this.#heldMs, this.#pollMs);
    this.#heldMs = pause * 2;
    return pause;
  }
}
