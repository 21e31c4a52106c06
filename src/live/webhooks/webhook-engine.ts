import type { Sql } from '../../data/sql.ts';
import { apart } from '../../kernel/spans.ts';
import { every } from '../../platform/every.ts';
import { SendSlots } from './send-slots.ts';
import { IN_USE } from './webhook-caller.ts';
import type { WebhookFanOut } from './webhook-fan-out.ts';
import { WebhookLine } from './webhook-line.ts';
import type { WebhookQueue } from './webhook-queue.ts';
import type { WebhookSender } from './webhook-sender.ts';

/** How often leases are renewed, as a part of them. */
const RENEWALS = 4;
/** Looking takes at most this part of the time. */
const LOOKING = 0.05;
const MIN_PAUSE_MS = 25;
/** How often a node looks by itself: for what other nodes have committed, and for tries that are due. */
const POLL_MS = 250;
/** The same while there are no webhooks. */
const IDLE_MS = 1_000;
const STOP_MS = 5_000;
/** Webhooks whose events become deliveries at the same time. */
const FANNED_AT_ONCE = 4;

/** Webhooks that have events which are no deliveries yet, or deliveries that are due. */
const LOOK = `select h.id, h.org_id as "orgId",
    case when h.workspace_id is null then exists (select from events e where e.org_id = h.org_id
        and e.workspace_id is null and (e.xid, e.seq) > (h.position_xid, h.position_seq)
        and e.xid < pg_snapshot_xmin(pg_current_snapshot()))
      else exists (select from events e where e.org_id = h.org_id
        and e.workspace_id = h.workspace_id and (e.xid, e.seq) > (h.position_xid, h.position_seq)
        and e.xid < pg_snapshot_xmin(pg_current_snapshot())) end
      or h.position_xid >= pg_snapshot_xmax(pg_current_snapshot()) as "hasEvents",
    exists (select from webhook_deliveries d where d.webhook_id = h.id and d.due_at <= now()) as "hasDue"
  from webhooks h where ${IN_USE}`;

interface WebhookWork {
  id: string;
  orgId: string;
  hasEvents: boolean;
  hasDue: boolean;
}

export interface WebhookEngineDeps {
  sql: Sql;
  fanOut: WebhookFanOut;
  queue: WebhookQueue;
  sender: WebhookSender;
  leaseSeconds: number;
  onFault: (error: unknown, what: string) => void;
}

/**
 * Sends events to webhooks, on every node: looks for events and due deliveries, takes some of each webhook, and records
 * what became of them. All that lasts is in the database, so a node that is killed loses nothing: what it had taken is
 * taken again when its lease is over.
 */
export class WebhookEngine {
  readonly #deps: WebhookEngineDeps;
  readonly #slots = new SendSlots();
  readonly #lines = new Map<string, WebhookLine>();
  readonly #fanning = new Map<string, Promise<void>>();
  readonly #cutOff = new AbortController();
  #endPolling: () => Promise<void> = async () => undefined;
  #endRenewing: () => Promise<void> = async () => undefined;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isWanted = false;
  #isStopped = false;
  #pauseMs = MIN_PAUSE_MS;
  /** Whether the last look found a webhook: without one, a commit is no reason to look. */
  #hasWebhooks = false;
  /** Time from `performance.now()`. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: WebhookEngineDeps) {
    this.#deps = deps;
  }

  /** Begins to look for work, here and when other nodes have made some. */
  start(): void {
    const { leaseSeconds, onFault, queue, sender } = this.#deps;
    this.#endPolling = every(
      POLL_MS,
      async () => {
        if (this.#hasWebhooks || performance.now() - this.#lookedAt > IDLE_MS) await this.#lookNow();
      },
      (error) => onFault(error, 'webhooks could not be read'),
      0,
    );
    this.#endRenewing = every(
      (leaseSeconds * 1_000) / RENEWALS,
      async () => {
        sender.forget();
        await queue.renew([...this.#lines.values()].flatMap(({ held }) => [...held]));
      },
      (error) => onFault(error, 'leases of deliveries could not be renewed'),
    );
  }

  /** Called after a commit with events. Does nothing while there are no webhooks. */
  committed(): void {
    if (this.#hasWebhooks) this.wake();
  }

  /** Called when something may have become due. */
  wake(): void {
    if (this.#isStopped) return;
    this.#isWanted = true;
    if (!this.#looking) this.#timer ??= apart(() => setTimeout(() => void this.#lookNow(), this.#pauseMs).unref());
  }

  /** Takes nothing more, gives attempts that are under way a few seconds, and leaves the rest to other nodes. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    const timer = setTimeout(() => this.#cutOff.abort(), STOP_MS);
    await Promise.all([this.#endPolling(), this.#endRenewing(), this.#looking, ...this.#fanning.values()]);
    await Promise.all([...this.#lines.values()].map((line) => line.end()));
    clearTimeout(timer);
  }

  #lookNow(): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
      if (this.#isWanted) this.wake();
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isWanted = false;
    const startedAt = performance.now();
    this.#lookedAt = startedAt;
    try {
      const found = await this.#deps.sql.read<WebhookWork>(LOOK, []);
      this.#hasWebhooks = found.length > 0;
      for (const [id, line] of this.#lines) if (line.isIdle) this.#lines.delete(id);
      for (const webhook of found) {
        if (webhook.hasEvents) this.#fan(webhook);
        if (webhook.hasDue) this.#lineOf(webhook).wake();
      }
    } catch (error) {
      this.#deps.onFault(error, 'webhooks could not be read');
    }
    this.#pauseMs = Math.max(MIN_PAUSE_MS, (performance.now() - startedAt) / LOOKING);
  }

  #lineOf(webhook: WebhookWork): WebhookLine {
    const known = this.#lines.get(webhook.id);
    if (known) return known;
    const { queue, sender, onFault } = this.#deps;
    const line = new WebhookLine(webhook, {
      queue,
      sender,
      slots: this.#slots,
      signal: this.#cutOff.signal,
      onFault,
    });
    this.#lines.set(webhook.id, line);
    return line;
  }

  /** Those for which there is no room now are found by the next look. */
  #fan(webhook: WebhookWork): void {
    if (this.#isStopped || this.#fanning.has(webhook.id)) return;
    if (this.#fanning.size >= FANNED_AT_ONCE) {
      this.#isWanted = true;
      return;
    }
    const { fanOut, onFault } = this.#deps;
    const fanned = fanOut
      .run(webhook.id)
      .then(
        (made) => {
          if (made > 0 && !this.#isStopped) this.#lineOf(webhook).wake();
        },
        (error: unknown) => onFault(error, 'events could not be given to a webhook'),
      )
      .finally(() => this.#fanning.delete(webhook.id));
    this.#fanning.set(webhook.id, fanned);
  }
}
