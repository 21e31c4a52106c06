import type { Access } from '../../access/access.ts';
import type { Changes } from '../../data/changes.ts';
import { EVENT_COLUMNS, type StreamEvent } from '../../data/outbox.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { newId } from '../../kernel/ids.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { Audience } from '../events/audience.ts';
import { Snapshot } from '../events/position.ts';
import { typeFilterOf } from '../events/type-filter.ts';
import { type ActingUser, CALLER_COLUMNS, CALLER_JOIN, IS_AHEAD } from '../sending/acting-user.ts';
import type { Disabling } from '../sending/disabling.ts';
import type { FanOut } from '../sending/send-engine.ts';
import { bodyOf } from './webhook-body.ts';
import { webhookCaller } from './webhook-caller.ts';
import { webhookChannel } from './webhook-channel.ts';

const BATCH = 500;
/** Batches until others have their turn. */
const MAX_STEPS = 4;

interface FannedWebhook extends ActingUser {
  id: string;
  workspaceId: string | null;
  eventTypes: string[];
  xid: string;
  seq: string;
  /** What could be seen when it began, and the transaction that made it; `null` for those of before there was this. */
  begunSnapshot: string | null;
  begunXid: string | null;
  /** The database was restored from a copy whose transactions had higher numbers. */
  isAhead: boolean;
}

const WEBHOOK = `select h.id, h.workspace_id as "workspaceId", h.event_types as "eventTypes",
    h.position_xid::text as xid, h.position_seq::text as seq,
    h.begun_snapshot as "begunSnapshot", h.begun_xid as "begunXid", ${IS_AHEAD} as "isAhead", ${CALLER_COLUMNS}
  from webhooks h ${CALLER_JOIN} where h.id = $1 and ${webhookChannel.inUse}`;

/** In the order of commits, and only of transactions older than every running one: see `EventTail`. */
const eventsOf = (place: string): string => `select ${EVENT_COLUMNS} from events e
  where e.org_id = $1 and ${place} and (e.xid, e.seq) > ($3::xid8, $4::bigint)
    and e.xid < pg_snapshot_xmin(pg_current_snapshot())
  order by e.xid, e.seq limit ${BATCH}`;
const EVENTS = {
  workspace: eventsOf('e.workspace_id = $2'),
  organization: eventsOf('e.workspace_id is null and $2::text is null'),
};

/**
 * A delivery waits while there is an earlier one about its resource: in the queue, or before it among these. A
 * statement after the lock of the webhook: what ended meanwhile is over.
 */
const INSERT = `insert into webhook_deliveries (id, org_id, webhook_id, event_id, event_type, resource_type,
    resource_id, body, due_at)
  select r.id, r.org_id, $1, r.event_id, r.event_type, r.resource_type, r.resource_id, r.body,
    case when r.nth = 1 and not exists (select from webhook_deliveries p
      where p.webhook_id = $1 and p.status = 'pending' and p.resource_id = r.resource_id) then now() end
  from (select j.*, row_number() over (partition by j.resource_id order by j.n) as nth
    from rows from (json_to_recordset($2::json) as (id text, org_id text, event_id text, event_type text,
      resource_type text, resource_id text, body text)) with ordinality
      j(id, org_id, event_id, event_type, resource_type, resource_id, body, n)) r
  order by r.n`;

interface FanOutDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  audience: Audience;
  disabling: Disabling;
}

/** Makes deliveries of events, and moves the position of a webhook past them, in one change. */
export class WebhookFanOut implements FanOut {
  readonly #deps: FanOutDeps;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the next events, a few batches at most: so others have their turn.
   * @returns the number of deliveries
   */
  async run(webhookId: string, isOver: () => boolean): Promise<number> {
    let made = 0;
    for (let steps = 0; steps < MAX_STEPS && !isOver(); steps++) {
      const step = await this.#step(webhookId);
      made += step.made;
      if (!step.isMore) break;
    }
    return made;
  }

  async #step(webhookId: string): Promise<{ made: number; isMore: boolean }> {
    const { sql, access, disabling } = this.#deps;
    const [webhook] = await sql.read<FannedWebhook>(WEBHOOK, [webhookId]);
    if (!webhook) return OVER;
    const caller = await webhookCaller(access, webhook);
    if (caller === 'no access') await disabling.disable(webhookId, 'no_access');
    if (typeof caller === 'string') return OVER;
    if (webhook.isAhead) {
      await this.#beginAgain(webhook);
      return OVER;
    }
    const events = await this.#eventsAfter(webhook);
    const last = events.at(-1);
    if (!last) return OVER;
    const shown = await this.#shown(caller, webhook, events.filter(isSinceBegin(webhook)));
    const made = await this.#queue(webhook, shown, last);
    return { made, isMore: events.length === BATCH };
  }

  #eventsAfter({ orgId, workspaceId, xid, seq }: FannedWebhook): Promise<StreamEvent[]> {
    const text = workspaceId === null ? EVENTS.organization : EVENTS.workspace;
    return this.#deps.sql.read<StreamEvent>(text, [orgId, workspaceId, xid, seq]);
  }

  /** What the user whom the webhook acts for may receive of the selected events. */
  async #shown(caller: Caller, { eventTypes }: FannedWebhook, events: readonly StreamEvent[]): Promise<StreamEvent[]> {
    const isSelected = typeFilterOf(eventTypes);
    const shown: StreamEvent[] = [];
    for (const event of events) {
      if (event.recipientId !== null || !isSelected(event.type)) continue;
      const received = await this.#deps.audience.shown(caller, event);
      if (received) shown.push(received);
    }
    return shown;
  }

  /** Another node may have been faster: then this one does nothing. */
  #queue({ id, xid, seq }: FannedWebhook, events: readonly StreamEvent[], last: StreamEvent): Promise<number> {
    return this.#deps.changes.run(systemCaller('webhooks'), async (tx) => {
      const held = await tx.query(statement`select from webhooks where id = ${id} and is_enabled
        and position_xid = ${xid}::xid8 and position_seq = ${seq}::bigint for no key update`);
      if (held.length === 0) return 0;
      if (events.length > 0) await tx.query({ text: INSERT, values: [id, JSON.stringify(events.map(rowOf))] });
      tx.write(statement`update webhooks set position_xid = ${last.xid}::xid8, position_seq = ${last.seq}::bigint
        where id = ${id}`);
      return events.length;
    });
  }

  async #beginAgain({ id, xid }: FannedWebhook): Promise<void> {
    await this.#deps.sql.write(
      `update webhooks set position_xid = pg_snapshot_xmin(pg_current_snapshot()), position_seq = 0,
          begun_snapshot = pg_current_snapshot()::text, begun_xid = null
        where id = $1 and position_xid = $2::xid8`,
      [id, xid],
    );
  }
}

/**
 * A webhook begins as a stream does: at the oldest transaction that runs, because its events are still to come, and
 * without what could be seen already.
 */
function isSinceBegin({ begunSnapshot, begunXid }: FannedWebhook): (event: StreamEvent) => boolean {
  if (begunSnapshot === null) return () => true;
  const begun = new Snapshot(begunSnapshot);
  return (event) => event.xid !== begunXid && !begun.has(event);
}

const OVER = { made: 0, isMore: false };

const rowOf = (event: StreamEvent) => ({
  id: newId('webhook_delivery'),
  org_id: event.orgId,
  event_id: event.id,
  event_type: event.type,
  resource_type: event.resourceType,
  resource_id: event.resourceId,
  body: bodyOf(event),
});
