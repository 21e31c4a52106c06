import { setTimeout as delay } from 'node:timers/promises';
import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import { ApiError } from '../core/errors.ts';
import { newIdWith } from '../core/ids.ts';
import type { StreamEvent } from '../data/outbox.ts';
import type { Sql } from '../data/sql.ts';
import type { CloseReason } from './close-reason.ts';
import { isHeardBy } from './event-place.ts';
import { EventStream, type StreamOptions } from './event-stream.ts';
import type { EventTail } from './event-tail.ts';
import { eventTypes } from './event-types.ts';
import type { MissedEvents, StreamedPlace } from './missed-events.ts';
import { OrganizationAudience } from './organization-audience.ts';
import { cursorOf, type Position, positionOf } from './position.ts';
import { StreamSlots } from './stream-slots.ts';
import { type Refusal, StreamWatch } from './stream-watch.ts';
import { typeFilterOf } from './type-filter.ts';

/** How long a shutdown waits for readers to take their last event. */
const CLOSING_MS = 500;

interface EventServiceDeps {
  tail: EventTail;
  missed: MissedEvents;
  sql: Sql;
  access: Access;
  authentication: Authentication;
  onFault: (error: unknown, what: string) => void;
}

/** The options of a stream. */
export interface Wish {
  /** The cursor of the last event that the reader has seen. */
  after?: string | null | undefined;
  /** Exact types and `<resource>.*`. Default: all events. */
  types?: readonly string[] | null | undefined;
  /** The stream ends after this time. Default: never by itself. */
  timeoutSeconds?: number | null | undefined;
  /** Whether the stream begins with the event `connected`. */
  isAnnounced?: boolean | null | undefined;
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
   * Events of a workspace, from now on or after the event with the cursor `after`; a token gets only those that it may
   * receive. Ends with the session or the membership. Events that are no longer available are replaced by one `resync`.
   * @throws RATE_LIMIT_EXCEEDED; InputError for an invalid cursor, and for types that no event has
   */
  async subscribe(actor: Actor, workspace: StreamedWorkspace, wish: Wish): Promise<AsyncIterable<StreamEvent>> {
    const { token } = actor.principal;
    const mayReceive = (event: StreamEvent) => !token || isHeardBy(token, event);
    return this.#open(actor, workspace, wish, mayReceive, () =>
      this.#deps.access.requireWorkspace(actor, workspace.orgId, workspace.workspaceId, 'sync:subscribe'),
    );
  }

  /**
   * The same for an organization itself: those of its events that are about resources that the actor may read, checked
   * for each event.
   * @throws as {@link subscribe}
   */
  async subscribeToOrganization(actor: Actor, orgId: string, wish: Wish): Promise<AsyncIterable<StreamEvent>> {
    const mayReceive = (event: StreamEvent) =>
      // nobody may read a deleted organization: the event goes to those who had access until then
      event.type === 'organization.deleted' || this.#audience.mayReceive(actor, event);
    return this.#open(actor, { orgId, workspaceId: null }, wish, mayReceive, () =>
      this.#deps.access.requireOrganization(actor, orgId, 'sync:subscribe'),
    );
  }

  /** Ends all streams, because the service stops. Resolves when each has sent its last event, or is not being read. */
  async close(): Promise<void> {
    this.#deps.tail.close();
    await Promise.race([Promise.all(this.#unreleased), delay(CLOSING_MS, undefined, { ref: false })]);
  }

  async #open(
    actor: Actor,
    place: StreamedPlace,
    { after, types, timeoutSeconds, isAnnounced }: Wish,
    mayReceive: StreamOptions['mayReceive'],
    demand: () => unknown,
  ): Promise<EventStream> {
    const from = positionOf(after);
    const isWanted = typeFilterOf(types);
    const release = this.#slots.take(actor.principal.userId, place.workspaceId ?? place.orgId);
    const options = {
      place,
      from,
      timeoutSeconds: timeoutSeconds ?? null,
      greeting: isAnnounced ? greetingOf(from, timeoutSeconds) : null,
      mayReceive: (event: StreamEvent) => eventTypes.has(event.type) && isWanted(event.type) && mayReceive(event),
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

  /** Counts a stream as open until `release` is called. */
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
   * Each event is checked, and nearly always from cached data: a promise per event would be most of the cost of a
   * delivery here.
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

  /** @throws errors that are not refusals */
  async #reasonOf(error: unknown, actor: Actor, { orgId, workspaceId }: StreamedPlace): Promise<CloseReason> {
    if (!(error instanceof ApiError)) throw error;
    if (workspaceId !== null) return error.code === 'RESOURCE_NOT_FOUND' ? 'workspace_deleted' : 'membership_revoked';
    // to non-members, a deleted organization looks like any other
    return (await this.#deps.access.wentWithOrganization(actor, orgId)) ? 'organization_deleted' : 'membership_revoked';
  }
}

/** The details of the event `connected`. */
const greetingOf = (from: Position | null, timeoutSeconds: number | null | undefined): Record<string, unknown> => ({
  connection_id: newIdWith('stream'),
  timeout: timeoutSeconds ?? null,
  last_event_id: from && cursorOf(from),
});
