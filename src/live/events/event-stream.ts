import type { StreamEvent } from '../../data/outbox.ts';
import type { NoticeType } from '../../kernel/event-details.ts';
import { newId } from '../../kernel/ids.ts';
import { Wheel } from '../../kernel/wheel.ts';
import type { CloseReason } from './close-reason.ts';
import type { EventQueue } from './event-queue.ts';
import type { StreamedPlace } from './missed-events.ts';
import { cursorOf, isBehind, type Position, type Snapshot } from './position.ts';
import type { Refusal, Watched } from './stream-watch.ts';

/** How long the stream of a deleted resource waits for the event of the deletion. */
const WAIT_FOR_DELETION_MS = 30_000;

/** A silent stream of those who ask for it says so this often. */
const heartbeats = new Wheel(15_000);

export interface StreamOptions {
  place: StreamedPlace;
  /** The epoch of the database, for cursors. */
  epoch: string;
  /** The live events. */
  queue: EventQueue;
  /** The position from which the reader resumes; `null` for a new reader. */
  from: Position | null;
  /** What the reader missed: everything between `from` and the live events, or `lost`. */
  missed: AsyncIterable<StreamEvent> | 'lost' | null;
  /** After this time the stream ends; `null` for never. */
  timeoutSeconds: number | null;
  /** The details of the event `connected` at the beginning; `null` without such an event. */
  greeting: Record<string, unknown> | null;
  /** Whether a silent stream sends `heartbeat` from time to time. */
  hasHeartbeat: boolean;
  /** What the reader receives of an event; `null` if it did not ask for it, or may not receive it. */
  shown: (event: StreamEvent) => StreamEvent | null | Promise<StreamEvent | null>;
  /** Why the reader may no longer read; `null` while it may. */
  refusal: () => Refusal;
  onFault: (error: unknown) => void;
  /** Called when the stream is over: frees its slot. */
  release: () => void;
}

/** The event of the deletion, and the reason with which the stream then ends. */
const DELETION = {
  workspace: { type: 'workspace.deleted', reason: 'workspace_deleted' },
  organization: { type: 'organization.deleted', reason: 'organization_deleted' },
} as const;

const DONE: IteratorResult<StreamEvent, undefined> = { done: true, value: undefined };

/**
 * The events of one reader: those that it missed, then the live ones, without gaps or duplicates. The last one is
 * `stream.closing` with the reason, unless the reader leaves first.
 */
export class EventStream implements AsyncIterableIterator<StreamEvent>, Watched {
  readonly #options: StreamOptions;
  #missed: AsyncIterator<StreamEvent, unknown> | null;
  #position: Position;
  /** What had happened before a stream that does not resume; `null` as soon as only later events can come. */
  #before: Snapshot | null;
  readonly #deletion: { type: string; reason: CloseReason };
  /** Events about the stream itself that come before all others. */
  readonly #notices: StreamEvent[] = [];
  /** What the queue gets when the stream was silent for a while. */
  #beat: StreamEvent | null = null;
  #endHeartbeat: (() => void) | null = null;
  #timeout: NodeJS.Timeout | null = null;
  #isOver = false;
  /** Time from `performance.now()`. */
  #deletedAt: number | null = null;

  constructor(options: StreamOptions) {
    const { missed, from, queue, greeting, timeoutSeconds } = options;
    this.#options = options;
    this.#deletion = options.place.workspaceId === null ? DELETION.organization : DELETION.workspace;
    this.#missed = missed && missed !== 'lost' ? missed[Symbol.asyncIterator]() : null;
    this.#position = missed === 'lost' ? queue.start : (from ?? queue.start);
    this.#before = missed && missed !== 'lost' ? null : queue.before;
    if (greeting) this.#notices.push(this.#notice('connected', greeting));
    if (missed === 'lost') this.#notices.push(this.#notice('resync', {}));
    if (options.hasHeartbeat) this.#endHeartbeat = heartbeats.add(() => this.#sendHeartbeat());
    if (timeoutSeconds !== null) this.#timeout = setTimeout(() => queue.end('timeout'), timeoutSeconds * 1_000).unref();
  }

  async next(): Promise<IteratorResult<StreamEvent, undefined>> {
    if (this.#isOver) return DONE;
    const { queue, onFault } = this.#options;
    const notice = this.#notices.shift();
    if (notice) return { done: false, value: notice };
    try {
      const event = await this.#nextAllowed();
      if (event) return { done: false, value: event };
    } catch (error) {
      onFault(error);
      queue.end('unavailable');
    }
    this.#stop();
    return queue.reason ? { done: false, value: this.#notice('stream.closing', { reason: queue.reason }) } : DONE;
  }

  async return(): Promise<IteratorResult<StreamEvent, undefined>> {
    this.#stop();
    return DONE;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The cursor of an event, for a reader that resumes. */
  cursorOf(event: StreamEvent): string {
    return cursorOf(event, this.#options.epoch);
  }

  refusal(): Refusal {
    return this.#options.refusal();
  }

  /** Takes the result of a check of a silent stream. */
  found(reason: CloseReason | null): void {
    const { queue } = this.#options;
    if (reason !== this.#deletion.reason) {
      this.#deletedAt = null;
      if (reason) queue.end(reason);
      return;
    }
    // the event of the deletion may be held back
    this.#deletedAt ??= performance.now();
    if (performance.now() - this.#deletedAt > WAIT_FOR_DELETION_MS) queue.end(reason);
  }

  /** The next event that the reader may receive, for as long as it may read. */
  async #nextAllowed(): Promise<StreamEvent | null> {
    const { queue, shown, refusal } = this.#options;
    for (let event = await this.#nextInOrder(); event; event = await this.#nextInOrder()) {
      if (event === this.#beat) return event;
      const isEnd = event.type === this.#deletion.type;
      const answer = shown(event);
      const received = answer instanceof Promise ? await answer : answer;
      if (received) {
        const found = refusal();
        const reason = found instanceof Promise ? await found : found;
        // events up to the deletion, and that of the deletion itself, may still be read
        if (reason && reason !== this.#deletion.reason) return this.#end(reason);
        this.#position = event;
        if (isEnd) queue.end(this.#deletion.reason);
        return received;
      }
      if (isEnd) return this.#end(this.#deletion.reason);
    }
    return null;
  }

  #end(reason: CloseReason): null {
    this.#options.queue.end(reason);
    return null;
  }

  async #nextInOrder(): Promise<StreamEvent | null> {
    const { queue, missed, from } = this.#options;
    if (this.#missed) {
      const step = await this.#missed.next();
      if (queue.hasEnded) return null;
      if (!step.done) return step.value;
      this.#missed = null;
    }
    // another node may have been ahead of this one: events that the reader has seen there are still to come here
    const seen = missed === 'lost' ? null : from;
    for (;;) {
      const { done, value } = await queue.next();
      if (done) return null;
      if (value === this.#beat || (seen ? isBehind(value, seen) : this.#isNew(value))) return value;
    }
  }

  /**
   * Whether an event happened after the stream began. The queue may begin with older ones, which a transaction that ran
   * for long held back. The deletion of the stream's place always counts: it ends the stream.
   */
  #isNew(event: StreamEvent): boolean {
    if (this.#before?.isBefore(event)) this.#before = null;
    return !this.#before?.has(event) || event.type === this.#deletion.type;
  }

  #sendHeartbeat(): void {
    const { queue } = this.#options;
    if (!queue.isWaiting) return;
    this.#beat = this.#notice('heartbeat', {});
    queue.push(this.#beat);
  }

  #stop(): void {
    this.#isOver = true;
    this.#endHeartbeat?.();
    if (this.#timeout) clearTimeout(this.#timeout);
    this.#options.queue.end(null);
    this.#options.release();
  }

  /** An event about the stream itself. A reader that resumes from it continues where the stream was. */
  #notice(type: NoticeType, data: Record<string, unknown>): StreamEvent {
    const { orgId, workspaceId } = this.#options.place;
    const { xid, seq } = this.#position;
    return {
      xid,
      seq,
      id: newId('event'),
      orgId,
      workspaceId,
      namespaceId: null,
      environmentId: null,
      appId: null,
      recipientId: null,
      type,
      actor: { principal_type: 'system', principal_id: null, username: null },
      resourceType: workspaceId === null ? 'organization' : 'workspace',
      resourceId: workspaceId ?? orgId,
      data,
      traceId: null,
      timestamp: new Date(),
    };
  }
}
