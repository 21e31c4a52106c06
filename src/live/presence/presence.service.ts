import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Changes } from '../../data/changes.ts';
import type { StreamEvent } from '../../data/outbox.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Place } from '../../kernel/place.ts';
import { principalId } from '../../kernel/principal.ts';
import { StateStream } from '../../kernel/state-stream.ts';
import type { Task } from '../../kernel/tasks.ts';
import { leavingTask } from './leaving.ts';
import type { PresenceSnapshots } from './presence-snapshots.ts';
import { IN_ORDER, lockOf, type PresentPlace } from './present-place.ts';
import type { PresentUser, Viewed } from './present-user.ts';

/** A connection that is not renewed for this long has ended. */
export const TTL_SECONDS = 60;
/** How long a user who leaves or disconnects may take to come back unnoticed. */
export const GRACE_SECONDS = 10;

/** The answer of an announcement. */
export interface Announced {
  orgId: string;
  status: 'joined' | 'left' | 'viewing';
  userId: string;
  presence: PresentUser[];
  ttlSeconds: number;
}

/** A connection of a user, as it is known before it is announced again. */
interface Known {
  connectionId: string;
  viewing: Viewed | null;
}

const KNOWN = `select p.connection_id as "connectionId", p.viewing from presences p
  where p.workspace_id = $1 and p.user_id = $2`;

// the first thousand of them: more would not be looked at
const PRESENT = `select p.org_id as "orgId", p.user_id as "userId", u.username, min(p.joined_at) as "joinedAt",
    (array_agg(p.viewing order by p.viewed_at desc) filter (where p.viewing is not null))[1] as viewing
  from presences p join users u on u.id = p.user_id
  where p.org_id = $1 and p.workspace_id = $2
  group by p.org_id, p.user_id, u.username order by min(p.joined_at), p.user_id limit 1000`;

const LEAVE = `with leaving as materialized (
    select p.connection_id from presences p
    where p.workspace_id = $1 and p.user_id = $2 and p.credential_id = $3 ${IN_ORDER})
  update presences p set ends_as = 'left',
    expires_at = least(p.expires_at, now() + ${GRACE_SECONDS} * interval '1 second')
  from leaving l where p.workspace_id = $1 and p.user_id = $2 and p.connection_id = l.connection_id`;

interface PresenceDeps extends Pick<ServiceDeps, 'sql' | 'access'> {
  changes: Changes;
  /** `null`: each node reads who is present by itself. */
  snapshots: PresenceSnapshots | null;
}

/**
 * Who is present in a workspace: users with an open stream, and callers who said so within the last minute. A user is
 * present by one or more connections. The first one is the event `presence.joined`, and the end of the last one
 * `presence.left`. Both are decided under a lock of the user in the workspace, so they alternate.
 */
export class PresenceService implements Owner {
  readonly tasks: readonly Task[];
  readonly #deps: PresenceDeps;
  /** Who was present after an event: read once for all streams of this process. */
  readonly #lists = new WeakMap<StreamEvent, Promise<PresentUser[]>>();
  /** A list as those see it who may not read all of it, by what they may. */
  readonly #reduced = new WeakMap<PresentUser[], Map<string, PresentUser[]>>();

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
    this.tasks = [leavingTask(deps.changes)];
  }

  /** Who is present, in the order of arrival; at most 1,000. What they look at is shown to those who may read it. */
  async list(caller: Caller, place: PresentPlace): Promise<PresentUser[]> {
    return this.#shownTo(caller, place, await this.#read(place));
  }

  /** Who is present, now and after each of these events. A stream without end until they end, or it is closed. */
  follow(
    caller: Caller,
    place: PresentPlace,
    events: AsyncIterableIterator<StreamEvent>,
  ): StateStream<StreamEvent, PresentUser[]> {
    return new StateStream(
      events,
      ({ resourceType }) => resourceType === 'presence',
      (event) => (event ? this.#listAfter(caller, place, event) : this.list(caller, place)),
    );
  }

  async #listAfter(caller: Caller, place: PresentPlace, event: StreamEvent): Promise<PresentUser[]> {
    const known = this.#lists.get(event) ?? this.#readAfter(place, event);
    this.#lists.set(event, known);
    return this.#shownTo(caller, place, await known);
  }

  #readAfter(place: PresentPlace, event: StreamEvent): Promise<PresentUser[]> {
    const { snapshots } = this.#deps;
    return snapshots ? snapshots.after(event, () => this.#read(place)) : this.#read(place);
  }

  #read({ orgId, workspaceId }: PresentPlace): Promise<PresentUser[]> {
    return this.#deps.sql.read<PresentUser>(PRESENT, [orgId, workspaceId]);
  }

  /** The same list for all who may read the same of it. */
  async #shownTo(caller: Caller, { workspaceId }: PresentPlace, present: PresentUser[]): Promise<PresentUser[]> {
    const { access } = this.#deps;
    const isShown = await Promise.all(
      present.map(
        async ({ viewing }) => !viewing || access.maySee(caller, viewing.resourceType, { ...viewing, workspaceId }),
      ),
    );
    if (!isShown.includes(false)) return present;
    const lists = this.#reduced.get(present) ?? new Map<string, PresentUser[]>();
    this.#reduced.set(present, lists);
    const key = isShown.map(Number).join('');
    const list = lists.get(key) ?? present.map((user, at) => (isShown[at] ? user : { ...user, viewing: null }));
    lists.set(key, list);
    return list;
  }

  /** Announces the caller, for a minute. Silent for a user who is present already. */
  async join(caller: Caller, place: Checked<WorkspacePlace>): Promise<Announced> {
    await this.#deps.changes.run(caller, async (tx) => {
      await this.#enter(tx, caller, place, credentialOf(caller), null);
      auditOf(tx, 'join', caller, place);
    });
    return this.#announced(caller, place, 'joined');
  }

  /** Announces what the caller looks at, and the caller, if necessary. */
  async view(caller: Caller, place: Checked<WorkspacePlace>, viewed: Viewed): Promise<Announced> {
    await this.#deps.changes.run(caller, async (tx) => {
      await this.#enter(tx, caller, place, credentialOf(caller), viewed);
      auditOf(tx, 'view', caller, place, { viewed_type: viewed.resourceType, viewed_id: viewed.resourceId });
    });
    return this.#announced(caller, place, 'viewing');
  }

  /** Ends the connections of the caller's session or token, ten seconds from now. */
  async leave(caller: Caller, place: Checked<WorkspacePlace>): Promise<Announced> {
    const { userId } = caller.principal;
    await this.#deps.changes.run(caller, async (tx) => {
      await tx.query(lockOf(place, userId));
      tx.write({ text: LEAVE, values: [place.workspaceId, userId, credentialOf(caller)] });
      auditOf(tx, 'leave', caller, place);
    });
    return this.#announced(caller, place, 'left');
  }

  /** Adds or renews the connection of a stream, which has a record of its own. */
  async enter(caller: Caller, place: PresentPlace, connectionId: string, ttlSeconds: number): Promise<void> {
    await this.#deps.changes.run(caller, async (tx) => {
      await this.#enter(tx, caller, place, connectionId, null, ttlSeconds);
    });
  }

  async #enter(
    tx: Tx,
    caller: Caller,
    { orgId, workspaceId }: PresentPlace,
    connectionId: string,
    viewed: Viewed | null,
    ttlSeconds: number = TTL_SECONDS,
  ): Promise<void> {
    const { userId, username } = caller.principal;
    await tx.query(lockOf({ workspaceId }, userId));
    const known = await tx.query<Known>({ text: KNOWN, values: [workspaceId, userId] });
    const viewing = viewed && JSON.stringify(viewed);
    tx.write(statement`insert into presences as p (org_id, workspace_id, user_id, connection_id, credential_id,
        expires_at, viewing, viewed_at)
      values (${orgId}, ${workspaceId}, ${userId}, ${connectionId}, ${credentialOf(caller)},
        now() + ${ttlSeconds} * interval '1 second', ${viewing}::jsonb, ${viewed && new Date()})
      on conflict (workspace_id, user_id, connection_id) do update set expires_at = excluded.expires_at,
        ends_as = 'timeout', viewing = coalesce(excluded.viewing, p.viewing),
        viewed_at = coalesce(excluded.viewed_at, p.viewed_at)`);
    const user = { id: userId, orgId, workspaceId };
    if (known.length === 0) emitChange(tx, 'joined', 'presence', user, { user_id: userId, username });
    if (!viewed) return;
    const before = known.find((connection) => connection.connectionId === connectionId)?.viewing ?? null;
    if (before?.resourceType === viewed.resourceType && before.resourceId === viewed.resourceId) return;
    emitChange(
      tx,
      'viewing',
      'presence',
      { ...user, ...partOf(viewed) },
      {
        user_id: userId,
        username,
        resource_type: viewed.resourceType,
        resource_id: viewed.resourceId,
        // who may receive the event follows from the place of what is viewed now
        previous: before && isBeside(before, viewed) ? namesOf(before) : null,
      },
    );
  }

  async #announced(caller: Caller, place: PresentPlace, status: Announced['status']): Promise<Announced> {
    const { userId } = caller.principal;
    return { orgId: place.orgId, status, userId, presence: await this.list(caller, place), ttlSeconds: TTL_SECONDS };
  }
}

/** Names a caller's sign-in or token, which has one connection without a stream. */
export const credentialOf = ({ principal }: Caller): string =>
  principal.token ? principalId(principal) : principal.sessionId;

const partOf = ({ namespaceId, environmentId, appId }: Place): Place => ({ namespaceId, environmentId, appId });

const isBeside = (one: Place, other: Place): boolean =>
  (['namespaceId', 'environmentId', 'appId'] as const).every((kind) => (one[kind] ?? null) === (other[kind] ?? null));

const namesOf = ({ resourceType, resourceId }: Viewed) => ({ resource_type: resourceType, resource_id: resourceId });

function auditOf(
  tx: Tx,
  action: 'join' | 'leave' | 'view',
  { principal: { userId } }: Caller,
  { orgId, workspaceId }: PresentPlace,
  metadata: Record<string, unknown> = {},
): void {
  tx.audit({ action, resourceType: 'presence', resourceId: userId, orgId, workspaceId, metadata });
}
