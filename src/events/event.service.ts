import { setTimeout as delay } from 'node:timers/promises';
import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { ApiError } from '../core/errors.ts';
import type { StreamEvent } from '../data/outbox.ts';
import type { Sql } from '../data/sql.ts';
import type { CloseReason } from './close-reason.ts';
import { isHeardBy } from './event-place.ts';
import { EventStream, type StreamOptions } from './event-stream.ts';
import type { EventTail } from './event-tail.ts';
import type { MissedEvents, StreamedPlace } from './missed-events.ts';
import { OrganizationAudience } from './organization-audience.ts';
import { type Position, positionOf } from './position.ts';
import { StreamSlots } from './stream-slots.ts';
import { type Refusal, StreamWatch } from './stream-watch.ts';
import { typeFilterOf } from './type-filter.ts';

/** How long a stop waits for readers to take their last event. */
const CLOSING_MS = 500;

interface EventServiceDeps {
  tail: EventTail;
  missed: MissedEvents;
  sql: Sql;
  access: Access;
  authentication: Authentication;
  onFault: (error: unknown, what: string) => void;
}

/** What a reader asks of a stream. */
export interface Wish {
  /** The cursor of the last event that it has seen. */
  after?: string | null | undefined;
  /** Exact types, and `<resource>.*`; everything where nothing is said. */
  types?: readonly string[] | null | undefined;
}

interface StreamedWorkspace {
  orgId: string;
  workspaceId: string;
}

/** The live events of workspaces, and of organizations themselves. */
export class EventService {
  /** Streams may resume for 24 hours. */
  readonly retention = [`delete from events where timestamp < now() - interval '7 days'`];
  readonly #deps: EventServiceDeps;
  readonly #slots = new StreamSlots();
  readonly #watch: StreamWatch;
  readonly #audience: OrganizationAudience;
  readonly #unreleased = new Set<Promise<void>>();

  constructor(deps: EventServiceDeps) {
    this.#deps = deps;
    this.#watch = new StreamWatch(deps);
    this.#audience = new OrganizationAudience(deps.access, deps.sql);
  }

  /**
   * Events of a workspace from now on, or from behind the event with the cursor `after`; for a token only those that it
   * may hear of. Ends when the session or the membership does. What cannot be given any more is one `resync`.
   * @throws RATE_LIMIT_EXCEEDED, InputError for what is no cursor, and for types that no event has
   */
  async subscribe(actor: Actor, workspace: StreamedWorkspace, wish: Wish): Promise<AsyncIterable<StreamEvent>> {
    const { token } = actor.principal;
    const mayReceive = (event: StreamEvent) => !token || isHeardBy(token, event);
    return this.#open(actor, workspace, wish, mayReceive, () =>
      this.#deps.access.requireWorkspace(actor, workspace.orgId, workspace.workspaceId, 'sync:subscribe'),
    );
  }

  /**
   * The same of an organization itself: of its events those that are about what the actor may read, which is asked for
   * each of them.
   * @throws as {@link subscribe}
   */
  async subscribeToOrganization(actor: Actor, orgId: string, wish: Wish): Promise<AsyncIterable<StreamEvent>> {
    const mayReceive = (event: StreamEvent) =>
      // nobody may read anything of what is gone: those who are told have not lost it before
      event.type === 'organization.deleted' || this.#audience.mayReceive(actor, event);
    return this.#open(actor, { orgId, workspaceId: null }, wish, mayReceive, () =>
      this.#deps.access.requireOrganization(actor, orgId, 'sync:subscribe'),
    );
  }

  /** Ends all streams, because the service stops. Resolves when each has said so, or does not read. */
  async close(): Promise<void> {
    this.#deps.tail.close();
    await Promise.race([Promise.all(this.#unreleased), delay(CLOSING_MS, undefined, { ref: false })]);
  }

  async #open(
    actor: Actor,
    place: StreamedPlace,
    { after, types }: Wish,
    mayReceive: StreamOptions['mayReceive'],
    demand: () => unknown,
  ): Promise<EventStream> {
    const from = positionOf(after);
    const isWanted = typeFilterOf(types);
    const release = this.#slots.take(actor.principal.userId, place.workspaceId ?? place.orgId);
    const options = {
      place,
      from,
      mayReceive: (event: StreamEvent) => isWanted(event.type) && mayReceive(event),
      refusal: () => this.#refusal(actor, place, demand),
      onFault: (error: unknown) => this.#deps.onFault(error, 'an event stream failed'),
    };
    try {
      return await this.#streamOf(actor, options, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  async #streamOf(
    actor: Actor,
    options: Omit<StreamOptions, 'queue' | 'missed' | 'release'>,
    release: () => void,
  ): Promise<EventStream> {
    const { place, from } = options;
    const queue = await this.#deps.tail.subscribe(place);
    try {
      const isOver: (() => void)[] = [];
      const stream = new EventStream({
        ...options,
        queue,
        missed: from && (await this.#missed(place, from, queue.start)),
        release: this.#untilReleased(() => {
          release();
          for (const end of isOver) end();
        }),
      });
      isOver.push(this.#watch.add(stream, { actor, ...place }));
      return stream;
    } catch (error) {
      queue.end(null);
      throw error;
    }
  }

  async #missed(place: StreamedPlace, from: Position, until: Position): Promise<StreamOptions['missed']> {
    const { missed } = this.#deps;
    return (await missed.isLost(place, from, until)) ? 'lost' : missed.between(place, from, until);
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
    this.#unreleased.add(isOver);
    void isOver.finally(() => this.#unreleased.delete(isOver));
    return released;
  }

  /**
   * Each event asks, and nearly always all of it is known: a promise for each of them would be most of what a delivery
   * costs here.
   */
  #refusal(actor: Actor, place: StreamedPlace, demand: () => unknown): Refusal {
    const lives = this.#deps.authentication.lives(actor.principal);
    if (lives instanceof Promise)
      return lives.then((alive) => (alive ? this.#refusalOf(actor, place, demand) : 'token_revoked'));
    return lives ? this.#refusalOf(actor, place, demand) : 'token_revoked';
  }

  #refusalOf(actor: Actor, place: StreamedPlace, demand: () => unknown): Refusal {
    const refused = (error: unknown) => this.#reasonOf(error, actor, place);
    try {
      const granted = demand();
      return granted instanceof Promise ? granted.then(() => null, refused) : null;
    } catch (error) {
      return refused(error);
    }
  }

  /** @throws what is no refusal */
  async #reasonOf(error: unknown, actor: Actor, { orgId, workspaceId }: StreamedPlace): Promise<CloseReason> {
    if (!(error instanceof ApiError)) throw error;
    if (workspaceId !== null) return error.code === 'RESOURCE_NOT_FOUND' ? 'workspace_deleted' : 'membership_revoked';
    // to those who are no members an organization that is gone looks like any other
    return (await this.#deps.access.wentWithOrganization(actor, orgId)) ? 'organization_deleted' : 'membership_revoked';
  }
}
