import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { PATIENCE_DAYS } from './webhook.words.ts';
import type { StoredAttempt } from './webhook-attempts.ts';
import { IN_USE } from './webhook-caller.ts';
import { disabled } from './webhook-disabling.ts';

/** A delivery that this node has taken, until its lease is over. */
export interface TakenDelivery {
  id: string;
  eventId: string;
  eventType: string;
  resourceId: string;
  body: string;
  tries: number;
  maxTries: number;
  queuedAt: Date;
  place: string;
}

/** What an attempt at a delivery came to. */
export interface FinishedDelivery {
  id: string;
  resource_id: string;
  /** Tries before it: the row still has this number unless another node took over. */
  tries: number;
  status: 'delivered' | 'pending' | 'failed';
  /** Seconds until the next try of a pending one. */
  wait: number | null;
  attempt: StoredAttempt;
  /** A test says nothing of how long events have failed. */
  isTest: boolean;
}

// one that is disabled meanwhile gives back what was taken: nothing may take it again at once
const TAKE = `with due as (
    select d.id from webhook_deliveries d where d.webhook_id = $1 and d.due_at <= now()
      and exists (select from webhooks h where h.id = $1 and ${IN_USE})
    order by d.due_at, d.place limit $2 for update skip locked)
  update webhook_deliveries d set due_at = now() + $3 * interval '1 second' from due where d.id = due.id
  returning d.id, d.event_id as "eventId", d.event_type as "eventType",
    d.resource_id as "resourceId", d.body, d.tries, d.max_tries as "maxTries",
    d.queued_at as "queuedAt", d.place::text as place`;

// what failed meanwhile has a later time of its own
const RENEW = `update webhook_deliveries set due_at = now() + $2 * interval '1 second'
  where id = any($1::text[]) and status = 'pending' and due_at <= now() + $2 * interval '1 second'`;

const RELEASE = `update webhook_deliveries set due_at = now()
  where id = any($1::text[]) and status = 'pending' and due_at > now() and due_at <= now() + $2 * interval '1 second'`;

const FINISH = `update webhook_deliveries d set status = r.status, tries = d.tries + 1,
    attempts = case when jsonb_array_length(d.attempts) >= 10 then d.attempts - 0 else d.attempts end
      || jsonb_build_array(r.attempt),
    due_at = case when r.status = 'pending' then now() + r.wait * interval '1 second' end,
    finished_at = case when r.status = 'pending' then null else now() end
  from json_to_recordset($1::json) as r(id text, tries int, status text, wait float8, attempt jsonb)
  where d.id = r.id and d.tries = r.tries and d.status = 'pending' and d.due_at is not null`;

/** What waited for something about the same resource that is over has its turn. */
const NEXT = `update webhook_deliveries d set due_at = now()
  from unnest($2::text[]) r(resource_id) cross join lateral (
    select p.id from webhook_deliveries p
    where p.webhook_id = $1 and p.status = 'pending' and p.resource_id = r.resource_id order by p.place limit 1) head
  where d.id = head.id and d.due_at is null`;

/** The queue of each webhook: what is about one resource is sent one after the other, all else beside it. */
export class WebhookQueue {
  readonly #sql: Sql;
  readonly #changes: Changes;
  readonly #leaseSeconds: number;

  /** @param leaseSeconds after which others take what this node took and did not finish */
  constructor({ sql, changes, leaseSeconds }: { sql: Sql; changes: Changes; leaseSeconds: number }) {
    this.#sql = sql;
    this.#changes = changes;
    this.#leaseSeconds = leaseSeconds;
  }

  /** Takes what is due, in the order of the queue. */
  async take(webhookId: string, most: number): Promise<TakenDelivery[]> {
    const taken = await this.#sql.change<TakenDelivery>(TAKE, [webhookId, most, this.#leaseSeconds]);
    return taken.sort((a, b) => (BigInt(a.place) < BigInt(b.place) ? -1 : 1));
  }

  /** Keeps what this node still works at. */
  async renew(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#sql.change(RENEW, [ids, this.#leaseSeconds]);
  }

  /** Gives back what was taken and not sent. */
  async release(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#sql.change(RELEASE, [ids, this.#leaseSeconds]);
  }

  /** Records attempts, and lets what waited for them follow. A webhook that failed for days is disabled. */
  async finish(webhookId: string, finished: readonly FinishedDelivery[]): Promise<void> {
    await this.#changes.run(systemCaller('webhooks'), async (tx) => {
      const webhook = await tx.lock('webhooks', { id: webhookId }, 'no key update');
      if (!webhook) return;
      await tx.query({ text: FINISH, values: [JSON.stringify(finished)] });
      const over = finished.filter(({ status }) => status !== 'pending').map((one) => one.resource_id);
      if (over.length > 0) await tx.query({ text: NEXT, values: [webhookId, [...new Set(over)]] });
      if (finished.some(({ status }) => status === 'delivered')) {
        if (webhook.failingSince) tx.write(statement`update webhooks set failing_since = null where id = ${webhookId}`);
        return;
      }
      const failures = finished.filter(({ isTest }) => !isTest);
      if (failures.length === 0) return;
      if (!webhook.failingSince)
        tx.write(statement`update webhooks set failing_since = clock_timestamp() where id = ${webhookId}`);
      // what fails for the first time after quiet days may be a hiccup
      else if (webhook.isEnabled && failures.some(({ tries }) => tries > 0) && isOverdue(webhook.failingSince))
        disabled(tx, webhook, 'failing');
    });
  }
}

const isOverdue = (since: Date): boolean => Date.now() - since.getTime() > PATIENCE_DAYS * 86_400_000;
