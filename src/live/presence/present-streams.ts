import type { Sql } from '../../data/sql.ts';
import type { Caller } from '../../kernel/caller.ts';
import { credentialOf, GRACE_SECONDS, type PresenceService } from './presence.service.ts';
import { IN_ORDER, type PresentPlace, turnOf } from './present-place.ts';
import type { PresentUser } from './present-user.ts';

/**
 * A node that is killed renews nothing: its users leave after this time, and the second that the removal takes, within
 * the minute that every connection has.
 */
const TTL_SECONDS = 45;
const RENEW_MS = 15_000;

interface PresentStream {
  caller: Caller;
  place: PresentPlace;
  /** Whether its connection was there at the last renewal. It is not after its user has left. */
  isPresent: boolean;
  /** Whether its connection may have ended meanwhile, because it was not renewed in time. */
  isOverdue: boolean;
}

// a stream also renews what its session announced without it
const RENEW = `with living as materialized (
    select p.workspace_id, p.user_id, p.connection_id from presences p
    join (select distinct * from unnest($1::text[], $2::text[], $3::text[]) s(workspace_id, user_id, credential_id)) s
      using (workspace_id, user_id, credential_id)
    where p.ends_as = 'timeout' ${IN_ORDER})
  update presences p set expires_at = greatest(p.expires_at, now() + ${TTL_SECONDS} * interval '1 second')
  from living l
  where (p.workspace_id, p.user_id, p.connection_id) = (l.workspace_id, l.user_id, l.connection_id)
  returning p.connection_id as "connectionId"`;

// with the last stream of a session goes what the session announced without it
const EXIT = `with ending as materialized (
    select p.connection_id from presences p
    where p.workspace_id = $1 and p.user_id = $2 and p.ends_as = 'timeout' and (p.connection_id = $3
      or p.connection_id = $4 and not exists (select 1 from presences o where o.workspace_id = $1 and o.user_id = $2
        and o.credential_id = $4 and o.ends_as = 'timeout' and o.connection_id not in ($3, $4))) ${IN_ORDER})
  update presences p set ends_as = 'disconnected',
    expires_at = least(p.expires_at, now() + ${GRACE_SECONDS} * interval '1 second')
  from ending e where p.workspace_id = $1 and p.user_id = $2 and p.connection_id = e.connection_id`;

interface PresentStreamsDeps {
  sql: Sql;
  presence: PresenceService;
  onFault: (error: unknown, what: string) => void;
}

/** The streams of this node whose users are present while they are open. */
export class PresentStreams {
  readonly #deps: PresentStreamsDeps;
  readonly #open = new Map<string, PresentStream>();
  readonly #exits = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  /** Time from `performance.now()`. */
  #renewedAt = 0;

  constructor(deps: PresentStreamsDeps) {
    this.#deps = deps;
  }

  /** Who is present in a workspace. */
  async list(caller: Caller, place: PresentPlace): Promise<PresentUser[]> {
    return this.#deps.presence.list(caller, place);
  }

  /** Announces a user for as long as a stream is open; not a token. @returns a function that ends it */
  async enter(caller: Caller, place: PresentPlace, connectionId: string): Promise<() => void> {
    if (caller.principal.token) return () => undefined;
    await this.#deps.presence.enter(caller, place, connectionId, TTL_SECONDS);
    this.#open.set(connectionId, { caller, place, isPresent: true, isOverdue: false });
    if (!this.#timer) {
      this.#renewedAt = performance.now();
      this.#timer = setInterval(() => void this.#renew(), RENEW_MS).unref();
    }
    return () => this.#exit(connectionId);
  }

  /** Resolves when the ends of all streams are written. */
  async settled(): Promise<void> {
    await Promise.all(this.#exits);
  }

  #exit(connectionId: string): void {
    const stream = this.#open.get(connectionId);
    if (!stream) return;
    this.#open.delete(connectionId);
    if (this.#open.size === 0 && this.#timer) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    const { place, caller } = stream;
    const { userId } = caller.principal;
    // in turn: of streams that end at once, the last one sees that no other is left
    const exit = this.#deps.sql
      .changeInTurn(turnOf(place, userId), EXIT, [place.workspaceId, userId, connectionId, credentialOf(caller)])
      .then(
        () => undefined,
        // it ends by itself within the minute
        (error: unknown) => this.#deps.onFault(error, 'the end of a stream could not be written'),
      );
    this.#exits.add(exit);
    void exit.finally(() => this.#exits.delete(exit));
  }

  async #renew(): Promise<void> {
    const streams = [...this.#open];
    const startedAt = performance.now();
    // such as while the machine slept
    if (startedAt - this.#renewedAt > TTL_SECONDS * 1_000) markOverdue(streams);
    try {
      const rows = await this.#deps.sql.change<{ connectionId: string }>(RENEW, [
        streams.map(([, { place }]) => place.workspaceId),
        streams.map(([, { caller }]) => caller.principal.userId),
        streams.map(([, { caller }]) => credentialOf(caller)),
      ]);
      const renewed = new Set(rows.map((row) => row.connectionId));
      this.#renewedAt = startedAt;
      for (const [connectionId, stream] of streams) {
        const { caller, place, isPresent, isOverdue } = stream;
        const isThere = renewed.has(connectionId);
        if (!isThere && isPresent && isOverdue && this.#open.has(connectionId))
          await this.#deps.presence.enter(caller, place, connectionId, TTL_SECONDS);
        else stream.isPresent = isThere;
        stream.isOverdue = false;
      }
    } catch (error) {
      markOverdue(streams);
      this.#deps.onFault(error, 'presence could not be renewed');
    }
  }
}

function markOverdue(streams: readonly (readonly [id: string, stream: PresentStream])[]): void {
  for (const [, stream] of streams) stream.isOverdue = true;
}
