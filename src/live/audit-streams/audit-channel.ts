import { isLiveOrganization } from '../../tenancy/views.ts';
import type { SendChannel } from '../sending/channel.ts';
import { MAX_WAITING } from './audit-stream.words.ts';

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

/**
 * SQL: a column of the first record behind a stream `h`. The planner takes the index of the organization for this form
 * only: it reads all partitions for an `exists`, and takes the index of all organizations if the organization is equal.
 */
const firstBehind = (column: string): string => `(select a.${column} from activity a
    where a.org_id between h.org_id and h.org_id
      and (a.org_id, a.xid, a.id) > (h.org_id, h.position_xid, h.position_id)
      and a.xid < pg_snapshot_xmin(pg_current_snapshot())
    order by a.org_id, a.xid, a.id limit 1)`;
/** SQL: how many batches of a stream `h` wait. Tests are about themselves, and not read. */
export const WAITING = `(select count(*)::int from audit_stream_deliveries w
  where w.audit_stream_id = h.id and w.status = 'pending' and w.resource_id = h.id)`;
/** The files of an hour are made when it is over: a look reads one record, however many there are. */
const HAS_FILE = `${firstBehind('timestamp')} < date_trunc('hour', now() at time zone 'UTC') at time zone 'UTC'`;

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
    when h.target_type = 's3' then ${HAS_FILE} else ${firstBehind('id')} is not null end`,
  sent: `d.is_test as "isTest", d.sequence::text as sequence, d.from_xid::text as "fromXid", d.from_id as "fromId",
    d.to_xid::text as "toXid", d.to_id as "toId", d.records, d.first_at as "firstAt", d.excerpt`,
  pollMs: 500,
  waitAfter: ({ tries, maxTries }, retryAfter) =>
    tries + 1 >= maxTries ? null : Math.max(WAITS[Math.min(tries, WAITS.length - 1)]!, retryAfter ?? 0),
};
