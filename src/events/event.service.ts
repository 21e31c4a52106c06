import { setTimeout as delay } from 'node:timers/promises';
import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { ApiError } from '../graphql/errors.ts';
import type { StreamEvent } from '../infra/events.ts';
import type { CloseReason } from './close-reason.ts';
import { isHeardBy } from './event-place.ts';
import type { EventTail } from './event-tail.ts';
import type { MissedEvents, StreamedWorkspace } from './missed-events.ts';
import { type Position, positionOf } from './position.ts';
import { StreamSlots } from './stream-slots.ts';
import { type StreamOptions, WorkspaceStream } from './workspace-stream.ts';

/** How long a stop waits for readers to take their last event. */
const CLOSING_MS = 500;

interface EventServiceDeps {
  tail: EventTail;
  missed: MissedEvents;
  access: Access;
  authentication: Authentication;
  onFault: (error: unknown, what: string) => void;
}

/** The live events of workspaces. */
export class EventService {
  readonly #deps: EventServiceDeps;
  readonly #slots = new StreamSlots();
  readonly #open = new Set<Promise<void>>();

  constructor(deps: EventServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Events of a workspace from now on, or from behind the event with the cursor `after`; for a token only those that it may hear of. Ends
   * when the session or the membership does. What cannot be given any more is one `resync`.
   * @throws RATE_LIMIT_EXCEEDED, InputError for what is no cursor
   */
  async subscribe(
    actor: Actor,
    workspace: StreamedWorkspace,
    after?: string | null,
  ): Promise<AsyncIterable<StreamEvent>> {
    const from = positionOf(after);
    const release = this.#slots.take(actor.principal.userId, workspace.workspaceId);
    try {
      return await this.#streamOf(actor, workspace, from, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Ends all streams, because the service stops. Resolves when each has said so, or does not read. */
  async close(): Promise<void> {
    this.#deps.tail.close();
    await Promise.race([Promise.all(this.#open), delay(CLOSING_MS, undefined, { ref: false })]);
  }

  async #streamOf(
    actor: Actor,
    workspace: StreamedWorkspace,
    from: Position | null,
    release: () => void,
  ): Promise<WorkspaceStream> {
    const { tail, onFault } = this.#deps;
    const { token } = actor.principal;
    const queue = await tail.subscribe(workspace.workspaceId);
    try {
      return new WorkspaceStream({
        workspace,
        queue,
        from,
        missed: from && (await this.#missed(workspace, from, queue.start)),
        mayReceive: (event) => !token || isHeardBy(token, event),
        refusal: () => this.#refusal(actor, workspace),
        onFault: (error) => onFault(error, 'an event stream failed'),
        release: this.#untilReleased(release),
      });
    } catch (error) {
      queue.end(null);
      throw error;
    }
  }

  async #missed(workspace: StreamedWorkspace, from: Position, until: Position): Promise<StreamOptions['missed']> {
    const { missed } = this.#deps;
    return (await missed.isLost(workspace, from, until)) ? 'lost' : missed.between(workspace, from, until);
  }

  /** Counts a stream as open until it is released. */
  #untilReleased(release: () => void): () => void {
    let released = release;
    const isOver = new Promise<void>((resolve) => {
      released = () => {
        release();
        resolve();
      };
    });
    this.#open.add(isOver);
    void isOver.finally(() => this.#open.delete(isOver));
    return released;
  }

  async #refusal(actor: Actor, { orgId, workspaceId }: StreamedWorkspace): Promise<CloseReason | null> {
    const { authentication, access } = this.#deps;
    if (!(await authentication.renew(actor.principal))) return 'token_revoked';
    try {
      await access.requireWorkspace(actor, orgId, workspaceId, 'sync:subscribe');
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.code === 'RESOURCE_NOT_FOUND' ? 'workspace_deleted' : 'membership_revoked';
    }
  }
}
