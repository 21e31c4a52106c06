import type { Sql } from '../../data/sql.ts';
import { apart } from '../../kernel/spans.ts';
import { every } from '../../platform/every.ts';
import { SendSlots } from './send-slots.ts';
import { IN_USE, IS_AHEAD } from './webhook-caller.ts';
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

/** Of these, webhooks of one organization. */
const FANNED_OF_ONE = 2;

const hasEvents = (place: string): string => `exists (select from events e where e.org_id = h.org_id
  and ${place} and (e.xid, e.seq) > (h.position_xid, h.position_seq)
  and e.xid < pg_snapshot_xmin(pg_current_snapshot()))`;

/** Webhooks that have events which are no deliveries yet, or deliveries that are due; one row without, if none has. */
const LOOK = `select w.*, exists (select from webhooks h where ${IN_USE}) as "hasWebhooks"
  from (values (1)) one(n) left join (select h.id, h.org_id as "orgId",
      case when h.workspace_id is null then ${hasEvents('e.workspace_id is null')}
        else ${hasEvents('e.workspace_id = h.workspace_id')} end or ${IS_AHEAD} as "hasEvents",
      exists (select from webhook_deliveries d where d.webhook_id = h.id and d.due_at <= now()) as "hasDue"
    from webhooks h where ${IN_USE}) w on w."hasEvents" or w."hasDue"
  order by random()`;

interface WebhookWork {
  id: string;
  orgId: string;
  hasEvents: boolean;
  hasDue: boolean;
}

/** What a look finds: the columns of {@link WebhookWork} are `null` if there is no work. */
type FoundWork = (WebhookWork | { id: null }) & { hasWebhooks: boolean };

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
  readonly #fanning = new Map<string, { orgId: string; done: Promise<void> }>();
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
        const pause = this.#hasWebhooks ? this.#pauseMs : IDLE_MS;
        if (performance.now() - this.#lookedAt > pause) await this.#lookNow();
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
    await this.#endPolling();
    await this.#looking;
    await Promise.all([...this.#fanning.values()].map(({ done }) => done));
    await Promise.all([...this.#lines.values()].map((line) => line.end()));
    // what was taken keeps its lease until it is given back
    await this.#endRenewing();
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
      const found = await this.#deps.sql.read<FoundWork>(LOOK, []);
      this.#hasWebhooks = found[0]?.hasWebhooks === true;
      for (const [id, line] of this.#lines) if (line.isIdle) this.#lines.delete(id);
      for (const webhook of found) {
        if (webhook.id === null) continue;
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
    const ofOne = [...this.#fanning.values()].filter(({ orgId }) => orgId === webhook.orgId);
    if (this.#fanning.size >= FANNED_AT_ONCE || ofOne.length >= FANNED_OF_ONE) {
      this.#isWanted = true;
      return;
    }
    const { fanOut, onFault } = this.#deps;
    const done = fanOut
      .run(webhook.id, () => this.#isStopped)
      .then(
        (made) => {
          if (made > 0 && !this.#isStopped) this.#lineOf(webhook).wake();
        },
        (error: unknown) => onFault(error, 'events could not be given to a webhook'),
      )
      .finally(() => this.#fanning.delete(webhook.id));
    this.#fanning.set(webhook.id, { orgId: webhook.orgId, done });
  }
}
