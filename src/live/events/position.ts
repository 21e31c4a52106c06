import { invalidInput } from '../../kernel/errors.ts';

/**
 * A position in the order of commits: directly after the event with this transaction and number. A number alone does
 * not order events, because it is assigned when an event is written and not when its transaction commits.
 */
export interface Position {
  xid: string;
  seq: string;
}

/** A position of a database, as a client sends it. */
export interface Cursor extends Position {
  /** Of the database; `null` in cursors from before they had one. */
  epoch: string | null;
  text: string;
}

const CURSOR = /^(?:([\da-f]{6})-)?(\d{1,20})-(\d{1,19})$/;
const MAX_XID = 2n ** 64n - 1n;
const MAX_SEQ = 2n ** 63n - 1n;

/**
 * The position in the form that clients get. It is not authenticated: a made-up cursor shows no more than a real one at
 * the same position.
 */
export const cursorOf = ({ xid, seq }: Position, epoch: string): string => `${epoch}-${xid}-${seq}`;

/** A cursor that a client sent; `null` for none. @throws InputError at `after` */
export function parsedCursor(text: string | null | undefined): Cursor | null {
  if (text === null || text === undefined || text === '') return null;
  const [, epoch = null, xid, seq] = CURSOR.exec(text) ?? [];
  if (xid === undefined || seq === undefined || BigInt(xid) > MAX_XID || BigInt(seq) > MAX_SEQ)
    throw invalidInput(['after'], 'this is not the cursor of an event');
  return { epoch, xid, seq, text };
}

/** Whether an event comes after a position, so that a reader at the position has not seen it. */
export function isBehind(event: Position, position: Position): boolean {
  const [own, other] = [BigInt(event.xid), BigInt(position.xid)];
  return own === other ? BigInt(event.seq) > BigInt(position.seq) : own > other;
}

/** What was committed at a moment, by PostgreSQL's `pg_current_snapshot`. */
export class Snapshot {
  /** Everything up to this position was decided: all transactions before it had ended. */
  readonly start: Position;
  readonly #next: bigint;
  readonly #running: ReadonlySet<string>;

  /** @param text `xmin:xmax:xip,xip,…` */
  constructor(text: string) {
    const [oldest, next, running] = text.split(':') as [string, string, string];
    this.start = { xid: oldest, seq: '0' };
    this.#next = BigInt(next);
    this.#running = new Set(running.split(','));
  }

  /** Whether an event could be seen at that moment. */
  has({ xid }: Position): boolean {
    return BigInt(xid) < this.#next && !this.#running.has(xid);
  }

  /** Whether the transaction of an event began later. Then those of all events that follow it did, too. */
  isBefore({ xid }: Position): boolean {
    return BigInt(xid) >= this.#next;
  }
}
