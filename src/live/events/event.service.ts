import { setTimeout as delay } from 'node:timers/promises';
import type { Access } from '../../access/access.ts';
import type { Authentication } from '../../access/authentication.ts';
import type { Config } from '../../config.ts';
import type { StreamEvent } from '../../data/outbox.ts';
import type { ReadDeps } from '../../data/replica-reads.ts';
import { RowsTogether } from '../../data/rows-together.ts';
import type { Caller } from '../../kernel/caller.ts';
import { ApiError } from '../../kernel/errors.ts';
import { newIdWith } from '../../kernel/ids.ts';
import type { PresentStreams } from '../presence/present-streams.ts';
import type { PresentUser } from '../presence/present-user.ts';
import { Audience } from './audience.ts';
import type { CloseReason } from './close-reason.ts';
import { EventStream, type StreamOptions } from './event-stream.ts';
import type { EventTail } from './event-tail.ts';
import type { MissedEvents, PlaceReader, StreamedPlace } from './missed-events.ts';
import { type Cursor, cursorOf, type Position, parsedCursor } from './position.ts';
import { StreamSlots } from './stream-slots.ts';
import { type Refusal, StreamWatch } from './stream-watch.ts';
import { typeFilterOf } from './type-filter.ts';

/** How long a shutdown waits for readers to take their last event. */
const CLOSING_MS = 500;

interface EventServiceDeps extends ReadDeps {
  config: Pick<Config, 'maxStreamsPerUser' | 'maxStreamsPerWorkspace'>;
  tail: EventTail;
  missed: MissedEvents;
  access: Access;
  authentication: Authentication;
  presence: PresentStreams;
  onFault: (error: unknown, what: string) => void;
}

/** The options of a stream. */
export interface SubscribeOptions {
  /** The cursor of the last event that the reader has seen. */
  after?: string | null | undefined;
  /** Exact types and `<resource>.*`. Default: all events. */
  types?: readonly string[] | null | undefined;
  /** The stream ends after this time. Default: never by itself. */
  timeoutSeconds?: number | null | undefined;
  /** Whether a silent stream sends `heartbeat` every 15 seconds. */
  heartbeat?: boolean | null | undefined;
  /** Whether the user is present in the workspace while the stream is open, which then begins with `connected`. */
  join?: boolean | null | undefined;
}

/** A stream as it is asked for. */
interface StreamRequest extends Omit<StreamOptions, 'epoch' | 'queue' | 'missed' | 'release' | 'greeting'> {
  from: Cursor | null;
}

interface StreamedWorkspace {
  orgId: string;
  workspaceId: string;
}

/** The live events of workspaces, and of organizations themselves. */
export class EventService {
  /** The rows that events are about: one read of each for all streams that get an event together. */
  readonly rows = new RowsTogether();
  /** Streams may resume for 24 hours. */
  readonly retention = [`delete from events where timestamp < now() - interval '7 days'`];
  readonly #deps: EventServiceDeps;
  readonly #slots: StreamSlots;
  readonly #watch: StreamWatch;
  readonly #audience: Audience;
  readonly #unreleased = new Set<Promise<void>>();

  constructor(deps: EventServiceDeps) {
    this.#deps = deps;
    this.#slots = new StreamSlots(deps.config);
    this.#watch = new StreamWatch(deps);
    this.#audience = new Audience(deps.access, deps.sql);
  }

  /**
   * Events of a workspace, from now on or after the event with the cursor `after`: of those resources that the caller
   * may read, checked for each event. Ends with the session or the membership. Events that are no longer available, or
   * older than the caller's role in the place, are replaced by one `resync`.
   * @throws RATE_LIMIT_EXCEEDED; InputError for an invalid cursor, and for types that no event has
   */
  async subscribe(caller: Caller, workspace: StreamedWorkspace, options: SubscribeOptions): Promise<EventStream> {
    const shown = (event: StreamEvent) => this.#audience.shown(caller, event);
    return this.#open(caller, workspace, options, shown, () =>
      this.#deps.access.requireWorkspace(caller, workspace.orgId, workspace.workspaceId, 'sync:subscribe'),
    );
  }

  /**
   * The same for an organization itself.
   * @throws as {@link subscribe}
   */
  async subscribeToOrganization(
    caller: Caller,
    orgId: string,
    options: SubscribeOptions,
  ): Promise<AsyncIterable<StreamEvent>> {
    const shown = (event: StreamEvent) =>
      // nobody may read a deleted organization: the event goes to those who had access until then
      event.type === 'organization.deleted' ? event : this.#audience.shown(caller, event);
    return this.#open(caller, { orgId, workspaceId: null }, options, shown, () =>
      this.#deps.access.requireOrganization(caller, orgId, 'sync:subscribe'),
    );
  }

  /**
   * The events that are addressed to the caller's user alone, of all organizations, from now on. A token gets those of
   * its own organization and places.
   * @throws RATE_LIMIT_EXCEEDED
   */
  async subscribeToOwn(caller: Caller): Promise<EventStream> {
    const { userId, orgId, token } = caller.principal;
    const shown = (event: StreamEvent) => (token ? this.#audience.shown(caller, event) : event);
    return this.#open(caller, { orgId: orgId ?? '', workspaceId: null, userId }, {}, shown, () => null);
  }

  /** The cursor of an event that a stream has sent. */
  cursorOf(event: StreamEvent): string {
    return cursorOf(event, this.#deps.tail.epoch);
  }

  /**
   * The cursor of the position now, from which streams can resume. What the caller reads after it has all that was
   * committed before it, also where lists are read from replicas.
   */
  async cursorNow(caller: Caller): Promise<string> {
    const { tail, replicaReads } = this.#deps;
    const now = await tail.now();
    await replicaReads?.committed(caller);
    return cursorOf(now, tail.epoch);
  }

  /** Ends all streams, because the service stops. Resolves when each has sent its last event, or is not being read. */
  async close(): Promise<void> {
    this.#deps.tail.close();
    const isOver = Promise.all(this.#unreleased).then(() => this.#deps.presence.settled());
    await Promise.race([isOver, delay(CLOSING_MS, undefined, { ref: false })]);
  }

  async #open(
    caller: Caller,
    place: StreamedPlace,
    { after, types, timeoutSeconds, heartbeat, join }: SubscribeOptions,
    shown: StreamOptions['shown'],
    demand: () => unknown,
  ): Promise<EventStream> {
    const from = parsedCursor(after);
    const isWanted = typeFilterOf(types);
    const { principal, request } = caller;
    const release = this.#slots.take({
      userId: principal.userId,
      placeId: place.userId ? null : (place.workspaceId ?? place.orgId),
      connection: request.socket ?? request,
    });
    const options = {
      place,
      from,
      timeoutSeconds: timeoutSeconds ?? null,
      hasHeartbeat: heartbeat === true,
      shown: (event: StreamEvent) => (isWanted(event.type) ? shown(event) : null),
      refusal: () => this.#refusal(caller, place, demand),
      onFault: (error: unknown) => this.#deps.onFault(error, 'an event stream failed'),
    };
    try {
      return await this.#streamOf(caller, options, join === true, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  async #streamOf(caller: Caller, options: StreamRequest, joins: boolean, release: () => void): Promise<EventStream> {
    const { place, from } = options;
    const queue = await this.#deps.tail.subscribe(place);
    const isOver: (() => void)[] = [];
    try {
      const stream = new EventStream({
        ...options,
        epoch: this.#deps.tail.epoch,
        queue,
        // after the queue has begun: no change is between what it shows and the events
        greeting: joins ? await this.#greeting(caller, options, isOver) : null,
        missed: from && (await this.#missed({ ...place, readerId: caller.principal.userId }, from, queue.start)),
        release: this.#untilReleased(() => {
          release();
          for (const end of isOver) end();
        }),
      });
      isOver.push(this.#watch.add(stream, { caller, ...place }));
      return stream;
    } catch (error) {
      queue.end(null);
      for (const end of isOver) end();
      throw error;
    }
  }

  /** The details of the event `connected`. The user is present from then on. */
  async #greeting(
    caller: Caller,
    { place: { orgId, workspaceId }, from, timeoutSeconds }: StreamRequest,
    isOver: (() => void)[],
  ): Promise<Record<string, unknown>> {
    if (workspaceId === null) throw new Error('Presence is available in workspaces only.');
    const { presence } = this.#deps;
    const place = { orgId, workspaceId };
    const connectionId = newIdWith('stream');
    isOver.push(await presence.enter(caller, place, connectionId));
    return {
      connection_id: connectionId,
      timeout: timeoutSeconds,
      presence: (await presence.list(caller, place)).map(presentUser),
      last_event_id: from?.text ?? null,
    };
  }

  async #missed(reader: PlaceReader, from: Cursor, until: Position): Promise<StreamOptions['missed']> {
    const { missed, tail } = this.#deps;
    // its numbers say nothing here
    if (from.epoch !== tail.epoch) return 'lost';
    return (await missed.isLost(reader, from)) ? 'lost' : missed.between(reader, from, until);
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
  #refusal(caller: Caller, place: StreamedPlace, demand: () => unknown): Refusal {
    const lives = this.#deps.authentication.lives(caller.principal);
    if (lives instanceof Promise)
      return lives.then((alive) => (alive ? this.#refusalOf(caller, place, demand) : 'token_revoked'));
    return lives ? this.#refusalOf(caller, place, demand) : 'token_revoked';
  }

  #refusalOf(caller: Caller, place: StreamedPlace, demand: () => unknown): Refusal {
    const refused = (error: unknown) => this.#reasonOf(error, caller, place);
    try {
      const granted = demand();
      return granted instanceof Promise ? granted.then(() => null, refused) : null;
    } catch (error) {
      return refused(error);
    }
  }

  /** @throws errors that are not refusals */
  async #reasonOf(error: unknown, caller: Caller, { orgId, workspaceId }: StreamedPlace): Promise<CloseReason> {
    if (!(error instanceof ApiError)) throw error;
    if (workspaceId !== null) return error.code === 'RESOURCE_NOT_FOUND' ? 'workspace_deleted' : 'membership_revoked';
    // to non-members, a deleted organization looks like any other
    return (await this.#deps.access.facts.wentWithOrganization(caller.principal.userId, orgId))
      ? 'organization_deleted'
      : 'membership_revoked';
  }
}

/** A present user in the details of an event. */
const presentUser = ({ userId, username, joinedAt, viewing }: PresentUser) => ({
  user_id: userId,
  username,
  joined_at: joinedAt.toISOString(),
  viewing: viewing && { resource_type: viewing.resourceType, resource_id: viewing.resourceId },
});
