import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { IN_ORDER, lockOf, type PresentPlace } from './present-place.ts';

interface Ended extends PresentPlace {
  userId: string;
}

const NAME = 'presence.leave';
const BATCH = 100;
const DUE = 'expires_at <= now()';

const TAKE = `select distinct p.org_id as "orgId", p.workspace_id as "workspaceId", p.user_id as "userId"
  from presences p where p.${DUE} limit ${BATCH}`;

// what is renewed meanwhile stays
const REMOVE = `with due as materialized (
    select p.connection_id from presences p where p.workspace_id = $1 and p.user_id = $2 and p.${DUE} ${IN_ORDER}),
  gone as (delete from presences p using due d
    where p.workspace_id = $1 and p.user_id = $2 and p.connection_id = d.connection_id
    returning p.ends_as, p.expires_at)
  select ends_as as reason from gone order by expires_at desc limit 1`;

// a statement of its own: it sees what the removal left
const LEFT = `select u.username from users u where u.id = $2
  and not exists (select 1 from presences where workspace_id = $1 and user_id = $2)`;

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
    const values = [workspaceId, userId];
    const [removed] = await tx.query<{ reason: string }>({ text: REMOVE, values });
    if (!removed) return;
    const [user] = await tx.query<{ username: string }>({ text: LEFT, values });
    if (!user) return;
    const data = { user_id: userId, username: user.username, reason: removed.reason };
    emitChange(tx, 'left', 'presence', { id: userId, orgId, workspaceId }, data);
  });

/** The task that does so within a second, on one node at a time. */
export const leavingTask = (changes: Changes): Task =>
  scheduled(NAME, { everySeconds: 1, ifAny: `select 1 from presences where ${DUE}` }, () => leaveDue(changes));
