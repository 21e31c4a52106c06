import type { StreamEvent } from '../infra/events.ts';
import { newId } from '../infra/ids.ts';
import type { CloseReason } from './close-reason.ts';
import type { EventQueue } from './event-queue.ts';
import type { StreamedWorkspace } from './missed-events.ts';
import { isBehind, type Position } from './position.ts';

/** How often a silent stream asks whether its reader may still read. */
const RECHECK_MS = 900;
/** How many such looks a deleted workspace's stream waits for the event that says so: half a minute. */
const LOOKS_AFTER_DELETION = 33;

export interface StreamOptions {
  workspace: StreamedWorkspace;
  /** The live events. */
  queue: EventQueue;
  /** Where the reader has been before; `null` for one that is new. */
  from: Position | null;
  /** What the reader missed: everything between `from` and the live events, or `lost`. */
  missed: AsyncIterable<StreamEvent> | 'lost' | null;
  /** Whether the event is for this reader. */
  mayReceive: (event: StreamEvent) => boolean;
  /** Why the reader may read no more; `null` while it may. */
  refusal: () => Promise<CloseReason | null>;
  onFault: (error: unknown) => void;
  /** The stream is over, and its place free. */
  release: () => void;
}

/**
 * One reader's events: those that it missed, then the live ones, without a gap and none twice. The last one is `stream.closing` with the reason,
 * unless the reader leaves by itself.
 */
export class WorkspaceStream implements AsyncIterableIterator<StreamEvent> {
  readonly #options: StreamOptions;
  readonly #events: AsyncGenerator<StreamEvent, void>;
  readonly #watch: NodeJS.Timeout;
  #position: Position;
  #looksAfterDeletion = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#position = options.from ?? options.queue.start;
    this.#events = this.#run();
    this.#watch = setInterval(() => this.#look(), RECHECK_MS);
  }

  next(): Promise<IteratorResult<StreamEvent>> {
    return this.#events.next();
  }

  async return(): Promise<IteratorResult<StreamEvent>> {
    this.#stop();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async *#run(): AsyncGenerator<StreamEvent, void> {
    const { queue, onFault } = this.#options;
    try {
      yield* this.#allowed();
    } catch (error) {
      onFault(error);
      queue.end('unavailable');
    }
    this.#stop();
    if (queue.reason) yield this.#notice('stream.closing', { reason: queue.reason });
  }

  /** What the reader may receive, for as long as it may read. */
  async *#allowed(): AsyncGenerator<StreamEvent, void> {
    const { queue, missed, mayReceive, refusal } = this.#options;
    if (missed === 'lost') {
      this.#position = queue.start;
      yield this.#notice('resync', {});
    }
    for await (const event of this.#ordered()) {
      const isEnd = event.type === 'workspace.deleted';
      if (mayReceive(event)) {
        const reason = await refusal();
        // what happened up to the deletion may still be read, and the deletion itself
        if (reason && reason !== 'workspace_deleted') return queue.end(reason);
        this.#position = event;
        if (isEnd) queue.end('workspace_deleted');
        yield event;
      }
      if (isEnd) return queue.end('workspace_deleted');
    }
  }

  async *#ordered(): AsyncGenerator<StreamEvent, void> {
    const { queue, missed, from } = this.#options;
    if (missed && missed !== 'lost') {
      for await (const event of missed) {
        if (queue.hasEnded) return;
        yield event;
      }
    }
    // another node may have been ahead of this one: what the reader has seen there is yet to come here
    const seen = missed === 'lost' ? null : from;
    for await (const event of queue) if (!seen || isBehind(event, seen)) yield event;
  }

  #look(): void {
    const { queue, refusal } = this.#options;
    if (queue.hasEnded) {
      clearInterval(this.#watch);
      return;
    }
    refusal().then(
      (reason) => {
        if (!reason) this.#looksAfterDeletion = 0;
        else if (reason !== 'workspace_deleted' || ++this.#looksAfterDeletion > LOOKS_AFTER_DELETION) queue.end(reason);
      },
      // the database is away: the next look decides
      () => undefined,
    );
  }

  #stop(): void {
    clearInterval(this.#watch);
    this.#options.queue.end(null);
    this.#options.release();
  }

  /** An event of the stream itself. Whoever resumes from it goes on where the stream was. */
  #notice(type: string, data: Record<string, unknown>): StreamEvent {
    const { orgId, workspaceId } = this.#options.workspace;
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
      type,
      actor: { principal_type: 'system', principal_id: null, username: null },
      resourceType: 'workspace',
      resourceId: workspaceId,
      data,
      traceId: null,
      timestamp: new Date(),
    };
  }
}
