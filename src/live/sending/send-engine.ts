import { setMaxListeners } from 'node:events';
import type { Sql } from '../../data/sql.ts';
import { apart } from '../../kernel/spans.ts';
import { every } from '../../platform/every.ts';
import { IS_AHEAD } from './acting-user.ts';
import type { SendChannel } from './channel.ts';
import { type MessageSender, SendLine } from './send-line.ts';
import type { SendQueue } from './send-queue.ts';
import type { SendSlots } from './send-slots.ts';

/** How often leases are renewed, as a part of them. */
const RENEWALS = 4;
/** Looking takes at most this part of the time, unless that would keep what is due waiting for too long. */
const LOOKING = 0.05;
const MIN_PAUSE_MS = 25;
const MAX_PAUSE_MS = 2_000;
/** How often a node looks at least while there are no receivers. */
const IDLE_MS = 1_000;
const STOP_MS = 5_000;
/** Receivers for which deliveries are made at the same time. */
const FANNED_AT_ONCE = 4;
/** Of these, receivers of one organization. */
const FANNED_OF_ONE = 2;

/** Receivers that have what is no delivery yet, or deliveries that are due; one row without, if none has. */
const lookOf = ({ receivers, deliveries, receiverId, inUse, hasNew }: SendChannel) => `select w.*,
    exists (select from ${receivers} h where ${inUse}) as "hasReceivers"
  from (values (1)) one(n) left join (select h.id, h.org_id as "orgId",
      (${hasNew}) or ${IS_AHEAD} as "hasNew",
      exists (select from ${deliveries} d where d.${receiverId} = h.id and d.due_at <= now()) as "hasDue"
    from ${receivers} h where ${inUse}) w on w."hasNew" or w."hasDue"
  order by random()`;

interface ReceiverWork {
  id: string;
  orgId: string;
  hasNew: boolean;
  hasDue: boolean;
}

/** What a look finds: the columns of {@link ReceiverWork} are `null` if there is no work. */
type FoundWork = (ReceiverWork | { id: null }) & { hasReceivers: boolean };

/** Makes deliveries of what is new for a receiver. */
export interface FanOut {
  /** Makes some, so that others have their turn. @returns the number of deliveries */
  run(receiverId: string, isOver: () => boolean): Promise<number>;
}

export interface SendEngineDeps<Target, Message extends object> {
  channel: SendChannel;
  sql: Sql;
  fanOut: FanOut;
  queue: SendQueue<Message>;
  sender: MessageSender<Target, Message>;
  /** Shared by all channels of a node. */
  slots: SendSlots;
  leaseSeconds: number;
  onFault: (error: unknown, what: string) => void;
}

/**
 * Sends to the receivers of a channel, on every node: looks for what is new and for due deliveries, takes some of each
 * receiver, and records what became of them. All that lasts is in the database, so a node that is killed
 * loses nothing: what it had taken is taken again when its lease is over.
 */
export class SendEngine<Target, Message extends object> {
  readonly #deps: SendEngineDeps<Target, Message>;
  readonly #lookText: string;
  readonly #lines = new Map<string, SendLine<Target, Message>>();
  readonly #fanning = new Map<string, { orgId: string; done: Promise<void> }>();
  readonly #cutOff = new AbortController();
  #endPolling: () => Promise<void> = async () => undefined;
  #endRenewing: () => Promise<void> = async () => undefined;
  #looking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isWanted = false;
  #isStopped = false;
  #pauseMs = MIN_PAUSE_MS;
  /** Whether the last look found a receiver: without one, a commit is no reason to look. */
  #hasReceivers = false;
  /** Time from `performance.now()`. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: SendEngineDeps<Target, Message>) {
    this.#deps = deps;
    this.#lookText = lookOf(deps.channel);
    // each attempt listens, and there are many at once
    setMaxListeners(0, this.#cutOff.signal);
  }

  /** Begins to look for work, here and when other nodes have made some. */
  start(): void {
    const { channel, leaseSeconds, onFault, queue, sender } = this.#deps;
    this.#endPolling = every(
      channel.pollMs,
      async () => {
        const pause = this.#hasReceivers ? this.#pauseMs : IDLE_MS;
        if (performance.now() - this.#lookedAt > pause) await this.#lookNow();
      },
      (error) => onFault(error, `${this.#deps.channel.receivers} could not be read`),
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

  /** Called after a commit with events. Does nothing while there are no receivers. */
  committed(): void {
    if (this.#hasReceivers) this.wake();
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
      const found = await this.#deps.sql.read<FoundWork>(this.#lookText, []);
      this.#hasReceivers = found[0]?.hasReceivers === true;
      for (const [id, line] of this.#lines) if (line.isIdle) this.#lines.delete(id);
      for (const receiver of found) {
        if (receiver.id === null) continue;
        if (receiver.hasNew) this.#fan(receiver);
        if (receiver.hasDue) this.#lineOf(receiver).wake();
      }
    } catch (error) {
      this.#deps.onFault(error, `${this.#deps.channel.receivers} could not be read`);
    }
    const fair = (performance.now() - startedAt) / LOOKING;
    this.#pauseMs = Math.min(Math.max(MIN_PAUSE_MS, fair), MAX_PAUSE_MS);
  }

  #lineOf(receiver: ReceiverWork): SendLine<Target, Message> {
    const known = this.#lines.get(receiver.id);
    if (known) return known;
    const line = new SendLine<Target, Message>(receiver, { ...this.#deps, signal: this.#cutOff.signal });
    this.#lines.set(receiver.id, line);
    return line;
  }

  /** Those for which there is no room now are found by the next look. */
  #fan(receiver: ReceiverWork): void {
    if (this.#isStopped || this.#fanning.has(receiver.id)) return;
    const ofOne = [...this.#fanning.values()].filter(({ orgId }) => orgId === receiver.orgId);
    if (this.#fanning.size >= FANNED_AT_ONCE || ofOne.length >= FANNED_OF_ONE) {
      this.#isWanted = true;
      return;
    }
    const { channel, fanOut, onFault } = this.#deps;
    const done = fanOut
      .run(receiver.id, () => this.#isStopped)
      .then(
        (made) => {
          if (made > 0 && !this.#isStopped) this.#lineOf(receiver).wake();
        },
        (error: unknown) => onFault(error, `nothing new could be read for one of ${channel.receivers}`),
      )
      .finally(() => this.#fanning.delete(receiver.id));
    this.#fanning.set(receiver.id, { orgId: receiver.orgId, done });
  }
}
