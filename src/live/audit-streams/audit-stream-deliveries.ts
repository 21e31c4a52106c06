import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type AuditStreamDelivery as DeliveryRow, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { ApiError, conflict, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { type StoredAttempt, withoutAnswers } from '../sending/attempts.ts';
import { demandAllActivity } from './audit-caller.ts';
import { LOG_DAYS, MAX_TESTS } from './audit-stream.words.ts';
import { excerptOfLine } from './excerpt.ts';

const HIDDEN = ['place', 'resourceId', 'maxTries', 'fromId', 'toId'] as const;

/** A delivery as the log shows it. */
export type AuditStreamDelivery = Omit<DeliveryRow, (typeof HIDDEN)[number]>;

/** The place of the deliveries of a stream. */
export interface AuditStreamPlace extends OrganizationPlace {
  auditStreamId: string;
}

export interface AuditDeliveryArgs extends PageArgs {
  status?: string | null;
}

/** How far a stream is behind. */
export interface AuditStreamLag {
  records: number;
  seconds: number;
}

const deliveries = {
  kind: 'audit_stream_delivery',
  from: 'audit_stream_deliveries',
  columns: columnsOf(
    Object.values(Prisma.AuditStreamDeliveryScalarFieldEnum).filter((name) => !HIDDEN.some((one) => one === name)),
  ),
  below: ['orgId', 'auditStreamId'],
  filters: ({ status }: AuditDeliveryArgs) => ({ 't.status = ?': status }),
} as const;

/** Records that a lag looks at. */
const MAX_LAG = 10_000;

/** The records that are not delivered: behind the first delivery that waits, or behind the position. */
const LAG = `select count(*)::int as records,
    coalesce(extract(epoch from now() - min(b.timestamp)), 0)::float8 as seconds
  from audit_streams h
  left join lateral (select d.from_xid, d.from_id from audit_stream_deliveries d
    where d.audit_stream_id = h.id and d.status = 'pending' and d.resource_id = h.id order by d.place limit 1) p on true
  cross join lateral (select a.* from activity a where a.org_id between h.org_id and h.org_id
      and (a.org_id, a.xid, a.id)
        > (h.org_id, coalesce(p.from_xid, h.position_xid), coalesce(p.from_id, h.position_id))
    order by a.org_id, a.xid, a.id limit ${MAX_LAG}) b
  where h.org_id = $1 and h.id = $2
    and (h.begun_snapshot is null or b.xid::text = h.begun_xid
      or not pg_visible_in_snapshot(b.xid, h.begun_snapshot::pg_snapshot))
    and (cardinality(h.actions) = 0 or b.action = any(h.actions))
    and (cardinality(h.resource_types) = 0 or b.resource_type = any(h.resource_types))
    and (h.success is null or b.success = h.success)`;

/** The log of what was sent, tests, and what is still to be sent. */
export class AuditStreamDeliveries {
  readonly retention = [
    // what waits has a place in the order of records, and goes with its stream only
    `delete from audit_stream_deliveries where created_at < now() - interval '${LOG_DAYS} days'
      and (status <> 'pending' or is_test)`,
  ];
  readonly reads: Reads<AuditStreamDelivery, AuditStreamPlace, AuditDeliveryArgs>;
  readonly #deps: ServiceDeps & { wake: () => void };

  constructor(deps: ServiceDeps & { wake: () => void }) {
    this.#deps = deps;
    this.reads = new Reads(deps, deliveries);
  }

  /** The beginning of what was sent, for callers who may read all records. */
  async excerpt(caller: Caller, { orgId, excerpt }: AuditStreamDelivery): Promise<string | null> {
    return (await this.#mayReadAll(caller, orgId)) ? excerpt : null;
  }

  /** The attempts, the oldest first. What was answered is for callers who may read what was sent. */
  async attempts(caller: Caller, { orgId, attempts }: AuditStreamDelivery): Promise<StoredAttempt[]> {
    const made = attempts as unknown as StoredAttempt[];
    return made.length === 0 || (await this.#mayReadAll(caller, orgId)) ? made : withoutAnswers(made);
  }

  async #mayReadAll(caller: Caller, orgId: string): Promise<boolean> {
    try {
      await demandAllActivity(this.#deps.access, caller, orgId);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'FORBIDDEN') return false;
      throw error;
    }
  }

  /** How far a stream is behind: at most 10,000 records are looked at. */
  async lag({ orgId }: Checked<OrganizationPlace>, id: string): Promise<AuditStreamLag> {
    const [lag] = await this.#deps.sql.read<AuditStreamLag>(LAG, [orgId, id]);
    return lag!;
  }

  /**
   * Sends a record that is made up, once.
   * @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT for a disabled stream, or one with too many tests that wait
   */
  async test(caller: Caller, { orgId }: Checked<OrganizationPlace>, streamId: string): Promise<AuditStreamDelivery> {
    const sent = await this.#deps.changes.run(caller, async (tx) => {
      const stream = await tx.lock('audit_streams', { id: streamId, orgId }, 'no key update', () =>
        notFound('audit_stream', streamId),
      );
      if (!stream.isEnabled)
        throw conflict(
          'audit_stream',
          streamId,
          'invalid_status',
          `The audit stream '${streamId}' is disabled: enable it first.`,
        );
      await demandRoomForTest(tx, streamId);
      const id = newId('audit_stream_delivery');
      const at = new Date();
      const line = testLine(caller, streamId, at);
      tx.audit({
        action: 'update',
        resourceType: 'audit_stream',
        resourceId: streamId,
        orgId,
        metadata: { test: id },
      });
      return tx.create('audit_stream_deliveries', {
        id,
        orgId,
        auditStreamId: streamId,
        // tests wait for nothing
        resourceId: id,
        isTest: true,
        maxTries: 1,
        records: 1,
        sizeBytes: Buffer.byteLength(line),
        firstAt: at,
        lastAt: at,
        excerpt: excerptOfLine(line),
        dueAt: at,
      });
    });
    this.#deps.wake();
    return sent;
  }
}

/** Of a stream whose row is locked. @throws RESOURCE_CONFLICT `limit_reached` */
async function demandRoomForTest(tx: Tx, streamId: string): Promise<void> {
  const [found] = await tx.query<{ count: number }>(statement`select count(*)::int as count
    from audit_stream_deliveries where audit_stream_id = ${streamId} and status = 'pending' and is_test`);
  if (found!.count < MAX_TESTS) return;
  throw conflict('audit_stream', streamId, 'limit_reached', `${MAX_TESTS} tests of the audit stream wait already.`, {
    limit: MAX_TESTS,
  });
}

/** What a test sends: a record that says what it is, of nothing that happened. */
const testLine = ({ principal, request }: Caller, streamId: string, at: Date): string =>
  JSON.stringify({
    id: newId('activity'),
    timestamp: at.toISOString(),
    trace_id: request.traceId,
    user_id: principal.userId,
    principal_type: principal.type,
    resource_type: 'audit_stream',
    resource_id: streamId,
    action: 'update',
    success: true,
    metadata: { is_test: true },
  });
