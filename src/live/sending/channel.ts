import type { Tried } from './attempts.ts';

/** A kind of receiver: where its rows are, and how patient it is. */
export interface SendChannel {
  noun: 'webhook' | 'audit_stream';
  receivers: 'webhooks' | 'audit_streams';
  deliveries: 'webhook_deliveries' | 'audit_stream_deliveries';
  /** The column of a delivery that names its receiver. */
  receiverId: 'webhook_id' | 'audit_stream_id';
  /** SQL: whether a receiver `h` is in use: those of a deleted place wait until it is restored or gone. */
  inUse: string;
  /** SQL: whether a receiver `h` has something that is no delivery yet. */
  hasNew: string;
  /** SQL: what is sent of a delivery `d`, beyond what its queue needs. */
  sent: string;
  /** How often a node looks by itself: for what other nodes have committed, and for tries that are due. */
  pollMs: number;
  /** Seconds until the next try of a delivery that failed; `null` if it is given up. */
  waitAfter(tried: Tried, retryAfter: number | null): number | null;
}
