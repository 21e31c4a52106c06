import type { AttemptResult } from './attempts.ts';
import type { SendChannel } from './channel.ts';
import type { FinishedDelivery, SendQueue, TakenDelivery } from './send-queue.ts';
import { mostOf, type SendSlots, type SlotOwner } from './send-slots.ts';

const SLOW_MS = 2_000;
const FAST_MS = 250;
/** What is taken from the queue at once while a receiver is fast. */
const MAX_TAKEN = 100;
/** Attempts are recorded together: after a pause, or when there are so many. */
const RECORD_MS = 20;
const RECORDED = 50;
/** Codes of calls that were cut off because the service stops: they are no attempts. */
const CUT_OFF = 'aborted';

/** Sends single messages to the receivers of a channel. */
export interface MessageSender<Target, Message> {
  /** Where a receiver is; `null` if nothing is sent to it. One without access is disabled. */
  destination(receiverId: string): Promise<Target | null>;
  /** Makes one attempt. */
  send(
    target: Target,
    message: Message & TakenDelivery,
    call: { owner: string; signal: AbortSignal },
  ): Promise<AttemptResult>;
  /** Forgets what is older than it may be. */
  forget(): void;
}

export interface LineDeps<Target, Message extends object> {
  channel: Pick<SendChannel, 'waitAfter'>;
  queue: SendQueue<Message>;
  sender: MessageSender<Target, Message>;
  slots: SendSlots;
  signal: AbortSignal;
  onFault: (error: unknown, what: string) => void;
}

/** What this node sends to one receiver. */
export class SendLine<Target, Message extends object> implements SlotOwner {
  readonly orgId: string;
  readonly #id: string;
  readonly #deps: LineDeps<Target, Message>;
  readonly #held = new Set<string>();
  readonly #taken: (TakenDelivery & Message)[] = [];
  readonly #running = new Set<Promise<void>>();
  #finished: FinishedDelivery[] = [];
  #recording: Promise<void> = Promise.resolve();
  #taking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #hasMore = false;
  #isOver = false;
  #lastMs = 0;
  #isFailing = false;

  constructor({ id, orgId }: { id: string; orgId: string }, deps: LineDeps<Target, Message>) {
    this.#id = id;
    this.orgId = orgId;
    this.#deps = deps;
  }

  get isSlow(): boolean {
    return this.#lastMs > SLOW_MS;
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** What it has taken and whose attempt is not recorded yet. */
  get held(): ReadonlySet<string> {
    return this.#held;
  }

  get isIdle(): boolean {
    return this.#held.size === 0 && !this.#taking;
  }

  /** Called when something is due. */
  wake(): void {
    this.#hasMore = true;
    this.step();
  }

  /** Sends what was taken, as far as there is room, and takes more before it is used up. */
  step(): void {
    if (this.#isOver || this.#deps.signal.aborted) return;
    while (this.#taken.length > 0 && this.#running.size < mostOf(this)) {
      const release = this.#deps.slots.take(this);
      if (!release) break;
      const sent = this.#send(this.#taken.shift()!).finally(() => {
        this.#running.delete(sent);
        release();
        this.step();
      });
      this.#running.add(sent);
    }
    if (this.#hasMore && !this.#taking && this.#taken.length < mostOf(this)) this.#take();
  }

  /** Ends it: waits for what is under way, and gives back the rest. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#taking;
    const left = this.#taken.splice(0).map(({ id }) => id);
    await Promise.all(this.#running);
    this.#record();
    await this.#recording;
    await this.#giveBack(left);
  }

  #take(): void {
    const isFast = this.#lastMs < FAST_MS && !this.#isFailing;
    const most = isFast ? MAX_TAKEN : mostOf(this);
    this.#hasMore = false;
    this.#taking = this.#deps.queue
      .take(this.#id, most)
      .then(
        (taken) => {
          for (const delivery of taken) this.#held.add(delivery.id);
          this.#taken.push(...taken);
          this.#hasMore ||= taken.length === most;
        },
        (error: unknown) => this.#deps.onFault(error, 'deliveries could not be taken'),
      )
      .finally(() => {
        this.#taking = null;
        this.step();
      });
  }

  async #send(delivery: TakenDelivery & Message): Promise<void> {
    const { sender, signal, onFault } = this.#deps;
    try {
      const destination = await sender.destination(this.#id);
      const result = destination && (await sender.send(destination, delivery, { owner: this.#id, signal }));
      if (result && result.attempt.error !== CUT_OFF) this.#finish(delivery, result);
      else await this.#giveBack([delivery.id]);
    } catch (error) {
      onFault(error, 'a delivery could not be sent');
      // it is due again when its lease is over
      this.#held.delete(delivery.id);
    }
  }

  #finish(delivery: TakenDelivery, { attempt, isDelivered, retryAfter }: AttemptResult): void {
    this.#lastMs = attempt.duration_ms;
    this.#isFailing = !isDelivered;
    const wait = isDelivered ? null : this.#deps.channel.waitAfter(delivery, retryAfter);
    const status = isDelivered ? 'delivered' : wait === null ? 'failed' : 'pending';
    const { id, resourceId, tries, isTest } = delivery;
    this.#finished.push({ id, resource_id: resourceId, tries, status, wait, attempt, isTest });
    if (this.#finished.length >= RECORDED) this.#record();
    else this.#timer ??= setTimeout(() => this.#record(), RECORD_MS);
  }

  #record(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const finished = this.#finished;
    if (finished.length === 0) return;
    this.#finished = [];
    const { queue, onFault } = this.#deps;
    this.#recording = this.#recording.then(async () => {
      try {
        await queue.finish(this.#id, finished);
      } catch (error) {
        onFault(error, 'attempts could not be recorded');
      }
      for (const { id } of finished) this.#held.delete(id);
      // what waited for these may be due
      this.wake();
    });
  }

  async #giveBack(ids: readonly string[]): Promise<void> {
    try {
      await this.#deps.queue.release(ids);
    } catch (error) {
      this.#deps.onFault(error, 'deliveries could not be given back');
    }
    for (const id of ids) this.#held.delete(id);
  }
}
