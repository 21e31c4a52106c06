import type { Access } from '../../access/access.ts';
import type { Changes } from '../../data/changes.ts';
import type { FeedTerms, RecordFeed } from '../../data/record-feed.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import { newId } from '../../kernel/ids.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { type ActingUser, CALLER_COLUMNS, CALLER_JOIN, IS_AHEAD } from '../sending/acting-user.ts';
import type { Disabling } from '../sending/disabling.ts';
import type { FanOut } from '../sending/send-engine.ts';
import { type AuditBatch, nextBatch } from './audit-batch.ts';
import { auditCaller } from './audit-caller.ts';
import { auditChannel, TERM_COLUMNS, WAITING } from './audit-channel.ts';
import { BATCH, MAX_WAITING, type TargetType } from './audit-stream.words.ts';
import { excerptOfLine } from './excerpt.ts';

interface FannedStream extends ActingUser, FeedTerms {
  id: string;
  targetType: TargetType;
  xid: string;
  positionId: string;
  /** The database was restored from a copy whose transactions had higher numbers. */
  isAhead: boolean;
  /** What a receiver takes at once, if one has refused more; `null` for all that fits. */
  batchBytes: number | null;
  /** Deliveries that are not over. */
  waiting: number;
  now: Date;
}

const STREAM = `select h.id, h.target_type as "targetType", h.position_xid::text as xid, h.position_id as "positionId",
    ${TERM_COLUMNS}, ${IS_AHEAD} as "isAhead", now() as now, ${CALLER_COLUMNS},
    h.batch_bytes as "batchBytes", ${WAITING} as waiting
  from audit_streams h ${CALLER_JOIN} where h.id = $1 and ${auditChannel.inUse}`;

/** One waits while there is an earlier one. A statement after the lock of the stream: what ended meanwhile is over. */
const INSERT = `insert into audit_stream_deliveries (id, org_id, audit_stream_id, resource_id, sequence, from_xid,
    from_id, to_xid, to_id, records, size_bytes, first_at, last_at, excerpt, due_at)
  values ($1, $2, $3, $3, $4, $5::xid8, $6, $7::xid8, $8, $9, $10, $11, $12, $13,
    case when not exists (select from audit_stream_deliveries p
      where p.audit_stream_id = $3 and p.status = 'pending' and p.resource_id = $3) then now() end)`;

const OVER = { made: 0, isMore: false };

interface FanOutDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  feed: RecordFeed;
  disabling: Disabling;
}

/** Makes deliveries of records, and moves the position of a stream past them, in one change. */
export class AuditFanOut implements FanOut {
  readonly #deps: FanOutDeps;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
  }

  async run(streamId: string, isOver: () => boolean): Promise<number> {
    let made = 0;
    for (let steps = 0; steps < MAX_WAITING && !isOver(); steps++) {
      const step = await this.#step(streamId);
      made += step.made;
      if (!step.isMore) break;
    }
    return made;
  }

  async #step(streamId: string): Promise<{ made: number; isMore: boolean }> {
    const { sql, access, feed, disabling } = this.#deps;
    const [stream] = await sql.read<FannedStream>(STREAM, [streamId]);
    if (!stream) return OVER;
    const caller = await auditCaller(access, stream);
    if (caller === 'no access') await disabling.disable(streamId, 'no_access');
    if (typeof caller === 'string') return OVER;
    if (stream.isAhead) {
      await this.#beginAgain(stream);
      return OVER;
    }
    if (stream.waiting >= MAX_WAITING) return OVER;
    const { records: most } = BATCH[stream.targetType];
    const records = await feed.next(stream, { xid: stream.xid, id: stream.positionId }, most);
    const batch = nextBatch(records, stream, stream.now);
    if (!batch) return OVER;
    const made = await this.#queue(stream, batch);
    return { made, isMore: batch.isCut || records.length === most };
  }

  /** Another node may have been faster: then this one does nothing. */
  #queue({ id, orgId, xid, positionId }: FannedStream, batch: AuditBatch): Promise<number> {
    const { last, wanted, sizeBytes } = batch;
    return this.#deps.changes.run(systemCaller('audit streams'), async (tx) => {
      const [held] = await tx.query<{ next: number }>(statement`select last_sequence + 1 as next
        from audit_streams where id = ${id} and is_enabled
          and position_xid = ${xid}::xid8 and position_id = ${positionId} for no key update`);
      if (!held) return 0;
      const [first] = wanted;
      if (first) {
        const size = [wanted.length, sizeBytes, first.timestamp, wanted.at(-1)!.timestamp, excerptOfLine(first.line)];
        const places = [xid, positionId, last.xid, last.id];
        await tx.query({
          text: INSERT,
          values: [newId('audit_stream_delivery'), orgId, id, held.next, ...places, ...size],
        });
      }
      tx.write(statement`update audit_streams set position_xid = ${last.xid}::xid8, position_id = ${last.id},
        position_at = greatest(position_at, ${last.timestamp}::timestamptz),
        last_sequence = last_sequence + ${first ? 1 : 0}::int where id = ${id}`);
      return first ? 1 : 0;
    });
  }

  /** What was not sent before is not found again: the earlier order is gone. */
  async #beginAgain({ id, xid }: FannedStream): Promise<void> {
    await this.#deps.sql.write(
      `update audit_streams set position_xid = pg_snapshot_xmin(pg_current_snapshot()), position_id = '',
          position_at = now(), gone_before = now(), begun_snapshot = pg_current_snapshot()::text, begun_xid = null
        where id = $1 and position_xid = $2::xid8`,
      [id, xid],
    );
  }
}
