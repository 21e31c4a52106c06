import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { lockOf, type PresentPlace } from './present-place.ts';

interface Ended extends PresentPlace {
  userId: string;
}

const NAME = 'presence.leave';
const BATCH = 100;
const DUE = 'expires_at <= now()';

const TAKE = `select distinct p.org_id as "orgId", p.workspace_id as "workspaceId", p.user_id as "userId"
  from presences p where p.${DUE} limit ${BATCH}`;

/** What a removal found. */
interface Removed {
  /** Why the last of the removed connections ended; `null` if there was none. */
  reason: string | null;
  username: string;
  /** Whether the user is present by other connections. */
  stays: boolean;
}

// both parts of it see the rows as they were before
const REMOVE = `with gone as (delete from presences where workspace_id = $1 and user_id = $2 and ${DUE}
    returning ends_as, expires_at)
  select (select ends_as from gone order by expires_at desc limit 1) as reason, u.username,
    exists (select 1 from presences where workspace_id = $1 and user_id = $2 and expires_at > now()) as stays
  from users u where u.id = $2`;

/**
 * Removes the connections that have ended, and emits `presence.left` for each user who has no other. It does not matter
 * which node they were on, or whether it still runs. @returns the number of users
 */
const leaveDue = (changes: Changes): Promise<number> =>
  inBatches(BATCH, async () => {
    const ended = await changes.run(systemCaller(NAME), (tx) => tx.query<Ended>({ text: TAKE, values: [] }));
    for (const user of ended) await leave(changes, user);
    return ended.length;
  });

const leave = (changes: Changes, { orgId, workspaceId, userId }: Ended): Promise<void> =>
  changes.run(systemCaller(NAME), async (tx) => {
    await tx.query(lockOf({ workspaceId }, userId));
    const [removed] = await tx.query<Removed>({ text: REMOVE, values: [workspaceId, userId] });
    if (!removed?.reason || removed.stays) return;
    const { username, reason } = removed;
    emitChange(tx, 'left', 'presence', { id: userId, orgId, workspaceId }, { user_id: userId, username, reason });
  });

/** The task that does so within a second, on one node at a time. */
export const leavingTask = (changes: Changes): Task =>
  scheduled(NAME, { everySeconds: 1, ifAny: `select 1 from presences where ${DUE}` }, () => leaveDue(changes));
