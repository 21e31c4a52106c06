import { invalidInput } from '../core/errors.ts';

/**
 * A place in the order of commits: right behind the event with this transaction and number. A number alone does not
 * order events, because it is handed out when an event is written and not when its transaction commits.
 */
export interface Position {
  xid: string;
  seq: string;
}

const CURSOR = /^(\d{1,20})-(\d{1,19})$/;
const MAX_XID = 2n ** 64n - 1n;
const MAX_SEQ = 2n ** 63n - 1n;

/**
 * The position as clients carry it. It is not authenticated: whoever makes one up sees no more than those who start
 * from it.
 */
export const cursorOf = ({ xid, seq }: Position): string => `${xid}-${seq}`;

/** The position of a cursor; `null` for none. @throws InputError at `after` */
export function positionOf(cursor: string | null | undefined): Position | null {
  if (cursor === null || cursor === undefined || cursor === '') return null;
  const [, xid, seq] = CURSOR.exec(cursor) ?? [];
  if (xid === undefined || seq === undefined || BigInt(xid) > MAX_XID || BigInt(seq) > MAX_SEQ)
    throw invalidInput(['after'], 'this is not the cursor of an event');
  return { xid, seq };
}

/** Whether an event lies behind a position, so that whoever is there has not seen it. */
export function isBehind(event: Position, position: Position): boolean {
  const [own, other] = [BigInt(event.xid), BigInt(position.xid)];
  return own === other ? BigInt(event.seq) > BigInt(position.seq) : own > other;
}
