import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { ApiError } from '../graphql/errors.ts';
import type { StreamEvent } from '../infra/events.ts';
import { isHeardBy } from './event-place.ts';
import type { EventQueue } from './event-queue.ts';
import type { EventTail } from './event-tail.ts';
import { StreamSlots } from './stream-slots.ts';

/** How often a silent stream asks whether its reader may still read. */
const RECHECK_MS = 900;

/** The live events of workspaces. */
export class EventService {
  readonly #tail: EventTail;
  readonly #access: Access;
  readonly #authentication: Authentication;
  readonly #slots = new StreamSlots();

  constructor(deps: { tail: EventTail; access: Access; authentication: Authentication }) {
    this.#tail = deps.tail;
    this.#access = deps.access;
    this.#authentication = deps.authentication;
  }

  /**
   * Events of a workspace from now on; for a token only those that it may hear of. Ends when the session or the membership does.
   * @throws RATE_LIMIT_EXCEEDED
   */
  async subscribe(actor: Actor, orgId: string, workspaceId: string): Promise<AsyncIterable<StreamEvent>> {
    const release = this.#slots.take(actor.principal.userId, workspaceId);
    const queue = await this.#open(workspaceId, release);
    const mayRead = () => this.#mayRead(actor, orgId, workspaceId);
    const watch = setInterval(() => {
      mayRead().then(
        (allowed) => allowed || queue.end(),
        // the database is away: the next look decides
        () => undefined,
      );
    }, RECHECK_MS);
    const stop = async () => {
      clearInterval(watch);
      release();
      return queue.return();
    };
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          try {
            const result = await nextHeard(queue, actor);
            return result.done || !(await mayRead()) ? await stop() : result;
          } catch (error) {
            await stop();
            throw error;
          }
        },
        return: stop,
      }),
    };
  }

  async #open(workspaceId: string, release: () => void): Promise<EventQueue> {
    try {
      return await this.#tail.subscribe(workspaceId);
    } catch (error) {
      release();
      throw error;
    }
  }

  async #mayRead(actor: Actor, orgId: string, workspaceId: string): Promise<boolean> {
    if (!(await this.#authentication.renew(actor.principal))) return false;
    try {
      await this.#access.requireWorkspace(actor, orgId, workspaceId, 'sync:subscribe');
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }
}

/** The next event that the caller may hear of, or the end. */
async function nextHeard(queue: EventQueue, { principal: { token } }: Actor): Promise<IteratorResult<StreamEvent>> {
  for (;;) {
    const result = await queue.next();
    if (result.done || !token || isHeardBy(token, result.value)) return result;
  }
}
