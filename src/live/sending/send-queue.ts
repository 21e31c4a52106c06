import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { StoredAttempt } from './attempts.ts';
import type { SendChannel } from './channel.ts';
import { disabled } from './disabling.ts';

/** A receiver that accepted nothing for so long is disabled. */
const PATIENCE_DAYS = 5;

/** A delivery that this node has taken, until its lease is over. */
export interface TakenDelivery {
  id: string;
  resourceId: string;
  /** A test says nothing of how long a receiver has failed. */
  isTest: boolean;
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
  isTest: boolean;
}

/** The statements on the deliveries of a channel. */
const statementsOf = ({ receivers, deliveries, receiverId, inUse, sent }: SendChannel) => ({
  // one that is disabled meanwhile gives back what was taken: nothing may take it again at once
  take: `with due as (
      select d.id from ${deliveries} d where d.${receiverId} = $1 and d.due_at <= now()
        and exists (select from ${receivers} h where h.id = $1 and ${inUse})
      order by d.due_at, d.place limit $2 for update skip locked)
    update ${deliveries} d set due_at = now() + $3 * interval '1 second' from due where d.id = due.id
    returning d.id, d.resource_id as "resourceId", d.tries, d.max_tries as "maxTries",
      d.queued_at as "queuedAt", d.place::text as place, ${sent}`,
  // what failed meanwhile has a later time of its own
  renew: `update ${deliveries} set due_at = now() + $2 * interval '1 second'
    where id = any($1::text[]) and status = 'pending' and due_at <= now() + $2 * interval '1 second'`,
  release: `update ${deliveries} set due_at = now() where id = any($1::text[]) and status = 'pending'
    and due_at > now() and due_at <= now() + $2 * interval '1 second'`,
  finish: `update ${deliveries} d set status = r.status, tries = d.tries + 1,
      attempts = case when jsonb_array_length(d.attempts) >= 10 then d.attempts - 0 else d.attempts end
        || jsonb_build_array(r.attempt),
      due_at = case when r.status = 'pending' then now() + r.wait * interval '1 second' end,
      finished_at = case when r.status = 'pending' then null else now() end
    from json_to_recordset($1::json) as r(id text, tries int, status text, wait float8, attempt jsonb)
    where d.id = r.id and d.tries = r.tries and d.status = 'pending' and d.due_at is not null`,
  // what waited for something about the same resource that is over has its turn
  next: `update ${deliveries} d set due_at = now()
    from unnest($2::text[]) r(resource_id) cross join lateral (
      select p.id from ${deliveries} p where p.${receiverId} = $1 and p.status = 'pending'
        and p.resource_id = r.resource_id order by p.place limit 1) head
    where d.id = head.id and d.due_at is null`,
  recovered: `update ${receivers} set failing_since = null where id = $1`,
  failing: `update ${receivers} set failing_since = clock_timestamp() where id = $1`,
});

/** The queue of each receiver: what is about one resource is sent one after the other, all else beside it. */
export class SendQueue<Message extends object = object> {
  readonly #sql: Sql;
  readonly #changes: Changes;
  readonly #leaseSeconds: number;
  readonly #channel: SendChannel;
  readonly #statements: ReturnType<typeof statementsOf>;

  /** @param leaseSeconds after which others take what this node took and did not finish */
  constructor(
    { sql, changes, leaseSeconds }: { sql: Sql; changes: Changes; leaseSeconds: number },
    channel: SendChannel,
  ) {
    this.#channel = channel;
    this.#statements = statementsOf(channel);
    this.#sql = sql;
    this.#changes = changes;
    this.#leaseSeconds = leaseSeconds;
  }

  /** Takes what is due, in the order of the queue. */
  async take(receiverId: string, most: number): Promise<(TakenDelivery & Message)[]> {
    const { take } = this.#statements;
    const taken = await this.#sql.change<TakenDelivery & Message>(take, [receiverId, most, this.#leaseSeconds]);
    return taken.sort((a, b) => (BigInt(a.place) < BigInt(b.place) ? -1 : 1));
  }

  /** Keeps what this node still works at. */
  async renew(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#sql.change(this.#statements.renew, [ids, this.#leaseSeconds]);
  }

  /** Gives back what was taken and not sent. */
  async release(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#sql.change(this.#statements.release, [ids, this.#leaseSeconds]);
  }

  /** Records attempts, and lets what waited for them follow. A receiver that failed for days is disabled. */
  async finish(receiverId: string, finished: readonly FinishedDelivery[]): Promise<void> {
    const { finish, next, recovered, failing } = this.#statements;
    await this.#changes.run(systemCaller(this.#channel.receivers), async (tx) => {
      const receiver = await tx.lock(this.#channel.receivers, { id: receiverId }, 'no key update');
      if (!receiver) return;
      await tx.query({ text: finish, values: [JSON.stringify(finished)] });
      const over = finished.filter(({ status }) => status !== 'pending').map((one) => one.resource_id);
      if (over.length > 0) await tx.query({ text: next, values: [receiverId, [...new Set(over)]] });
      // a test says nothing of what waits
      if (finished.some(({ status, isTest }) => status === 'delivered' && !isTest)) {
        if (receiver.failingSince) tx.write({ text: recovered, values: [receiverId] });
        return;
      }
      const failures = finished.filter(({ isTest }) => !isTest);
      if (failures.length === 0) return;
      if (!receiver.failingSince) tx.write({ text: failing, values: [receiverId] });
      // what fails for the first time after quiet days may be a hiccup
      else if (receiver.isEnabled && failures.some(({ tries }) => tries > 0) && isOverdue(receiver.failingSince))
        disabled(tx, this.#channel, receiver, 'failing');
    });
  }
}

const isOverdue = (since: Date): boolean => Date.now() - since.getTime() > PATIENCE_DAYS * 86_400_000;
