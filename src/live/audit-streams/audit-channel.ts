import { isLiveOrganization } from '../../tenancy/views.ts';
import type { SendChannel } from '../sending/channel.ts';
import { BATCH, MAX_WAITING } from './audit-stream.words.ts';

/** Seconds between two tries. The last one counts for all further tries: no record is given up. */
const WAITS = [5, 15, 60, 300, 900];

/** What is sent of a delivery. */
export interface AuditMessage {
  sequence: string;
  fromXid: string | null;
  fromId: string | null;
  toXid: string | null;
  toId: string | null;
  records: number;
  firstAt: Date;
  excerpt: string;
}

const BEHIND = `activity a where a.org_id = h.org_id and (a.xid, a.id) > (h.position_xid, h.position_id)
  and a.xid < pg_snapshot_xmin(pg_current_snapshot())`;
const WAITING = `(select count(*) from audit_stream_deliveries w where w.audit_stream_id = h.id
  and w.status = 'pending' and not w.is_test)`;
/** A file is made when the hour of its first record is over, or when it is full. */
const HAS_FILE = `(select a.timestamp from ${BEHIND} order by a.xid, a.id limit 1)
    < date_trunc('hour', now() at time zone 'UTC') at time zone 'UTC'
  or exists (select from ${BEHIND} order by a.xid, a.id offset ${BATCH.s3.records - 1} limit 1)`;

/** SQL: which records a stream `h` asks for. */
export const TERM_COLUMNS = `h.begun_snapshot as "begunSnapshot", h.begun_xid as "begunXid", h.actions,
  h.resource_types as "resourceTypes", h.success`;

/** Activity records to audit streams. */
export const auditChannel: SendChannel = {
  noun: 'audit_stream',
  receivers: 'audit_streams',
  deliveries: 'audit_stream_deliveries',
  receiverId: 'audit_stream_id',
  inUse: `h.is_enabled and ${isLiveOrganization('h.org_id')}`,
  hasNew: `case when ${WAITING} >= ${MAX_WAITING} then false
    when h.target_type = 's3' then ${HAS_FILE} else exists (select from ${BEHIND}) end`,
  sent: `d.is_test as "isTest", d.sequence::text as sequence, d.from_xid::text as "fromXid", d.from_id as "fromId",
    d.to_xid::text as "toXid", d.to_id as "toId", d.records, d.first_at as "firstAt", d.excerpt`,
  pollMs: 500,
  waitAfter: ({ tries, maxTries }, retryAfter) =>
    tries + 1 >= maxTries ? null : Math.max(WAITS[Math.min(tries, WAITS.length - 1)]!, retryAfter ?? 0),
};
